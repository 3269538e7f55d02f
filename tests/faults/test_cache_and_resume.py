"""Runs that exist already, or were cut: what was done is kept once, what was not is done, and nothing else is taken for it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.ledger import read_events

if TYPE_CHECKING:
    from tests.conftest import Project

EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}


def case(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "task": name, "expect": {"exact": "ok"}} | fields


def counting(project: Project) -> dict[str, Any]:
    """Return a runner that answers ok and leaves a line per trial outside of it."""
    line = f'task=$(cat "$EVALWRIGHT_TASK_FILE"); echo "$task" >> {project.path}/log; printf ok'
    return {"shell": True, "command": line}


def log_of(project: Project) -> list[str]:
    path = project.path / "log"
    return path.read_text().split() if path.exists() else []


def cut(project: Project, run_id: str, finished: int, torn: bytes = b"") -> None:
    """Make of a finished run what a SIGKILL leaves after so many finished trials, with a torn last line of the ledger."""
    run = project.run_dir(run_id)
    (run / "manifest.json").unlink()
    (run / "report.md").unlink()
    lines = (run / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    kept: list[bytes] = []
    done: list[str] = []
    for line in lines:
        event = json.loads(line)
        if event["type"] == "TRIAL_FINISHED":
            if len(done) == finished:
                break
            done.append(event["data"]["case"])
        if event["type"] == "RUN_FINISHED":
            break
        kept.append(line)
    last = json.loads(kept[-1])
    (run / "ledger.jsonl").write_bytes(b"".join(kept) + torn)
    (run / "ledger.head.json").write_text(json.dumps({"seq": last["seq"], "digest": last["digest"]}))
    for place in (run / "cases").iterdir():
        if place.name not in done:
            shutil.rmtree(place)


def run_once(project: Project, **more: Any) -> Path:
    directory = project.suite(cases=[case(name) for name in "abcd"], runner=counting(project), **more)
    answer = project.call("run", "demo", "--run-id", "r", "--jobs", "1", env=EPOCH)
    assert answer.data["run"]["status_counts"]["pass"] == 4
    return directory


# the same run again


@pytest.mark.parametrize("task", ["ok", "no"])
def test_existing_run_gives_the_exit_code_and_hash_of_the_first(project: Project, task: str) -> None:
    runner = {"shell": True, "command": f"echo x >> {project.path}/log; printf {task}"}
    project.suite(cases=[case("a")], runner=runner)
    words = ("run", "demo", "--run-id", "r", "--fail-on-fail")
    first, second = project.call(*words), project.call(*words)
    assert first.exit_code == second.exit_code == (0 if task == "ok" else 6)
    assert "existing" not in first.data
    assert second.data == first.data | {"existing": True}
    resumed = project.call("run", "--resume", "r", "--fail-on-fail")
    assert (resumed.exit_code, resumed.warning_codes) == (first.exit_code, ["W_RESUME_NOTHING_PENDING"])
    assert resumed.data["existing"] is True
    assert log_of(project) == ["x"]


def edit_suite(directory: Path) -> None:
    document = json.loads((directory / "suite.json").read_text())
    document["runner"]["env"] = {"MODE": "b"}
    (directory / "suite.json").write_text(json.dumps(document))


def edit_case(directory: Path) -> None:
    text = (directory / "cases.jsonl").read_text()
    (directory / "cases.jsonl").write_text(text.replace('"task": "a"', '"task": "other"'))


def writer(path: str, content: str = "other") -> Callable[[Path], object]:
    return lambda directory: (directory / path).write_text(content)


EDITS: dict[str, Callable[[Path], object]] = {
    "fixture file": writer("fixtures/w/a.txt"),
    "new fixture file": writer("fixtures/w/new.txt"),
    "fixture mode": lambda directory: (directory / "fixtures/w/a.txt").chmod(0o755),
    "fixture link": lambda directory: (directory / "fixtures/w/link").symlink_to("a.txt"),
    "removed fixture file": lambda directory: (directory / "fixtures/w/a.txt").unlink(),
    "empty fixture directory": lambda directory: (directory / "fixtures/w/empty").mkdir(),
    "hidden test": writer("hidden/test.py"),
    "new hidden test": writer("hidden/more.py"),
    "gold": writer("gold/a.txt"),
    "diff": writer("change.diff", "--- x\n+++ y\n"),
    "agent's file": writer("agent/prompt.md"),
    "case": edit_case,
    "suite": edit_suite,
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS.keys())
def test_existing_run_of_other_inputs_is_a_conflict(project: Project, edit: Callable[[Path], object]) -> None:
    files = {"hidden/test.py": "x", "gold/a.txt": "x", "change.diff": "--- a\n+++ b\n", "agent/prompt.md": "x"}
    cases = [case("a", hidden="hidden", gold="gold", diff="change.diff")]
    directory = project.suite(cases=cases, runner=counting(project) | {"files": ["agent"]}, files=files)
    assert project.call("run", "demo", "--run-id", "r").exit_code == 0
    edit(directory)
    answer = project.call("run", "demo", "--run-id", "r")
    assert (answer.exit_code, answer.error_codes) == (5, ["E_RUN_CONFLICT"])
    assert answer.envelope["errors"][0]["differing"]
    assert log_of(project) == ["a"]


@pytest.mark.parametrize("words", [["--timeout", "7"], ["--case", "a"], ["--max-cases", "1"]], ids=lambda words: words[0])
def test_existing_run_under_other_flags_is_a_conflict(project: Project, words: list[str]) -> None:
    project.suite(cases=[case("a"), case("b")], runner=counting(project))
    project.call("run", "demo", "--run-id", "r")
    answer = project.call("run", "demo", "--run-id", "r", *words)
    assert (answer.exit_code, answer.error_codes) == (5, ["E_RUN_CONFLICT"])


def test_what_a_run_does_not_use_makes_no_conflict(project: Project) -> None:
    directory = project.suite(cases=[case("a"), case("b", workspace="other")], runner=counting(project), files={"other/x": "x"})
    project.call("run", "demo", "--run-id", "r", "--case", "a")
    (directory / "other" / "x").write_text("changed")
    (directory / "README.md").write_text("new")
    lines = (directory / "cases.jsonl").read_text().splitlines()
    whole = [json.dumps(dict(reversed(json.loads(lines[0]).items()))), json.dumps(json.loads(lines[1]) | {"task": "changed"})]
    (directory / "cases.jsonl").write_text("\r\n".join(whole))
    document = json.loads((directory / "suite.json").read_text())
    (directory / "suite.json").write_text(json.dumps(dict(reversed(document.items())), indent=3))
    answer = project.call("run", "demo", "--run-id", "r", "--case", "a")
    assert (answer.exit_code, answer.data["existing"]) == (0, True)


def test_moved_suite_is_the_same_suite(project: Project) -> None:
    directory = run_once(project)
    (project.path / "elsewhere").mkdir()
    directory.rename(project.path / "elsewhere" / "demo")
    answer = project.call("run", "elsewhere/demo", "--run-id", "r", env=EPOCH)
    assert (answer.exit_code, answer.data["existing"]) == (0, True)


def test_repeats_are_run_and_never_taken_from_an_earlier_run(project: Project) -> None:
    project.suite(cases=[case("a")], runner=counting(project))
    assert project.call("run", "demo", "--run-id", "one").exit_code == 0
    assert project.call("run", "demo", "--run-id", "two").exit_code == 0
    assert log_of(project) == ["a", "a"]


def test_default_ids_of_runs_in_one_second_differ(project: Project) -> None:
    project.suite(cases=[case("a")], runner=counting(project))
    answers = [project.call("run", "demo", env=EPOCH) for _ in range(3)]
    assert len({answer.data["run_id"] for answer in answers}) == 3
    assert not any(answer.data["run_id"].startswith("2023-11-14") for answer in answers)


# a cut run


@pytest.mark.parametrize("finished", [0, 1, 3, 4])
@pytest.mark.parametrize("torn", [b"", b'{"v":1,"seq":99,"ty'], ids=["whole", "torn"])
def test_resume_keeps_what_was_finished_and_runs_the_rest_once(project: Project, finished: int, torn: bytes) -> None:
    run_once(project)
    uninterrupted = (project.run_dir("r") / "manifest.json").read_bytes()
    first = project.call("report", "r").data
    cut(project, "r", finished, torn)
    answer = project.call("run", "--resume", "r", "--jobs", "1", env=EPOCH)
    assert answer.exit_code == 0
    assert log_of(project) == [*"abcd", *"abcd"[finished:]]
    assert (project.run_dir("r") / "manifest.json").read_bytes() == uninterrupted
    assert project.call("report", "r").data == first
    assert project.call("verify", "r").data["ok"] is True
    assert ("W_LEDGER_TAIL_REPAIRED" in answer.warning_codes) is bool(torn)
    again = project.call("run", "--resume", "r")
    assert (again.warning_codes, len(log_of(project))) == (["W_RESUME_NOTHING_PENDING"], 8 - finished)


def test_status_of_a_cut_run_counts_nothing_as_running(project: Project) -> None:
    run_once(project)
    cut(project, "r", 1)
    status = project.call("status", "r").data
    assert status["state"] == "stale"
    assert status["progress"] == {"case_count": 4, "terminal": 1, "running": 0, "pending": 3}
    assert [case["status"] for case in status["cases"]] == ["pass", "pending", "pending", "pending"]
    assert "run --resume r" in status["recommended_action"]["command"]


def test_resume_counts_no_case_twice_and_numbers_its_attempts(project: Project) -> None:
    run_once(project)
    cut(project, "r", 2)
    project.call("run", "--resume", "r", "--jobs", "1")
    events = read_events(project.run_dir("r") / "ledger.jsonl")
    finished = [event["data"]["case"] for event in events if event["type"] == "TRIAL_FINISHED"]
    assert sorted(finished) == [*"abcd"]
    attempts = [(event["data"]["case"], event["data"]["attempt"]) for event in events if event["type"] == "TRIAL_ATTEMPT"]
    assert ("c", 2) in attempts
    assert len(attempts) == len(set(attempts))


def test_run_cut_twice_loses_nothing_that_either_attempt_finished(project: Project) -> None:
    run_once(project)
    cut(project, "r", 1)
    project.call("run", "--resume", "r", "--jobs", "1")
    cut(project, "r", 3)
    project.call("run", "--resume", "r", "--jobs", "1")
    assert log_of(project) == [*"abcd", *"bcd", "d"]


def test_resume_uses_the_suite_as_it_was_started(project: Project) -> None:
    directory = run_once(project)
    cut(project, "r", 2)
    edit_suite(directory)
    (directory / "cases.jsonl").write_text("")
    (directory / "fixtures" / "w" / "a.txt").write_text("changed")
    answer = project.call("run", "--resume", "r", "--jobs", "1")
    assert answer.exit_code == 0
    assert answer.data["run"]["status_counts"] == {"pass": 4, "fail": 0, "error": 0}
    shutil.rmtree(directory)
    cut(project, "r", 2)
    assert project.call("run", "--resume", "r").exit_code == 0


@pytest.mark.parametrize("file", ["suite.json", "cases.jsonl"])
def test_resume_of_an_edited_snapshot_is_a_conflict(project: Project, file: str) -> None:
    run_once(project)
    cut(project, "r", 2)
    {"suite.json": edit_suite, "cases.jsonl": edit_case}[file](project.run_dir("r") / "suite-snapshot")
    answer = project.call("run", "--resume", "r")
    assert (answer.exit_code, answer.error_codes) == (5, ["E_RUN_CONFLICT"])
    assert len(log_of(project)) == 4


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": "evalwright/1"}', '{"format": "evalwright/9"}', "{}"])
def test_resume_of_a_run_whose_record_is_damaged_is_corrupt(project: Project, text: str) -> None:
    run_once(project)
    cut(project, "r", 2)
    (project.run_dir("r") / "run.json").write_text(text)
    answer = project.call("run", "--resume", "r")
    assert (answer.exit_code, answer.error_codes) == (1, ["E_RUN_CORRUPT"])
    assert len(log_of(project)) == 4


def test_resume_of_a_ledger_damaged_in_the_middle_is_refused(project: Project) -> None:
    run_once(project)
    cut(project, "r", 2)
    path = project.run_dir("r") / "ledger.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"status":"pass"', b'"status":"fail"', 1))
    before = path.read_bytes()
    answer = project.call("run", "--resume", "r")
    assert (answer.exit_code, answer.error_codes) == (1, ["E_RUN_CORRUPT"])
    assert path.read_bytes() == before


def test_resume_redoes_a_trial_whose_seal_did_not_survive(project: Project) -> None:
    run_once(project)
    cut(project, "r", 2)
    project.artifact("r", "a", "bundle.json").unlink()
    answer = project.call("run", "--resume", "r", "--jobs", "1")
    assert "W_TRIAL_REDONE" in answer.warning_codes
    assert log_of(project) == [*"abcd", "a", "c", "d"]
    assert project.call("verify", "r").data["ok"] is True


def test_resume_never_makes_a_changed_answer_pass(project: Project) -> None:
    runner = {"shell": True, "command": 'printf %s "$(cat "$EVALWRIGHT_TASK_FILE")"'}
    project.suite(cases=[case("no"), case("ok")], runner=runner)
    project.call("run", "demo", "--run-id", "r", "--jobs", "1")
    cut(project, "r", 1)
    project.artifact("r", "no", "output.txt").write_text("ok")
    answer = project.call("run", "--resume", "r")
    statuses = {item["id"]: item["status"] for item in project.call("report", "r").data["cases"]}
    assert statuses["no"] != "pass"
    assert answer.data["run"]["status_counts"]["pass"] == 1


def test_resume_after_the_last_trial_only_writes_the_manifest(project: Project) -> None:
    run_once(project)
    cut(project, "r", 4)
    answer = project.call("run", "--resume", "r")
    assert answer.warning_codes[-1] == "W_RESUME_NOTHING_PENDING"
    assert len(log_of(project)) == 4


def test_of_two_resumes_at_once_exactly_one_runs(project: Project) -> None:
    run_once(project)
    cut(project, "r", 1)
    started = [project.start("run", "--resume", "r", "--jobs", "1") for _ in range(3)]
    try:
        outputs = [process.communicate(timeout=120)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    documents = [json.loads(output) for output in outputs]
    busy = [d for d in documents if not d["ok"]]
    assert all(d["errors"][0]["code"] == "E_RUN_BUSY" for d in busy)
    assert sorted(log_of(project)) == sorted("abcdbcd")
    assert sum(d["ok"] and "existing" not in d["data"] for d in documents) == 1
    assert project.call("verify", "r").data["ok"] is True


def test_foreign_unfinished_run_is_not_resumed(project: Project) -> None:
    run_once(project)
    cut(project, "r", 1)
    path = project.run_dir("r") / "run.json"
    record = json.loads(path.read_text())
    del record["format"]
    path.write_text(json.dumps(record))
    answer = project.call("run", "--resume", "r")
    assert (answer.exit_code, answer.error_codes) == (1, ["E_RUN_CORRUPT"])


# replay


def test_replay_runs_what_failed_from_the_present_suite_and_links_its_source(project: Project) -> None:
    runner = {"shell": True, "command": 'printf %s "$(cat "$EVALWRIGHT_TASK_FILE")"'}
    directory = project.suite(cases=[case("ok"), case("no"), case("gone")], runner=runner)
    project.call("run", "demo", "--run-id", "r")
    lines = [case("ok"), case("no", task="ok")]
    text = "".join(json.dumps({"workspace": "fixtures/w"} | line) + "\n" for line in lines)
    (directory / "cases.jsonl").write_text(text)
    answer = project.call("replay", "--failed", "r", "--run-id", "again")
    assert answer.exit_code == 0
    assert (answer.data["replayed_from"], answer.data["cases_replayed"]) == ("r", 1)
    assert "W_REPLAY_CASE_ABSENT" in answer.warning_codes
    assert answer.data["run"] == {"ok": True, "case_count": 1, "status_counts": {"pass": 1, "fail": 0, "error": 0}}
    assert json.loads((project.run_dir("again") / "manifest.json").read_text())["replayed_from"] == "r"
    conflict = project.call("replay", "--failed", "r", "--run-id", "again")
    assert (conflict.exit_code, conflict.error_codes) == (5, ["E_RUN_CONFLICT"])
    assert project.call("replay", "--failed", "r", "--run-id", "again", "--force").exit_code == 0


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_replay_never_replaces_its_source_or_an_unfinished_run(project: Project, force: list[str]) -> None:
    project.suite(cases=[case("no")], runner={"argv": ["printf", "no"]})
    project.call("run", "demo", "--run-id", "r")
    project.call("run", "demo", "--run-id", "other")
    own = project.call("replay", "--failed", "r", "--run-id", "r", *force)
    assert (own.exit_code, own.error_codes) == (5, ["E_RUN_CONFLICT"])
    (project.run_dir("other") / "manifest.json").unlink()
    unfinished = project.call("replay", "--failed", "r", "--run-id", "other", *force)
    assert (unfinished.exit_code, unfinished.error_codes) == (4, ["E_RUN_BUSY"])
    assert (project.run_dir("other") / "cases" / "no").is_dir()


def test_replay_that_cannot_start_keeps_the_run_that_it_would_replace(project: Project) -> None:
    project.suite(cases=[case("no")], runner={"argv": ["printf", "no"]})
    project.call("run", "demo", "--run-id", "r")
    project.call("replay", "--failed", "r", "--run-id", "again")
    answer = project.call("replay", "--failed", "r", "--run-id", "again", "--force", "--sandbox", "nosuch")
    assert answer.exit_code == 1
    assert (project.run_dir("again") / "manifest.json").is_file()


def test_workers_write_whole_lines_when_runs_share_an_index(project: Project) -> None:
    project.suite(cases=[case("a")], runner={"argv": ["printf", "ok"]})
    words = [sys.executable, "-m", "evalwright", "run", "demo"]
    started = [
        subprocess.Popen(
            [*words, "--run-id", f"r{number}"], cwd=project.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for number in range(4)
    ]
    assert [process.wait(timeout=120) for process in started] == [0, 0, 0, 0]
    lines = (project.path / "evals" / "runs" / ".index.jsonl").read_bytes().splitlines()
    assert sorted(json.loads(line)["run_id"] for line in lines) == ["r0", "r1", "r2", "r3"]
    assert project.call("jobs", "list").data["count"] == 4
