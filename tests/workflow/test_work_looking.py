"""Looking at runs: status, inbox, events, metrics; through a pipe, on a terminal, and while somebody drives."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Project, clean_environment
from tests.workflow.work_project import REVIEW, WorkProject, work_project
from tests.zygote import Zygote

FINDINGS = {"findings": [{"severity": "P1", "summary": "\x1b[2Jno \x07tests"}, {"severity": "P3", "summary": "a name"}]}
USAGE = '{"usage": {"input": 100, "output": 20, "cost": 0.25}}'
TRIES = 60


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> WorkProject:
    """Return a repository with runs: one succeeded, a reviewer stopped one, one failed, one lacks its tools."""
    made = work_project(tmp_path_factory.mktemp("shown"), zygote)
    told = f"printf '%s' '{USAGE}' > $EVALWRIGHT_OUTPUT_FILE; true"
    made.driven("done", on_gate="approve", workers={"verify": told})
    review = {"steps": [{"id": "build"}, {"id": "review"}, {"id": "fix"}]}
    ways = [{"from": "review", "on": "findings-blocking", "to": "fix"}, {"from": "fix", "on": "succeeded", "to": "review"}]
    made.driven(
        "found",
        workflow=review | {"transitions": [*ways, {"from": "review", "on": "succeeded", "to": "end"}]},
        steps=review["steps"],
        workers={"review": REVIEW, "fix": "true"},
        env={"FINDINGS": json.dumps(FINDINGS)},
    )
    made.driven("bad", on_gate="reject", steps=[{"id": "build"}])
    made.driven("lost", workers={"verify": "echo no tools; exit 75"})
    return made


@pytest.fixture
def repository(tmp_path: Path, zygote: Zygote) -> WorkProject:
    """Return a repository without runs."""
    return work_project(tmp_path, zygote)


@pytest.mark.parametrize(("run", "code"), [("done-1", 0), ("found-1", 10), ("bad-1", 20), ("lost-1", 30)])
def test_status_exits_as_the_run_stands(shown: WorkProject, run: str, code: int) -> None:
    answer = shown.work("status", run)

    assert (answer.exit_code, answer.data["run"]) == (code, run)
    assert answer.envelope["commands"]


def test_status_without_a_run_shows_all_those_that_wait_before_those_that_ended(shown: WorkProject) -> None:
    answer = shown.work("status")

    assert answer.exit_code == 0
    assert [row["run"] for row in answer.data["runs"]] == ["lost-1", "found-1", "bad-1", "done-1"]
    assert [line.partition(" ")[0] for line in shown.text("status").splitlines()] == ["lost-1", "found-1", "bad-1", "done-1"]


def test_status_tells_budgets_and_the_last_lines_of_the_log(shown: WorkProject) -> None:
    data = shown.work("status", "lost-1").data

    assert {"kind": "attempts", "step": "verify", "used": 0, "limit": 4, "left": 4} in data["budgets"]
    assert data["log"]["tail"] == ["no tools"]
    assert "    | no tools\n" in shown.text("status", "lost-1")


def test_review_rounds_of_all_runs_of_a_work_are_used_up_together(shown: WorkProject) -> None:
    review = [{"id": "review"}, {"id": "fix"}]
    ways = [{"from": "review", "on": "findings-blocking", "to": "fix"}]
    for _ in range(2):
        shown.driven(
            "twice",
            steps=review,
            workflow={"transitions": ways, "budgets": {"review_rounds_per_work": 3}},
            workers={"review": REVIEW, "fix": "true"},
            env={"FINDINGS": json.dumps(FINDINGS)},
        )

    budgets = shown.work("status", "twice-2").data["budgets"]
    shown.work("stop", "twice-2")
    shutil.rmtree(shown.run_files("twice-1"))
    shutil.rmtree(shown.run_files("twice-2"))

    assert {"kind": "reviews", "used": 2, "limit": 3, "left": 1} in budgets


@pytest.mark.acceptance
def test_closed_pipe_ends_quietly(shown: WorkProject) -> None:
    for words in (["events", "done-1"], ["events", "done-1", "--follow"]):
        process = shown.start("work", *words)
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == b""
        process.wait(60)
        process.stderr.close()


def test_status_in_a_repository_without_runs_says_how_to_start(repository: WorkProject) -> None:
    assert repository.work("status").data == {"runs": [], "count": 0}
    assert repository.text("status") == "no runs yet\n"
    assert repository.text("metrics") == "no runs yet\n"


def test_status_outside_a_repository_is_an_error_with_its_cure(project: Project) -> None:
    answer = project.call("work", "status")

    assert (answer.exit_code, answer.error_codes) == (1, ["E_CASE_INVALID"])
    assert "git init" in answer.envelope["errors"][0]["hint"]


def test_inbox_shows_every_open_request_the_oldest_first(shown: WorkProject) -> None:
    answer = shown.work("inbox")

    assert answer.exit_code == 0
    assert [(row["run"], row["kind"]) for row in answer.data["requests"]] == [
        ("found-1", "finding-triage"),
        ("lost-1", "infra"),
    ]
    assert [row["run"] for row in shown.work("inbox", "--work", "lost").data["requests"]] == ["lost-1"]
    assert all(row["age_seconds"] >= 0 for row in answer.data["requests"])
    assert "  a yes means: step verify is done again\n" in shown.text("inbox")


def test_commands_of_the_inbox_can_be_pasted_from_elsewhere(tmp_path: Path, zygote: Zygote) -> None:
    place = tmp_path / "it's here; touch x"
    place.mkdir()
    made = work_project(place, zygote)
    made.waiting()

    row = Project(tmp_path, zygote).call("work", "inbox", "--repo", str(place)).data["requests"][0]
    reject = next(command for command in row["commands"] if " reject " in command)

    assert Project(tmp_path, zygote).call(*shlex.split(reject)[1:]).exit_code == 20
    assert made.work("inbox").data == {"requests": [], "count": 0}
    assert "nothing waits for you" in made.text("inbox")


def test_decision_that_nobody_has_taken_up_is_no_open_request(repository: WorkProject) -> None:
    repository.waiting()
    repository.work("approve", "w-1", "--no-wait", "--by", "ada")

    assert repository.work("inbox").data["count"] == 0
    data = repository.work("status", "w-1").data
    assert (data["interrupted"], data["decision"]) == (True, {"decision": "approved", "by": "ada"})
    assert "approved by ada; go on with: evalwright work resume w-1" in repository.text("status", "w-1")


def test_events_through_a_pipe_are_the_lines_of_the_ledger(shown: WorkProject) -> None:
    answer = shown.work("events", "done-1")

    assert answer.stdout == (shown.run_files("done-1") / "ledger.jsonl").read_text()
    assert shown.work("events", "done-1", "--json").data["count"] == answer.stdout.count("\n")


def test_events_for_people_are_one_line_each(shown: WorkProject) -> None:
    lines = shown.text("events", "done-1").splitlines()
    count = shown.work("events", "done-1").stdout.count("\n")

    assert len(lines) == count
    assert re.fullmatch(r"\d\d:\d\d:\d\d +1 RUN_CREATED +toy from [0-9a-f]{12}", lines[0])
    assert any("STEP_FINISHED" in line and "build attempt 1 succeeded in" in line for line in lines)


@pytest.mark.parametrize("words", [["status", "found-1"], ["inbox"], ["events", "found-1"]])
def test_nothing_that_an_agent_wrote_moves_the_cursor(shown: WorkProject, words: list[str]) -> None:
    text = shown.text(*words)

    assert "no" in text
    assert not any(ord(letter) < 32 and letter != "\n" for letter in text)


def test_metrics_count_a_run_and_all_of_them(shown: WorkProject) -> None:
    rows = {row["run"]: row for row in shown.work("metrics").data["runs"]}
    total = shown.work("metrics").data["total"]

    assert (rows["done-1"]["tokens"], rows["done-1"]["cost"], rows["done-1"]["human_waits"]) == (120, 0.25, 1)
    assert rows["done-1"]["attempts"] == {"build": 1, "verify": 1}
    assert rows["bad-1"]["tokens"] is None
    assert (rows["found-1"]["review_rounds"], rows["found-1"]["findings"]) == (1, {"P0": 0, "P1": 1, "P2": 0, "P3": 1})
    assert rows["lost-1"]["infrastructure_failures"] == 1
    assert (total["runs"], total["tokens"], total["attempts"]["build"]) == (4, 120, 4)
    assert [row["run"] for row in shown.work("metrics", "--work", "bad").data["runs"]] == ["bad-1"]
    assert shown.work("metrics", "bad-1").data["total"]["runs"] == 1


def test_run_with_a_damaged_ledger_is_named_and_hides_no_other(repository: WorkProject) -> None:
    repository.waiting("a")
    shutil.copytree(repository.run_files("a-1"), repository.run_files("b-1"))
    ledger = repository.run_files("a-1") / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b"RUN_STARTED", b"RUN_STOPPED", 1))

    answer = repository.work("status")

    assert [row["run"] for row in answer.data["runs"]] == ["b-1"]
    assert answer.warning_codes == ["W_ARTIFACT_TAMPERED"]
    assert "a-1" in answer.envelope["warnings"][0]["message"]


class Driven:
    """A run whose step ``build`` has said something and now waits for the test."""

    def __init__(self, repository: WorkProject) -> None:
        self.repository = repository
        self.begun, self.go = repository.path / "begun", repository.path / "go"
        for path in (self.begun, self.go):
            os.mkfifo(path)
        line = f"printf 'first\\n\\033[31mhalf\\rworking\\n'; echo > {self.begun}; cat {self.go}"
        config = repository.config(workers={"build": line})
        self.driver = repository.start("work", "start", "--config", config)
        self.begun.read_bytes()

    def finish(self) -> None:
        """Let the step end."""
        self.go.write_bytes(b"")

    def close(self) -> None:
        """End what is left."""
        self.driver.kill()
        self.driver.communicate(timeout=60)


@pytest.fixture
def driven(repository: WorkProject) -> Iterator[Driven]:
    """Return a run in the middle of its step."""
    made = Driven(repository)
    yield made
    made.close()


def eventually(look: Callable[[], Any]) -> Any:
    """Return the first answer that is true."""
    for _ in range(TRIES):
        found = look()
        if found:
            return found
    raise AssertionError("it never came")


def test_status_of_a_running_step_tells_who_drives_how_long_and_what_it_said(driven: Driven, shown: WorkProject) -> None:
    shutil.copytree(shown.run_files("done-1"), driven.repository.run_files("done-1"))

    def status() -> Any:
        data = driven.repository.work("status", "w-1").data
        return data if data["log"] and len(data["log"]["tail"]) == 2 else None

    data = eventually(status)

    assert data["log"]["tail"] == ["first", "working"]
    assert data["driver"]["pid"] == driven.driver.pid
    assert (data["running"]["step"], data["running"]["attempt"]) == ("build", 1)
    assert data["running"]["typical_seconds"] > 0
    assert data["running"]["elapsed_seconds"] >= 0
    assert data["running"]["output_age_seconds"] >= 0
    assert driven.repository.work("status").data["runs"][0]["run"] == "w-1"
    text = driven.repository.text("status", "w-1")
    assert f"driven by process {driven.driver.pid} on " in text
    assert re.search(r"build attempt 1: .* so far, usually .*; last output .* ago", text)


@pytest.mark.acceptance
def test_run_whose_driver_died_says_how_to_go_on(driven: Driven) -> None:
    driven.driver.send_signal(signal.SIGKILL)
    driven.driver.wait(60)

    answer = driven.repository.work("status", "w-1")

    assert (answer.data["interrupted"], answer.data["driver"]) == (True, None)
    assert answer.envelope["commands"][0]["command"] == "evalwright work resume w-1"


def test_watch_and_follow_through_a_pipe_end_when_the_run_waits(driven: Driven) -> None:
    repository = driven.repository
    watching = repository.start("work", "status", "w-1", "--watch")
    following = repository.start("work", "events", "w-1", "--follow")
    assert watching.stdout is not None
    assert following.stdout is not None
    first = watching.stdout.readline()
    event = following.stdout.readline()
    driven.finish()

    watched, followed = watching.stdout.read(), following.stdout.read()
    watching.communicate(timeout=60)
    following.communicate(timeout=60)

    assert first == b"w-1 \xc2\xb7 w \xc2\xb7 RUNNING at build\n"
    assert b"WAITING_HUMAN" in watched
    assert b"  evalwright work approve w-1 " in watched
    assert b"\x1b" not in watched
    assert (watching.returncode, following.returncode) == (10, 10)
    assert event + followed == (repository.run_files("w-1") / "ledger.jsonl").read_bytes()


def test_watch_with_json_leaves_stdout_to_the_envelope(shown: WorkProject) -> None:
    answer = shown.work("status", "found-1", "--watch", "--json")

    assert (answer.exit_code, answer.data["run"]) == (10, "found-1")
    assert "found-1 · found · WAITING_HUMAN" in answer.stderr


def test_watch_on_a_terminal_draws_over_what_it_drew(driven: Driven) -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "evalwright", "work", "status", "w-1", "--watch"],
        cwd=driven.repository.path,
        env=clean_environment() | {"TERM": "xterm", "COLUMNS": "60", "LINES": "20"},
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=subprocess.PIPE,
    )
    os.close(follower)
    seen = b""
    while b"F\x1b[J" not in seen:
        seen += os.read(leader, 4096)
    driven.finish()
    seen += _rest(leader)
    process.communicate(timeout=60)

    screens = seen.decode().replace("\r\n", "\n")
    assert process.returncode == 10
    assert "RUNNING at build" in screens
    assert screens.rpartition("\x1b[J")[2].startswith("w-1 · w · WAITING_HUMAN")
    drawn = [line for line in re.split(r"\n|\x1b\[\d*[FJ]", screens.rpartition("\x1b[J")[0]) if line]
    assert max(map(len, drawn)) < 60


def _rest(leader: int) -> bytes:
    seen = b""
    try:
        while block := os.read(leader, 4096):
            seen += block
    except OSError:
        pass
    os.close(leader)
    return seen
