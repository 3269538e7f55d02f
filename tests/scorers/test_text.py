"""exact, contains and regex."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import ValidationError

from evalwright.errors import TrialError
from evalwright.model import Score
from evalwright_scorers.text import Contains, Exact, Regex

Judge = Callable[..., Score]


@pytest.mark.parametrize(
    ("output", "expected", "ok"),
    [("ok", "ok", True), ("ok\n", "ok", False), ("a\r\nb", "a\r\nb", True), ("a\nb", "a\r\nb", False), ("", "", True)],
)
def test_exact_compares_every_character(judge: Judge, output: str, expected: str, ok: bool) -> None:
    score = judge(Exact, {"exact": expected}, output=output)

    assert (score.ok, score.score, score.findings) == (ok, float(ok), ())


def test_contains_names_each_missing_text(judge: Judge) -> None:
    score = judge(Contains, {"text_contains": ["a", "x", "y"]}, output="abc")

    assert score.findings == ({"why": "missing text", "value": "x"}, {"why": "missing text", "value": "y"})
    assert not score.ok


def test_regex_searches_every_line(judge: Judge) -> None:
    assert judge(Regex, {"text_regex": ["^two$", r"\d"]}, output="one 1\ntwo\n").ok


def test_regex_names_each_pattern_without_a_match(judge: Judge) -> None:
    score = judge(Regex, {"text_regex": ["^two$", "three"]}, output="two")

    assert score.findings == ({"why": "regex did not match", "value": "three"},)


def test_a_pattern_that_would_run_for_ever_makes_the_trial_an_error(judge: Judge) -> None:
    with pytest.raises(TrialError, match="took longer") as caught:
        judge(Regex, {"text_regex": [r"^(a|a)*$"]}, output="a" * 40 + "!")

    assert caught.value.kind == "regex_timeout"


@pytest.mark.parametrize(
    ("scorer", "key", "value"),
    [
        (Exact, "exact", 3),
        (Exact, "exact", None),
        (Contains, "text_contains", "hello"),
        (Contains, "text_contains", [1]),
        (Regex, "text_regex", "hello"),
        (Regex, "text_regex", ["fine", "("]),
    ],
)
def test_values_of_the_wrong_type_and_bad_patterns_are_refused(scorer: Any, key: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        scorer.Expect[key].model_validate(value)


def test_a_bad_pattern_is_named_in_the_error() -> None:
    with pytest.raises(ValidationError, match=r"not a valid regular expression: '\('"):
        Regex.Expect["text_regex"].model_validate(["("])


@pytest.mark.parametrize(
    ("scorer", "expect", "config", "applied"),
    [
        (Exact, {}, {}, False),
        (Exact, {"exact": ""}, {}, True),
        (Exact, {}, {"exact": "x"}, True),
        (Contains, {"text_contains": []}, {}, False),
        (Contains, {}, {"text_contains": ["x"]}, True),
        (Regex, {"text_regex": []}, {}, False),
        (Regex, {"text_regex": ["x"]}, {}, True),
    ],
)
def test_a_scorer_applies_only_to_what_is_expected(
    applies: Callable[..., bool], scorer: Any, expect: Any, config: Any, applied: bool
) -> None:
    assert applies(scorer, expect, config) is applied


def test_the_case_overrides_the_default_of_the_entry(judge: Judge) -> None:
    assert judge(Exact, {}, {"exact": "a"}, output="a").ok
    assert judge(Exact, {"exact": "b"}, {"exact": "a"}, output="b").ok
