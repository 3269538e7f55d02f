"""Experiments of two arms and two passes that are killed and resumed, and the proof that damage to their record is seen."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.chaos.experiments import (
    EXPERIMENT,
    ExperimentReport,
    Kill,
    at_random_times,
    chaotic_experiment,
    damaged_record,
)
from tests.chaos.harness import Chaos
from tests.conftest import shortened

SEEDS = range(1, 9)


@pytest.fixture(scope="module")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Chaos:
    return Chaos(tmp_path_factory.mktemp("experiments"))


@pytest.fixture(scope="module")
def whole(chaos: Chaos) -> ExperimentReport:
    """Return an experiment that was not killed."""
    report = chaotic_experiment(chaos, "whole", [], keep=True)
    assert_none(report, [])
    return report


def assert_none(report: ExperimentReport, kills: list[Kill]) -> None:
    """Fail with all violations, and the plan that led to them."""
    assert not report.violations, "\n".join([f"[{', '.join(map(str, kills))}]", *report.violations, str(report.place.root)])


@pytest.mark.parametrize("runs", shortened(range(1, 5), []))
def test_experiment_that_is_killed_while_its_runs_are_made_and_while_they_run_is_finished_as_planned(
    chaos: Chaos, whole: ExperimentReport, runs: int
) -> None:
    kills = [Kill(runs=runs), Kill(seconds=0.7 * whole.seconds)]
    report = chaotic_experiment(chaos, f"made-{runs}", kills, reference=whole)
    assert report.kills >= 1
    assert_none(report, kills)


@pytest.mark.parametrize("seed", shortened(SEEDS, []))
def test_experiment_outlives_kills_at_random_times(chaos: Chaos, whole: ExperimentReport, seed: int) -> None:
    kills = at_random_times(seed, whole.seconds)
    report = chaotic_experiment(chaos, f"random-{seed}", kills, reference=whole)
    assert_none(report, kills)


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        ("CELL_PLANNED", f"cells: {EXPERIMENT}.two.2 is planned 0 times"),
        ("RUN_LINKED", f"cells: {EXPERIMENT}.two.2 is linked 0 times"),
        ("LOOKED", "looks: [] are on record, [{'metric': 'pass_rate', 'trials': 16}] were taken"),
    ],
)
def test_event_that_the_record_lost_is_seen(whole: ExperimentReport, lost: str, expected: str) -> None:
    ledger = directory_of(whole) / "ledger.jsonl"
    former = ledger.read_bytes()
    lines = former.splitlines(keepends=True)
    gone = [line for line in lines if json.loads(line)["type"] == lost][-1]
    try:
        ledger.write_bytes(b"".join(line for line in lines if line != gone))
        assert damaged_record(whole.place, whole.looks) == [expected]
    finally:
        ledger.write_bytes(former)


def test_directories_that_are_left_are_seen(whole: ExperimentReport) -> None:
    left = [directory_of(whole) / ".queue", whole.place.run.parent / ".new-k3x9"]
    for path in left:
        path.mkdir()
    try:
        assert damaged_record(whole.place, whole.looks) == [
            "file: the queue's directory is left",
            "file: .new-k3x9 is left beside the runs",
        ]
    finally:
        for path in left:
            path.rmdir()


def directory_of(report: ExperimentReport) -> Path:
    """Return the directory of the experiment's record."""
    return report.place.project / "evals" / "experiments" / EXPERIMENT
