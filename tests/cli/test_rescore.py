"""``rescore``: new scores of stored trials in linked runs; the agent does not run, and nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.judging.server import JudgeServer, completion, reply

if TYPE_CHECKING:
    from tests.cli.conftest import Call
    from tests.conftest import Project

CASES = [{"id": name, "task": f"Do {name}.", "workspace": "fixtures/w", "expect": {"exact": "ok"}} for name in ("a", "b")]
SCORERS = [
    {"use": "exact"},
    {"use": "command", "id": "own", "argv": ["python3", "-c", 'print(\'{"ok": true, "score": 1, "findings": []}\')']},
]


@pytest.fixture
def counted(project: Project) -> Project:
    """Return a project with the suite ``demo``, whose agent leaves a line in ``calls`` each time it runs."""
    runner = {"shell": True, "command": f"echo x >> {project.path}/calls; printf ok"}
    project.suite(cases=CASES, runner=runner, scorers=SCORERS, arms={"one": {}, "two": {"runner": {"env": {"A": "1"}}}})
    return project


def calls(project: Project) -> int:
    return len((project.path / "calls").read_text().splitlines())


def change(project: Project, **document: Any) -> None:
    path = project.path / "evals" / "suites" / "demo" / "suite.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | document))


def expect(project: Project, *cases: dict[str, Any]) -> None:
    path = project.path / "evals" / "suites" / "demo" / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases))


def files(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()}


def test_changed_expectations_judge_stored_trials_again_without_the_agent(here: Call, counted: Project) -> None:
    here("run", "demo", "--arm", "one", "--run-id", "r")
    before = files(counted.run_dir("r"))
    expect(counted, CASES[0], CASES[1] | {"expect": {"exact": "other"}})

    code, document = here("rescore", "r", "--run-id", "again")

    assert (code, calls(counted)) == (0, 2)
    assert document["data"]["run"]["status_counts"] == {"pass": 1, "fail": 1, "error": 0}
    assert document["data"]["rescored_from"] == "r"
    assert files(counted.run_dir("r")) == before
    assert here("verify", "again")[1]["data"] | {"events": 0, "artifacts": 0} == {
        "run_id": "again",
        "ok": True,
        "sealed": True,
        "events": 0,
        "artifacts": 0,
        "first_damage": None,
    }
    assert [failure["id"] for failure in here("report", "again")[1]["data"]["failures"]] == ["b"]
    record = counted.record("again", "b", "score.json")
    assert [(score["scorer"], score["ok"]) for score in record["scores"]] == [("exact", False), ("command", True)]
    assert (counted.run_dir("again") / "cases/b/scorers/own.stdout.txt").is_file()


def test_same_suite_gives_the_same_verdicts_and_hash(here: Call, counted: Project) -> None:
    first = here("run", "demo", "--arm", "one", "--run-id", "r")[1]["data"]

    again = here("rescore", "r")[1]["data"]

    assert again["report_hash"] == first["report_hash"]
    assert again["run_id"].startswith("r-rescore-")


def test_every_run_of_an_experiment_is_judged_again_and_compares(here: Call, counted: Project) -> None:
    here("run", "demo", "--run-id", "x", "--repeats", "2")
    expect(counted, CASES[0], CASES[1] | {"expect": {"exact": "other"}})

    code, document = here("rescore", "x", "--run-id", "y")

    assert (code, calls(counted)) == (0, 8)
    names = [run["run_id"] for run in document["data"]["runs"]]
    assert names == ["y.one.1", "y.two.1", "y.one.2", "y.two.2"]
    assert document["data"]["totals"]["passed"] == 4
    assert here("compare", "y")[1]["data"]["pairs"] == 2
    assert here("compare", "x:one", "y:one")[1]["data"]["changed"] == ["b"]


def test_a_judge_is_asked_again_and_what_it_cannot_say_is_an_error(here: Call, counted: Project) -> None:
    here("run", "demo", "--arm", "one", "--run-id", "r")
    replies = [completion('{"score": 0.25}'), completion("no verdict"), completion("none")]
    with JudgeServer([reply(body) for body in replies]) as server:
        table = {"use": "openai", "base_url": server.url, "model": "m", "api_key_env": None, "backoff_seconds": 0, "retries": 0}
        strict = {"use": "judge", "judge": "strict", "rubric": "Is it right?"}
        change(counted, judges={"strict": table | {"max_in_flight": 1}}, scorers=[*SCORERS, strict])
        code, document = here("rescore", "r", "--judge", "strict", "--run-id", "judged", "--jobs", "1")

    assert (code, calls(counted)) == (0, 2)
    assert document["data"]["run"]["status_counts"] == {"pass": 0, "fail": 1, "error": 1}
    scores = {case: counted.record("judged", case, "score.json")["scores"][-1] for case in ("a", "b")}
    assert (scores["a"]["score"], scores["a"]["judge"]["calls"], scores["b"]["error"]) == (0.25, 1, True)
    assert (counted.run_dir("judged") / "cases/a/scorers/judge.replies.jsonl").is_file()


def test_scorer_that_needs_the_workspace_says_so(here: Call, counted: Project) -> None:
    here("run", "demo", "--arm", "one", "--run-id", "r")

    here("rescore", "r", "--scorer", "own", "--run-id", "again")

    record = counted.record("again", "a", "score.json")
    assert record["status"] == "error"
    assert "workspace" in json.dumps(record["scores"])


def test_case_that_is_another_one_now_is_left_out_and_named(here: Call, counted: Project) -> None:
    here("run", "demo", "--arm", "one", "--run-id", "r")
    expect(counted, CASES[0], CASES[1] | {"task": "Do something else."})

    _, document = here("rescore", "r", "--run-id", "again")

    assert document["data"]["run"]["case_count"] == 1
    assert [w["code"] for w in document["warnings"]].count("W_REPLAY_CASE_ABSENT") == 1


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["r", "--scorer", "nobody"], 1),
        (["r", "--judge", "nobody"], 1),
        (["r", "--run-id", "r"], 5),
        (["nowhere"], 1),
        (["r", "--run-id", "../x"], 1),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(here: Call, counted: Project, words: list[str], code: int) -> None:
    here("run", "demo", "--arm", "one", "--run-id", "r")
    before = sorted(path.name for path in (counted.path / "evals" / "runs").iterdir())

    assert here("rescore", *words)[0] == code
    assert sorted(path.name for path in (counted.path / "evals" / "runs").iterdir()) == before


def test_tampered_trials_are_not_judged_again(here: Call, counted: Project) -> None:
    here("run", "demo", "--arm", "one", "--run-id", "r")
    (counted.run_dir("r") / "cases/a/output.txt").write_text("better")

    assert here("rescore", "r", "--run-id", "again")[0] == 1
    assert not counted.run_dir("again").exists()
