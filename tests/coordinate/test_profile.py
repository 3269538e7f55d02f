"""Profiles: what is measured of every trial, under every queue, and what stays as it was."""

from __future__ import annotations

import json
import threading
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Project

from evalwright.coordinate.profile import Profile
from evalwright.errors import RunCorrupt, RunNotFound
from evalwright.ledger import read_events
from evalwright.report import verify_run
from evalwright.report.figures.spans import Row, RunSpans
from evalwright.report.forms.profile import profile_picture, profile_text
from evalwright.rundir import RunDirectory
from evalwright.spans import NO_SPANS, Span, Spans, now

COORDINATOR = {"begin", "queue", "worker", "return", "take", "commit"}
WORKER = {"place", "bundle", "prepare", "services", "agent", "kill", "turn", "collect", "score", "release", "seal", "discard"}
DEEP = {"agent/open", "agent/command", "agent/command/spawn", "collect/scan", "collect/diff", "score/exact", "prepare/turn"}
FILES = ("profile.jsonl", "profile.txt", "profile.svg")


@pytest.fixture
def project(project: Project) -> Project:
    scorers = [{"use": "exact"}]
    cases = [{"id": name, "expect": {"exact": "x"}} for name in ("a", "b", "c")]
    project.suite(runner={"argv": ["printf", "x"]}, scorers=scorers, cases=cases)
    return project


def spans_of(run: Path) -> dict[tuple[str, int], dict[str, dict[str, Any]]]:
    found: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for line in (run / "profile.jsonl").read_text().splitlines():
        span = json.loads(line)
        found.setdefault((span["case"], span["attempt"]), {})[span["name"]] = span
    return found


@pytest.mark.parametrize("queue", ["local", "spoolctl"])
def test_profile_tells_of_every_trial_what_took_how_long(project: Project, queue: str) -> None:
    answer = project.call("run", "demo", "--run-id", "r", "--profile", "--queue", queue, "--format", "text")
    assert answer.exit_code == 0

    found = spans_of(project.run_dir("r"))

    assert found.keys() == {("a", 1), ("b", 1), ("c", 1)}
    for spans in found.values():
        assert spans.keys() == {"trial", *COORDINATOR, *(f"worker/{name}" for name in WORKER | DEEP)}
        for name, span in spans.items():
            around = spans[name.rpartition("/")[0] or "trial"]
            assert around["start_ns"] <= span["start_ns"]
            assert span["start_ns"] + span["duration_ns"] <= around["start_ns"] + around["duration_ns"]
            assert span["cpu_ns"] >= 0
        assert spans["trial"]["thread"] == "MainThread"
    assert (project.run_dir("r") / "profile.txt").read_text() in answer.stdout


def test_profile_leaves_evidence_and_hash_as_they_are(project: Project) -> None:
    with_it = project.call("run", "demo", "--run-id", "r", "--profile", "--json")
    without = project.call("run", "demo", "--run-id", "s", "--json")

    assert with_it.data["report_hash"] == without.data["report_hash"]
    run, other = RunDirectory(project.run_dir("r")), RunDirectory(project.run_dir("s"))
    assert verify_run(run)["ok"]
    assert all((run.path / name).is_file() and not (other.path / name).exists() for name in FILES)
    assert not any("spans" in event["data"] for event in read_events(run.ledger))
    for name in FILES:
        (run.path / name).unlink()
    assert verify_run(run)["ok"]


def test_answer_names_the_files_of_the_profile(project: Project) -> None:
    first = project.call("run", "demo", "--run-id", "r", "--profile", "--format", "json")
    without = project.call("run", "demo", "--run-id", "s", "--json")

    assert named(project, first.data["profile"]) == {"table": "profile.txt", "picture": "profile.svg", "spans": "profile.jsonl"}
    assert "profile" not in without.data
    assert project.call("run", "demo", "--run-id", "r", "--json").data == first.data | {"existing": True}
    (project.run_dir("r") / "profile.svg").unlink()
    assert project.call("run", "demo", "--run-id", "r", "--json").data["profile"].keys() == {"table", "spans"}


