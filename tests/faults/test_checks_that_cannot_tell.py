"""Checks that nothing could pass or fail, and verdicts and numbers that say two things: refused, not guessed."""

from __future__ import annotations

import argparse
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evalwright.cli.parser import KINDS
from evalwright.interfaces import ScoreContext
from evalwright.model import ScoredTrial
from evalwright_scorers.judge import JudgeScorerConfig
from evalwright_scorers.numeric import NumericThreshold, NumericThresholdConfig
from evalwright_scorers.verdict import read_verdict


def passes_its_own_answer(table: dict[str, Any]) -> bool:
    """Tell what ``audit`` asks: whether the answer that a threshold proposes passes it."""
    scorer: NumericThreshold = NumericThreshold(NumericThresholdConfig(), None)  # type: ignore[arg-type]  # it has no use for a host
    expect = {"numeric_threshold": table}
    answer = scorer.solution(expect)
    assert answer is not None
    context: ScoreContext = None  # type: ignore[assignment]  # nor for a context
    return scorer.score(ScoredTrial(case_id="c", task="t", output=answer, expect=expect), context).ok


@pytest.mark.parametrize(
    "bounds",
    [
        {"gte": 5, "lte": 3},
        {"gt": 1, "lt": 1},
        {"gt": 1, "lte": 1},
        {"eq": 1, "gt": 2},
        {"eq": 1, "tolerance": 0.5, "gte": 1.6},
    ],
)
def test_threshold_that_no_number_meets_is_found_by_its_own_answer(bounds: dict[str, Any]) -> None:
    assert not passes_its_own_answer({"path": "a.b", **bounds})


@pytest.mark.parametrize(
    "bounds",
    [
        {"gt": 0},
        {"lt": -1e300},
        {"gte": 1.1, "lte": 1.1},
        {"gt": 0, "lt": 1e-9},
        {"eq": 0.1},
        {"eq": 1, "tolerance": 1, "gt": 1.5},
        {"eq": 1, "tolerance": 0.5, "gte": 1.5},
        {"gt": 1, "gte": 3, "lt": 4, "lte": 9},
    ],
)
@pytest.mark.parametrize("path", ["x", "a.b", "0.x", 'q".y'])
def test_threshold_that_some_number_meets_passes_its_own_answer(bounds: dict[str, Any], path: str) -> None:
    assert passes_its_own_answer({"path": path, **bounds})


@given(st.integers(-9, 9), st.integers(-9, 9))
def test_threshold_passes_its_own_answer_exactly_when_there_is_room(low: int, high: int) -> None:
    assert passes_its_own_answer({"path": "x", "gte": low, "lte": high}) is (low <= high)
    assert passes_its_own_answer({"path": "x", "gt": low, "lt": high}) is (low < high)


@pytest.mark.parametrize(
    ("labels", "threshold", "said"),
    [
        ({"good": 1.0, "fair": 0.9}, 0.5, "every label passes"),
        ({"good": 0.4, "bad": 0.0}, 0.5, "no label passes"),
        ({"good": 0.5, "bad": 0.5}, 0.5, "every label passes"),
        ({"good": 1.0, "bad": 0.0}, 1.0, None),
        ({"good": 0.5, "bad": 0.0}, 0.5, None),
    ],
)
def test_labels_that_all_pass_or_all_fail_judge_nothing(labels: dict[str, float], threshold: float, said: str | None) -> None:
    table = {"judge": "j", "rubric": "?", "labels": labels, "threshold": threshold}
    if said is None:
        assert JudgeScorerConfig.model_validate(table).labels == labels
        return
    with pytest.raises(ValidationError, match=said):
        JudgeScorerConfig.model_validate(table)


@pytest.mark.parametrize(
    "text",
    [
        '{"ok": false, "score": 0, "findings": [], "ok": true}',
        '{"ok": true, "score": 0, "score": 1, "findings": []}',
        '{"ok": true, "score": 1, "findings": [{"why": "a", "why": "b"}]}',
    ],
)
def test_verdict_that_names_a_key_twice_is_an_error_and_no_pass(text: str) -> None:
    score = read_verdict(text)

    assert (score.ok, score.error) == (False, True)
    assert "twice" in str(score.findings)


@pytest.mark.parametrize("kind", ["seconds", "usd", "number", "fraction", "count"])
@pytest.mark.parametrize("text", ["0.5_0", "1_0", "٣", "５", " 5 ", "nan", "inf", "Infinity", "0x10", "1,5", "", "1e999", "-1"])
def test_flag_takes_no_number_that_only_python_reads(kind: str, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be"):
        KINDS[kind](text)


@pytest.mark.parametrize(("text", "value"), [("0.5", 0.5), (".5", 0.5), ("5e-1", 0.5), ("+0.5", 0.5)])
@pytest.mark.parametrize("kind", ["seconds", "usd", "number", "fraction"])
def test_flag_takes_a_number_as_it_is_written_everywhere(kind: str, text: str, value: float) -> None:
    assert KINDS[kind](text) == value
