"""The promises that every scorer of the package makes to the core."""

from __future__ import annotations

from importlib.metadata import EntryPoint, distribution
from typing import Any

import pytest

from evalwright.interfaces import Scorer

SCORERS = [point for point in distribution("evalwright").entry_points if point.value.startswith("evalwright_scorers.")]
PURE = {
    "exact",
    "contains",
    "regex",
    "json-schema",
    "numeric-threshold",
    "file-exists",
    "workspace-diff",
    "exit-code",
    "http-calls",
    "integrity",
}


@pytest.mark.parametrize("point", SCORERS, ids=lambda point: point.name)
def test_every_entry_point_is_a_configurable_scorer_of_the_current_interface(point: EntryPoint) -> None:
    scorer: type[Scorer[Any]] = point.load()

    assert issubclass(scorer, Scorer)
    assert scorer.api == "scorer/1.0"
    assert scorer.Config is not None
    assert scorer.Config.model_config.get("extra") == "forbid"


def test_exactly_the_built_ins_and_those_of_records_are_pure() -> None:
    assert {point.name for point in SCORERS if point.load().pure} == PURE


def test_no_two_scorers_own_the_same_expectation() -> None:
    keys = [key for point in SCORERS for key in point.load().Expect]

    assert len(keys) == len(set(keys))