def test_each_of_several_runs_names_its_profile(project: Project) -> None:
    argv = ("run", "demo", "--run-id", "e", "--repeats", "2", "--profile")
    told = project.call(*argv, "--format", "text")
    again = project.call("run", "--resume", "e", "--repeats", "3", "--profile", "--format", "text")
    existing = project.call("run", "demo", "--run-id", "e", "--repeats", "3", "--profile", "--format", "json")

    tables = [str(Path(run["run_dir"]) / "profile.txt") for run in existing.data["runs"]]
    assert [run["profile"]["table"] for run in existing.data["runs"]] == tables
    assert [line.strip() for line in told.stdout.splitlines() if "profile" in line] == tables[:2]
    assert [line.strip() for line in again.stdout.splitlines() if "profile" in line] == tables[2:]


def named(project: Project, files: dict[str, str]) -> dict[str, str]:
    assert all((project.path / path).parent == project.run_dir("r") for path in files.values())
    return {key: Path(path).name for key, path in files.items() if (project.path / path).is_file()}


def test_resumed_run_goes_on_with_its_profile(project: Project) -> None:
    paid = {"argv": ["sh", "-c", """printf x; printf '{"cost": 1}' > "$EVALWRIGHT_USAGE_FILE" """]}
    cases = [{"id": name, "expect": {"exact": "x"}} for name in ("a", "b", "c")]
    project.suite("paid", runner=paid, scorers=[{"use": "exact"}], cases=cases)
    profile = project.run_dir("r") / "profile.jsonl"
    stopped = project.call("run", "paid", "--run-id", "r", "--profile", "--max-cost", "0.5", "--jobs", "1")
    assert (stopped.exit_code, len(spans_of(project.run_dir("r")))) == (4, 1)
    with profile.open("a") as file:
        file.write('{"case": "a", "attempt": 9, "na')

    assert project.call("run", "--resume", "r", "--max-cost", "9", "--profile").exit_code == 0

    assert RunSpans.read(profile).attempts == 3
    assert '"attempt": 9, "na\n{' in profile.read_text()
    assert "the mean of 3 attempts" in profile.with_suffix(".txt").read_text()


def test_run_with_no_attempt_left_to_measure_is_finished(project: Project) -> None:
    assert project.call("run", "demo", "--run-id", "r").exit_code == 0
    RunDirectory(project.run_dir("r")).manifest.unlink()

    answer = project.call("run", "--resume", "r", "--profile", "--json")

    assert (answer.exit_code, answer.warning_codes[-1]) == (0, "W_RESUME_NOTHING_PENDING")
    assert "table" not in answer.data["profile"]
    assert verify_run(RunDirectory(project.run_dir("r")))["ok"]


