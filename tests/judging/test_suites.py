"""Judges in a suite: checked before the first trial, asked in it, recorded after it."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.judging.server import Act, Exchange, JudgeServer, completion, reply, silence

if TYPE_CHECKING:
    from tests.conftest import Project

KEY = "sk-test-123456"


def judged(url: str, **judge: Any) -> dict[str, Any]:
    """Return the judges and scorers of a suite."""
    table = {"use": "openai", "base_url": url, "model": "acme/m1", "api_key_env": None, "backoff_seconds": 0, **judge}
    scorer = {"use": "judge", "judge": "strict", "rubric": "Is it right?"}
    return {"judges": {"strict": table}, "scorers": [scorer]}


def cases(count: int = 1) -> list[dict[str, Any]]:
    return [{"id": f"c{number}", "task": f"Do {number}.", "workspace": "fixtures/w"} for number in range(count)]


def scores(project: Project, run: str, case: str = "c0") -> list[dict[str, Any]]:
    return list(project.record(run, case, "score.json")["scores"])


def test_judge_of_a_suite_scores_and_its_cost_is_recorded(project: Project) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10}
    with JudgeServer([reply(completion('{"score": 0.75}', usage=usage))]) as server:
        project.suite(cases=cases(), **judged(server.url, price={"input": 1.0, "output": 10.0}))
        first = project.call("run", "demo", "--run-id", "one")
        project.call("run", "demo", "--run-id", "two")

        assert len(server.requests) == 1
    assert first.data["run"]["status_counts"]["pass"] == 1
    (record,) = scores(project, "one")
    assert (record["score"], record["judge"]["calls"], record["judge"]["cached"], record["judge"]["model"]) == (
        0.75,
        1,
        0,
        "m1",
    )
    assert record["judge"]["cost"] == pytest.approx(0.0002)
    assert record["judge"]["usage"]["input"] == 100
    assert [score["judge"]["cached"] for score in scores(project, "two")] == [1]
    kept = (project.path / "evals/runs/one/cases/c0/scorers/judge.replies.jsonl").read_text()
    assert json.loads(kept)["text"] == '{"score": 0.75}'
    assert project.call("verify", "one").data["ok"] is True


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (completion("garbage"), 200, "judge_unreadable"),
        (completion('{"score": 0.9', "length"), 200, "judge_truncated"),
        (completion("no", "content_filter"), 200, "judge_refused"),
        ({}, 404, "judge_failed"),
        ({}, 503, "judge_unavailable"),
    ],
)
def test_broken_judge_is_an_error_whatever_other_scorers_say(
    project: Project, body: dict[str, Any], status: int, kind: str
) -> None:
    with JudgeServer([reply(body, status)]) as server:
        suite = judged(server.url)
        suite["scorers"].append({"use": "contains"})
        right = [{**case, "expect": {"text_contains": ["ok"]}} for case in cases()]
        project.suite(cases=right, runner={"argv": ["printf", "ok"]}, **suite)
        answer = project.call("run", "demo", "--run-id", "r", "--fail-on-fail")

    assert (answer.exit_code, answer.data["run"]["status_counts"]["error"], answer.data["run"]["status_counts"]["pass"]) == (
        6,
        1,
        0,
    )
    broken, right_one = scores(project, "r")
    assert (broken["error"], broken["ok"], broken["score"], broken["findings"][0]["kind"]) == (True, False, 0.0, kind)
    assert (broken["judge"]["failed"], right_one["ok"]) == (1, True)


def test_bad_reply_to_one_trial_leaves_the_others_alone(project: Project) -> None:
    def act(exchange: Exchange) -> None:
        bad = "Do 4." in exchange.document["messages"][1]["content"]
        reply(completion("garbage" if bad else '{"score": 1}'))(exchange)

    with JudgeServer([act]) as server:
        project.suite(cases=cases(10), **judged(server.url))
        answer = project.call("run", "demo", "--run-id", "r", "--jobs", "4")

    counts = answer.data["run"]["status_counts"]
    assert (counts["pass"], counts["error"], counts["fail"]) == (9, 1, 0)


def test_key_is_nowhere_in_the_run_nor_in_what_is_printed(project: Project) -> None:
    echo = reply({"error": {"message": f"bad key {KEY}"}}, 422)
    with JudgeServer([echo]) as server:
        suite = judged(server.url, api_key_env="ACME", headers={"x-key": "Bearer ${ACME}"})
        project.suite(cases=cases(), runner={"argv": ["printf", KEY]}, **suite)
        answer = project.call("run", "demo", "--run-id", "r", env={"ACME": KEY})

        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in answer.stdout + answer.stderr
    assert [
        path
        for path in (project.path / "evals/runs/r/cases").rglob("*")
        if path.is_file() and KEY.encode() in path.read_bytes()
    ] == []
    assert "${ACME}" in (project.path / "evals/runs/r/run.json").read_text()


@pytest.mark.parametrize("words", [["plan", "demo"], ["run", "demo"]])
def test_absent_key_is_refused_before_the_first_trial(project: Project, words: list[str]) -> None:
    with JudgeServer([reply(completion("x"))]) as server:
        project.suite(cases=cases(), **judged(server.url, api_key_env="ABSENT_KEY"))
        answer = project.call(*words)

        assert server.requests == []
    assert (answer.exit_code, answer.error_codes) == (3, ["E_JUDGE_FAILED"])
    assert "ABSENT_KEY is not set" in answer.envelope["errors"][0]["message"]
    assert not (project.path / "evals/runs").exists() or not list((project.path / "evals/runs").glob("[a-z0-9]*"))


def test_every_problem_of_the_judges_is_named_at_once(project: Project) -> None:
    project.suite(
        cases=cases(),
        judges={
            "one": {"use": "openai", "modell": "m", "retries": -1},
            "two": "nosuch",
            "three": {"model": "m"},
            "four": {"use": "panel", "members": ["one"]},
        },
        scorers=[
            {"use": "judge", "judge": "absent", "rubric": "{{ tpoic }}"},
            {"use": "judge", "id": "b", "judge": "absent", "rubric": "x"},
        ],
    )
    answer = project.call("validate", "demo")

    keys = sorted(record["key"] for record in answer.envelope["errors"])
    assert answer.exit_code == 1
    assert [key for key in keys if key.startswith("judges.")] == [
        "judges.four.members",
        "judges.one.model",
        "judges.one.modell",
        "judges.one.retries",
        "judges.three.use",
        "judges.two",
    ]
    assert "tpoic" in answer.stdout
    assert 'no table \\"judges.absent\\"' in answer.stdout


def test_rubric_may_be_a_file_of_the_suite_and_its_text_is_part_of_the_run_s_identity(project: Project) -> None:
    with JudgeServer([reply(completion('{"score": 1}'))]) as server:
        suite = judged(server.url)
        suite["scorers"][0]["rubric"] = "file://r.txt"
        directory = project.suite(cases=cases(), **suite)
        (directory / "r.txt").write_text("Is it blue?", encoding="utf-8")
        project.call("run", "demo", "--run-id", "r")
        again = project.call("run", "demo", "--run-id", "r")
        (directory / "r.txt").write_text("Is it green?", encoding="utf-8")
        other = project.call("run", "demo", "--run-id", "r")

        assert "Is it blue?" in server.requests[0].document["messages"][1]["content"]
    assert (again.data["existing"], other.error_codes) == (True, ["E_RUN_CONFLICT"])
    (directory / "r.txt").unlink()
    assert "r.txt does not exist" in project.call("validate", "demo").stdout


@pytest.mark.parametrize("runner", [{"env": {"AGENT_MODEL": "m1"}}, {"argv": ["true", "--model", "other/M1"]}])
def test_agent_that_judges_itself_is_warned_of(project: Project, runner: dict[str, Any]) -> None:
    project.suite(cases=cases(), runner={"argv": ["true"], **runner}, **judged("http://127.0.0.1:1"))

    assert "W_SELF_JUDGE" in project.call("validate", "demo").warning_codes


def test_panel_of_judges_is_asked_with_retries_and_cache(project: Project) -> None:
    with JudgeServer([reply({}, 503), reply(completion('{"score": 1}'))]) as server:
        suite = judged(server.url)
        suite["judges"]["other"] = {**suite["judges"]["strict"], "model": "m2"}
        suite["judges"]["both"] = {"use": "panel", "members": ["strict", "other"]}
        suite["scorers"][0]["judge"] = "both"
        project.suite(cases=cases(), **suite)
        answer = project.call("run", "demo", "--run-id", "r")

        assert len(server.requests) == 3
    assert answer.data["run"]["status_counts"]["pass"] == 1
    (line,) = (project.path / "evals/runs/r/cases/c0/scorers/judge.replies.jsonl").read_text().splitlines()
    assert [vote["judge"] for vote in json.loads(line)["details"]["votes"]] == ["strict", "other"]


def test_panel_that_asks_itself_is_refused(project: Project) -> None:
    suite = judged("http://127.0.0.1:1")
    suite["judges"]["loop"] = {"use": "panel", "members": ["loop", "strict"]}
    suite["scorers"][0]["judge"] = "loop"
    project.suite(cases=cases(), **suite)
    answer = project.call("plan", "demo")

    assert answer.exit_code == 3
    assert "needs itself" in answer.stdout


def test_recording_of_a_run_is_replayed_without_a_server(project: Project) -> None:
    with JudgeServer([reply(completion('{"score": 0.75}'))]) as server:
        directory = project.suite(cases=cases(), **judged(server.url))
        project.call("run", "demo", "--run-id", "first")
    kept = project.path / "evals/runs/first/cases/c0/scorers/judge.replies.jsonl"
    document = json.loads((directory / "suite.json").read_text())
    document["judges"] = {"strict": {"use": "replay", "files": ["replies.jsonl"]}}
    (directory / "suite.json").write_text(json.dumps(document))
    (directory / "replies.jsonl").write_bytes(kept.read_bytes())
    project.call("run", "demo", "--run-id", "again")

    assert [score["score"] for score in scores(project, "again")] == [0.75]


@pytest.mark.parametrize("act", [silence(), reply({}, 429, {"retry-after": "100"})], ids=["silence", "long wait"])
def test_ctrl_c_waits_for_no_judge(project: Project, act: Act) -> None:
    asked = threading.Event()

    def noted(exchange: Exchange) -> None:
        asked.set()
        act(exchange)

    with JudgeServer([noted]) as server:
        project.suite(cases=cases(3), **judged(server.url))
        process = project.start("run", "demo", "--run-id", "r")
        assert asked.wait(20)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=120)

    assert (process.returncode, b"E_INTERRUPTED" in errors) == (130, True)


def test_workers_in_processes_of_their_own_get_the_judge_s_variables(project: Project) -> None:
    with JudgeServer([reply(completion('{"score": 1}'))]) as server:
        project.suite(cases=cases(2), **judged(server.url, api_key_env="ACME", headers={"x-key": "${OTHER}"}))
        variables = {"ACME": KEY, "OTHER": "b", "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
        answer = project.call("run", "demo", "--run-id", "r", "--queue", "spoolctl", env=variables)

        assert [request.headers["x-key"] for request in server.requests] == ["b", "b"]
    assert answer.data["run"]["status_counts"]["pass"] == 2
