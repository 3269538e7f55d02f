"""The tests scorer, with real test runs against what an agent may leave behind."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError
from tests.conftest import shortened
from tests.scorers.conftest import make, trial

from evalwright.errors import TrialError
from evalwright.model import Change
from evalwright_scorers import tests as hidden_tests

if TYPE_CHECKING:
    from tests.scorers.conftest import Bench

Scorer = hidden_tests.Tests
PYTEST = {"argv": [sys.executable, "-m", "pytest", "-q", "test_f.py"], "format": "pytest"}
CHECKS = "from f import f\n\ndef test_a():\n    assert f() == 42\n\ndef test_b():\n    assert f() > 0\n"
NAMED = {"fail_to_pass": ["test_f.py::test_a"], "pass_to_pass": ["test_f.py::test_b"]}


def prepare(bench: Bench, answer: int, **planted: str) -> None:
    """Write the agent's solution, what it planted, and the hidden tests."""
    (bench.final / "f.py").write_text(f"def f():\n    return {answer}\n")
    for name, text in planted.items():
        (bench.final / name.replace("__", ".")).write_text(text)
    (bench.hidden / "test_f.py").write_text(CHECKS)


def driver(text: str, exit_code: int = 0, **table: Any) -> dict[str, Any]:
    """Return a table whose command writes ``text`` as its report."""
    script = 'printf %s "$1" > "$EVALWRIGHT_REPORT_FILE"; exit "$2"'
    return {"argv": ["/bin/sh", "-c", script, "sh", text, str(exit_code)], "format": "tap", **table}


def test_a_right_solution_passes_its_hidden_tests(bench: Bench) -> None:
    prepare(bench, 42)

    score = bench.score(Scorer, PYTEST, {"tests": NAMED})

    assert (score.ok, score.score, score.findings) == (True, 1.0, ())
    assert score.metrics == {"passed": 2.0, "failed": 0.0, "total": 2.0}
    assert set(bench.kept) == {"stdout.txt", "stderr.txt", "report.txt"}


def test_a_wrong_solution_fails_by_name(bench: Bench) -> None:
    prepare(bench, 41)

    score = bench.score(Scorer, PYTEST, {"tests": NAMED})

    assert (score.ok, score.score) == (False, 0.5)
    assert [(finding["test"], finding["why"]) for finding in score.findings] == [("test_f.py::test_a", "failed")]
    assert "42" in score.findings[0]["detail"]


def test_without_names_every_listed_test_counts(bench: Bench) -> None:
    prepare(bench, 41)

    assert bench.score(Scorer, PYTEST).score == 0.5


PLANTED = {
    "status": {"conftest__py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n"},
    "exit": {"conftest__py": "import os\nos._exit(0)\n"},
    "pytest.ini": {"pytest__ini": "[pytest]\naddopts = --co\n"},
    "tox.ini": {"tox__ini": "[pytest]\naddopts = --co\n"},
    "setup.cfg": {"setup__cfg": "[tool:pytest]\naddopts = --co\n"},
    "pyproject": {"pyproject__toml": '[tool.pytest.ini_options]\naddopts = "--co"\n'},
    "sitecustomize": {"sitecustomize__py": "import os\nos._exit(0)\n"},
    "pytest.py": {"pytest__py": "print('2 passed')\n"},
    "weakened": {"test_f__py": "def test_a():\n    assert True\n"},
}


@pytest.mark.parametrize("planted", shortened(PLANTED, ["exit", "pytest.ini", "sitecustomize", "weakened"]))
@pytest.mark.parametrize("named", shortened([NAMED, {}], [{}]), ids=["named", "all"])
@pytest.mark.parametrize("kept", shortened([True, False], [False]), ids=["kept", "removed"])
def test_what_the_agent_planted_does_not_turn_a_fail_into_a_pass(
    bench: Bench, planted: str, named: dict[str, Any], kept: bool
) -> None:
    bench.keeps_configuration = kept
    prepare(bench, 41, **PLANTED[planted])

    score = bench.score(Scorer, PYTEST, {"tests": named})

    assert not score.ok
    assert not score.error