def test_attempt_that_is_made_again_is_measured_too(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    profile = Profile(run)
    begun = now()
    profile.begun(("a", 1), begun)
    profile.taken(("a", 1), {}, now(), counts=False)
    profile.begun(("a", 2), now())
    profile.taken(("a", 2), told(now()[0]), now(), counts=True)
    profile.durable([{"data": {"case": "a", "attempt": 2}}], now())
    profile.taken(("unknown", 1), {}, now(), counts=True)
    profile.publish()

    found = spans_of(tmp_path)
    assert found[("a", 1)].keys() == {"begin", "take", "trial"}
    assert found[("a", 2)].keys() == {"begin", "queue", "worker", "return", "take", "commit", "trial"}


@pytest.mark.parametrize("shift", [-(10**15), 10**15])
def test_worker_whose_clock_began_elsewhere_is_shown_behind_its_submission(tmp_path: Path, shift: int) -> None:
    profile = Profile(RunDirectory(tmp_path))
    profile.begun(("a", 1), now())
    profile.taken(("a", 1), told(now()[0] + shift), now(), counts=False)

    spans = spans_of(tmp_path)[("a", 1)]
    assert spans.keys() == {"begin", "worker", "take", "trial"}
    assert spans["worker"]["start_ns"] == spans["begin"]["start_ns"] + spans["begin"]["duration_ns"]


def told(start: int) -> dict[str, Any]:
    return {"spans": [["worker", start, 0, 0, "t"]]}


LINES = [
    ("a", "trial", 0, 100, 9),
    ("a", "worker", 10, 80, 8),
    ("a", "worker/agent", 20, 30, 3),
    ("a", "worker/agent", 60, 10, 1),
    ("a", "worker/lost/deep", 70, 5, 0),
    ("b", "trial", 1_000, 300, 0),
    ("b", "worker", 1_000, 300, 0),
    ("c", "trial", 0, 110, 0),
]


@pytest.fixture
def spans(tmp_path: Path) -> RunSpans:
    names = ("case", "name", "start_ns", "duration_ns", "cpu_ns")
    lines = [json.dumps(dict(zip(names, line, strict=True)) | {"attempt": 1, "thread": "t"}) for line in LINES]
    path = tmp_path / "profile.jsonl"
    path.write_text("\n".join(["[]", "no line", '{"case": 1}', *lines, '{"case": "a", "attem']))
    return RunSpans.read(path)


def test_times_are_added_up_by_name_and_what_lies_within_is_told_apart(spans: RunSpans) -> None:
    assert spans.attempts == 3
    assert spans.rows == [
        Row("trial", 3, 510, 130, 9),
        Row("worker", 2, 380, 335, 8),
        Row("worker/agent", 2, 40, 40, 4),
        Row("worker/lost/deep", 1, 5, 5, 0),
    ]


def test_median_attempt_is_shown_with_its_spans_in_order(spans: RunSpans) -> None:
    assert spans.case == "c"
    assert [span.name for span in spans.median] == ["trial"]


def test_table_has_a_row_a_span_and_shares_of_the_whole(spans: RunSpans) -> None:
    rows = {line.split()[0]: line.split()[1:] for line in profile_text(spans).splitlines()[3:7]}

    assert rows["trial"] == ["3", "0.000", "100.0", "%", "0.000", "0.000"]
    assert rows["agent"][2] == "7.8"


def test_picture_has_a_line_a_span_and_shows_what_is_its_own() -> None:
    median = [
        Span("trial", 0, 10_000_000, 0, "t"),
        Span("worker", 1_000_000, 8_000_000, 0, "t"),
        Span("worker/<&>", 2_000_000, 3_000_000, 0, "t"),
    ]
    picture = ET.fromstring(profile_picture(RunSpans(attempts=1, rows=(), case="a", median=median)))

    name = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in picture.iter(f"{name}text")]
    assert texts[:6] == ["0 ms", "2 ms", "4 ms", "6 ms", "8 ms", "10 ms"]
    assert texts[6:] == ["trial", "10.000 ms", "worker", "8.000 ms", "<&>", "3.000 ms"]
    assert sum(box.get("class") == "span" for box in picture.iter(f"{name}rect")) == 3
    assert sum(box.get("class") == "value" for box in picture.iter(f"{name}rect")) == 2 + 2 + 1


def test_file_that_is_missing_or_tells_nothing_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match="profile"):
        RunSpans.read(tmp_path / "profile.jsonl")
    (tmp_path / "profile.jsonl").write_text("")
    with pytest.raises(RunCorrupt, match="no attempt"):
        RunSpans.read(tmp_path / "profile.jsonl")


def test_spans_of_a_thread_lie_in_those_that_it_has_begun() -> None:
    spans = Spans()

    def elsewhere() -> None:
        with spans.span("other"):
            pass

    with spans.span("a"):
        with spans.span("b"):
            pass
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        with pytest.raises(ValueError, match="on the way"), spans.span("c"):
            raise ValueError("on the way")
    with spans.span("d"):
        pass

    assert [span[0] for span in spans.told()["spans"]] == ["a/b", "other", "a/c", "a", "d"]


def test_nothing_is_measured_where_nobody_asked() -> None:
    heard: list[Sequence[int]] = []
    with NO_SPANS.span("a"):
        assert NO_SPANS.until("b", heard.append) == heard.append
    assert NO_SPANS.told() == {}
