"""Runs that another harness carried out are written as sealed runs of ours, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.coordinate import write_import
from evalwright.errors import PluginInvalid, RunConflict, UsageError
from evalwright.interfaces import (
    Imported,
    ImportedCase,
    ImportedFile,
    ImportedRun,
    ImportedScore,
    ImportedSuite,
    ImportedSummary,
    ImportedTrial,
    Unsupported,
)
from evalwright.model import Score, Usage
from evalwright.redaction import Redactor
from evalwright.report import project, verify_run
from evalwright.rundir import Layout, read_object

SUITE = ImportedSuite({"schema_version": 2, "name": "foreign", "runner": {"argv": ["false"]}, "scorers": [{"use": "exact"}]})
CASES = [ImportedCase({"id": name, "task": f"do {name}", "workspace": "fixtures/none"}) for name in ("a", "b")]
RIGHT, WRONG = ImportedScore(scorer="exact", score=Score.passed()), ImportedScore(scorer="exact", score=Score.failed())


def run(arm: str = "one", repeat: int = 1, **more: Any) -> ImportedRun:
    settings = more.pop("settings", {"model": arm})
    return ImportedRun(
        experiment="exp",
        arm=arm,
        repeat=repeat,
        created="2026-01-01T00:00:00Z",
        evidence="full",
        settings=settings,
        **more,
    )


def trial(case_id: str, *scores: ImportedScore, **more: Any) -> ImportedTrial:
    return ImportedTrial(case_id=case_id, scores=scores, **more)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout(tmp_path / "evals", tmp_path / "evals" / "runs")


def write(layout: Layout, *items: Imported, out: str | None = None) -> dict[str, Any]:
    return write_import(iter(items), out=out, layout=layout, provenance={"tool": "test", "plugins": []})


def left(layout: Layout) -> list[str]:
    places = [layout.runs, layout.suites, layout.experiments]
    return [path.name for place in places if place.is_dir() for path in place.iterdir()]


def test_statuses_are_folded_as_for_our_own_trials(layout: Layout) -> None:
    names = ("pass", "fail", "agent", "harness", "bar", "none")
    cases = [ImportedCase({"id": name, "task": "x", "workspace": "w"}) for name in names]
    advisory = ImportedScore(scorer="exact", score=Score.failed(), advisory=True)
    optional = ImportedScore(scorer="exact", score=Score.failed(), required=False)
    trials = [
        trial("pass", RIGHT),
        trial("fail", WRONG),
        trial("agent", RIGHT, error="out of time", fault="agent"),
        trial("harness", error="no disk"),
        trial("bar", optional),
        trial("none", advisory),
    ]
    answer = write(layout, SUITE, *cases, run(), *trials)
    report = project(layout.run(answer["runs"][0]))
    assert {case.id: (case.status, case.fault) for case in report.cases} == {
        "pass": ("pass", None),
        "fail": ("fail", None),
        "agent": ("error", "agent"),
        "harness": ("error", "harness"),
        "bar": ("pass", None),
        "none": ("unscored", None),
    }
    assert {case.id: case.reason for case in report.cases if case.reason} == {"agent": "out of time", "harness": "no disk"}


def test_everything_that_a_trial_brings_is_kept_and_sealed(layout: Layout) -> None:
    usage = Usage(input=3, cost=0.5)
    brought = trial(
        "a",
        RIGHT,
        output="answer\r\n",
        diff=b"--- a\n+++ b\n",
        usage=usage,
        duration=1.5,
        artifacts={"deep/log.txt": b"\xff"},
    )
    answer = write(layout, SUITE, *CASES, run(source="foreign-7"), brought)
    directory = layout.run(answer["runs"][0])
    case = directory.case("a")
    assert (case / "output.txt").read_bytes() == b"answer\r\n"
    assert (case / "workspace.diff").read_bytes() == b"--- a\n+++ b\n"
    assert (case / "deep" / "log.txt").read_bytes() == b"\xff"
    runner = read_object(case / "runner.json")
    assert (runner["usage"]["cost"], runner["duration_ms"], runner["exit_code"]) == (0.5, 1500, None)
    assert read_object(directory.run_json)["imported_from"] == {"run": "foreign-7", "evidence": "full"}
    assert verify_run(directory)["sealed"]


def test_same_import_in_two_projects_has_the_same_report(tmp_path: Path) -> None:
    layouts = [Layout(tmp_path / name, tmp_path / name / "runs") for name in ("one", "two")]
    hashes = [project(each.run(write(each, SUITE, *CASES, run(), trial("a", RIGHT))["runs"][0])) for each in layouts]
    assert hashes[0].report_hash == hashes[1].report_hash
    manifests = [each.run("exp.one.1").manifest.read_bytes() for each in layouts]
    assert manifests[0] == manifests[1]


def test_notes_may_come_at_any_time(layout: Layout) -> None:
    items = [SUITE, Unsupported("x", "early"), *CASES, run(), trial("a", RIGHT), Unsupported("y", "late")]
    answer = write(layout, *items, ImportedSummary({"extra": 1}))
    assert [item["what"] for item in answer["unsupported"]] == ["x", "y"]
    assert answer["summary"] == {"cases": 2, "runs": 1, "trials": 1, "passed": 1, "extra": 1}


def test_a_secret_of_this_environment_is_kept_nowhere(layout: Layout) -> None:
    secret = "sk-test-123456"
    wrong = ImportedScore(scorer="exact", score=Score.failed({"why": f"said {secret}"}))
    told = trial(
        "a",
        wrong,
        output=f"my key is {secret}",
        diff=f"+{secret}\n".encode(),
        error=f"401 for {secret}",
        artifacts={"log.txt": f"\xff {secret}".encode("latin-1")},
    )
    items = iter([SUITE, *CASES, run(), told])
    write_import(items, out=None, layout=layout, provenance={}, redactor=Redactor([secret]))
    files = [path for path in layout.evals.rglob("*") if path.is_file()]
    assert len(files) > 15
    assert [path for path in files if secret.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    "items",
    [
        [SUITE, *CASES, trial("a", RIGHT)],
        [SUITE, *CASES, run()],
        [SUITE, *CASES, run(), run(arm="two"), trial("a", RIGHT)],
        [SUITE, *CASES, run(), trial("c", RIGHT)],
        [SUITE, *CASES, run(), trial("a", RIGHT), trial("a", WRONG)],
        [SUITE, *CASES, run(), trial("a", RIGHT), run(), trial("a", RIGHT)],
        [SUITE, *CASES, run(), trial("a", RIGHT), run(repeat=2, settings={"model": "other"}), trial("a", RIGHT)],
        [SUITE, *CASES, run(), trial("a", RIGHT), CASES[0]],
        [SUITE, ImportedFile(Path("../out"), b""), *CASES, run(), trial("a", RIGHT)],  # type: ignore[arg-type]  # hostile
        [*CASES, run(), trial("a", RIGHT)],
    ],
    ids=["no-run", "empty", "empty-first", "no-case", "twice", "same-run", "two-arms", "late-case", "climbs", "no-suite"],
)
def test_description_that_makes_no_sense_is_refused_and_leaves_nothing(layout: Layout, items: list[Imported]) -> None:
    with pytest.raises(PluginInvalid) as caught:
        write(layout, *items)
    assert caught.value.hint
    assert left(layout) == []


@pytest.mark.parametrize("name", ["../x", "a/b"])
def test_hostile_names_are_refused(layout: Layout, name: str) -> None:
    for options, items in (({"out": name}, [run()]), ({}, [run(arm=name)])):
        with pytest.raises(UsageError):
            write(layout, SUITE, *CASES, *items, trial("a", RIGHT), **options)
    with pytest.raises(ValueError, match="leads out"):
        write(layout, SUITE, *CASES, run(), trial("a", RIGHT, artifacts={"../out": b""}))
    assert left(layout) == []


def test_importer_that_fails_half_way_leaves_nothing(layout: Layout) -> None:
    def items() -> Iterator[Imported]:
        yield from (SUITE, *CASES, run(), trial("a", RIGHT), run(repeat=2))
        raise UsageError("line 7 is damaged", hint="mend it")

    with pytest.raises(UsageError, match="line 7"):
        write_import(items(), out=None, layout=layout, provenance={})
    assert left(layout) == []


def test_taken_name_is_a_conflict_that_changes_nothing(layout: Layout) -> None:
    write(layout, SUITE, *CASES, run(), trial("a", RIGHT))
    before = sorted(left(layout))
    with pytest.raises(RunConflict):
        write(layout, SUITE, *CASES, run(), trial("a", WRONG))
    assert sorted(left(layout)) == before
    assert project(layout.run("exp.one.1")).ok
    assert write(layout, SUITE, *CASES, run(), trial("a", WRONG), out="other")["runs"] == ["other.one.1"]