def test_success_without_a_report_is_called_tampered(bench: Bench) -> None:
    bench.keeps_configuration = True
    prepare(bench, 41, conftest__py="import os\nos._exit(0)\n")

    score = bench.score(Scorer, PYTEST, {"tests": NAMED})

    assert score.findings == ({"why": "tests exited 0 without a report; the run was tampered with"},)


def test_pass_lines_on_stdout_prove_nothing(bench: Bench) -> None:
    prepare(bench, 41)
    forged = "print('test_f.py::test_a PASSED\\nok 1 - test_a\\n1..1\\n2 passed', flush=True)\nimport os\nos._exit(0)\n"
    (bench.final / "f.py").write_text(forged)

    assert not bench.score(Scorer, PYTEST, {"tests": NAMED}).ok


def test_a_report_that_the_agent_wrote_before_is_not_read(bench: Bench) -> None:
    prepare(bench, 41, report="1..1\nok 1 - a\n", result__json='{"score": 1.0}')

    score = bench.score(Scorer, {"argv": ["true"], "format": "tap"})

    assert score.findings == ({"why": "tests exited 0 without a report; the run was tampered with"},)


def test_each_run_has_a_report_path_of_its_own(bench: Bench) -> None:
    for _ in range(2):
        bench.score(Scorer, driver("1..1\nok 1 - a"))

    commands = [session.commands[0] for session in bench.sessions]
    paths = {command.env["EVALWRIGHT_REPORT_FILE"].rpartition("/")[2] for command in commands}
    assert len(paths) == 2
    assert all(command.env["EVALCTL_REPORT_FILE"] == command.env["EVALWRIGHT_REPORT_FILE"] for command in commands)


@pytest.mark.parametrize(
    "script",
    [
        'ln -s /etc/passwd "$EVALWRIGHT_REPORT_FILE"',
        'mkdir "$EVALWRIGHT_REPORT_FILE"',
        'mkfifo "$EVALWRIGHT_REPORT_FILE"',
    ],
)
def test_a_report_that_is_no_regular_file_is_no_report(bench: Bench, script: str) -> None:
    score = bench.score(Scorer, {"argv": ["/bin/sh", "-c", script], "format": "junit"})

    assert "without a report" in score.findings[0]["why"]


def test_a_failing_run_without_a_report_is_not_called_tampered(bench: Bench) -> None:
    score = bench.score(Scorer, {"argv": ["/bin/sh", "-c", "exit 4"], "format": "tap"})

    assert score.findings == ({"why": "tests exited 4 without a report"},)


def test_a_huge_report_is_refused(bench: Bench) -> None:
    script = 'head -c 17000000 /dev/zero > "$EVALWRIGHT_REPORT_FILE"'

    score = bench.score(Scorer, {"argv": ["/bin/sh", "-c", script], "format": "junit"})

    assert score.findings == ({"why": "the report is larger than 16777216 bytes"},)


def test_an_unreadable_report_is_a_fail(bench: Bench) -> None:
    score = bench.score(Scorer, driver("<x", format="junit"))

    assert score.findings[0]["why"].startswith("tests exited 0 with an unreadable report: ")


def test_tap_is_read_from_the_report_file(bench: Bench) -> None:
    table = driver("TAP version 13\n1..2\nok 1 - a\nnot ok 2 - b\n", 1)

    assert bench.score(Scorer, table, {"tests": {"fail_to_pass": ["a"]}}).ok
    assert not bench.score(Scorer, table, {"tests": {"fail_to_pass": ["a", "b"]}}).ok


def test_the_exit_status_alone_decides_when_asked(bench: Bench) -> None:
    assert bench.score(Scorer, {"argv": ["true"]}).ok
    assert bench.score(Scorer, {"argv": ["false"]}).findings == ({"why": "tests exited 1"},)


def test_tests_that_do_not_end_are_a_fail(bench: Bench) -> None:
    score = bench.score(Scorer, {"argv": ["sleep", "30"], "timeout_seconds": 0.2})

    assert score.findings == ({"why": "tests timed out after 0.2s"},)


def test_tests_that_cannot_start_are_an_error(bench: Bench) -> None:
    with pytest.raises(TrialError) as caught:
        bench.score(Scorer, {"argv": ["/no/such/program"]})

    assert caught.value.kind == "tests_not_started"


def test_program_of_the_workspace_that_the_agent_took_away_is_a_fail(bench: Bench) -> None:
    score = bench.score(Scorer, {"argv": ["./run-tests"]})

    assert (score.ok, score.error) == (False, False)
    assert score.findings[0]["why"].startswith("the tests could not start from the workspace: ")


def test_the_command_runs_with_wide_lines_and_leaves_no_bytecode(bench: Bench) -> None:
    bench.score(Scorer, {"argv": ["true", "$EVALWRIGHT_REPORT_FILE"]})

    command = bench.sessions[0].commands[0]
    assert (command.env["COLUMNS"], command.env["PYTHONDONTWRITEBYTECODE"]) == ("200", "1")
    assert "PYTHONSAFEPATH" not in command.env
    assert command.argv[1] == command.env["EVALWRIGHT_REPORT_FILE"]


def test_the_case_overrides_the_entry_field_by_field(bench: Bench) -> None:
    assert bench.score(Scorer, {"argv": ["false"], "timeout_seconds": 5}, {"tests": {"argv": ["true"]}}).ok


@pytest.mark.parametrize(
    ("expect", "config"),
    [({"tests": {}}, {}), ({"tests": {"fail_to_pass": ["a"]}}, {"argv": ["true"]})],
)
def test_a_table_that_is_not_complete_is_an_error(bench: Bench, expect: dict[str, Any], config: dict[str, Any]) -> None:
    with pytest.raises(TrialError) as caught:
        bench.score(Scorer, config, expect)

    assert caught.value.kind == "expectation_incomplete"


@pytest.mark.parametrize(
    "table",
    [
        {"argv": []},
        {"argv": "pytest"},
        {"argv": ["x"], "format": "xml"},
        {"argv": ["x"], "format": "exit", "fail_to_pass": ["a"]},
        {"argv": ["x"], "fail_to_pass": "a"},
        {"argv": ["x"], "timeout_seconds": 0},
        {"argv": ["x"], "timeout_seconds": True},
        {"argv": ["x"], "expected": 3},
    ],
)
def test_a_table_that_makes_no_sense_is_refused(table: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Scorer.Expect["tests"].model_validate(table)


def test_only_an_exit_status_is_called_weak() -> None:
    host: Any = None
    scorer = Scorer(hidden_tests.TestsConfig(argv=["true"]), host)

    assert scorer.weakness({}) == "exit status alone can be forged by the code under test"
    assert scorer.weakness({"tests": {"format": "tap"}}) is None


def test_the_scorer_applies_to_cases_or_entries_with_tests() -> None:
    host: Any = None

    assert not Scorer(hidden_tests.TestsConfig(), host).applies({})
    assert Scorer(hidden_tests.TestsConfig(), host).applies({"tests": {"argv": ["true"]}})
    assert Scorer(hidden_tests.TestsConfig(argv=["true"]), host).applies({})


@pytest.mark.parametrize(("place", "ok"), [("hidden", True), ("final", False)])
def test_a_failing_test_of_the_agent_s_own_does_not_explain_a_status(bench: Bench, place: str, ok: bool) -> None:
    content = "def test_b(): assert 0\n"
    (bench.root / place / "test_b.py").write_text(content)
    document = (
        '<testsuite><testcase classname="test_a" name="test_a"/>'
        '<testcase classname="test_b" name="test_b"><failure/></testcase></testsuite>'
    )
    table = driver(document, 1, format="junit", fail_to_pass=["test_a"])
    digest = "sha256:" + hashlib.sha256(content.encode()).hexdigest() if place == "final" else "sha256:" + "0" * 64
    change = Change(path="test_b.py", status="added", kind="file", sha256_before=None, sha256_after=digest)

    score = make(Scorer, table).score(trial(Scorer, {}, changes=(change,)), bench)

    assert score.ok is ok
