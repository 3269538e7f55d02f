"""Figures over less than they seem to be over: cases that a repeat lost, cases that changed, tokens without a price."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.report.test_comparisons import arm, trial, view

from evalwright.errors import UsageError
from evalwright.model import Usage
from evalwright.report import Projection, ReportedCase, markdown_report, text_report
from evalwright.report.figures.banding import band_of
from evalwright.report.figures.comparison import sides_of
from evalwright.report.figures.gates import check_gates, parse_gate
from evalwright.report.forms.banding_text import band_text
from evalwright_plugins.judges._config import Price, count

TEN = {f"c{number}": ["pass"] for number in range(10)}


@pytest.mark.parametrize("kind", ["harness", "unscored"])
def test_band_names_the_cases_that_not_every_repeat_scored(kind: str) -> None:
    trials = [*arm("a", {"whole": ["pass"] * 3, "lost": ["pass", kind, "pass"]}), trial("a", 1, "once", "fail")]

    found = band_of(sides_of(view(*trials))[0], metric="pass_rate")

    assert (found.cases, found.as_json()["lost"]) == (3, ["lost", "once"])
    assert "Not scored in every repeat: lost, once: 2 of 3 cases" in band_text(found)


def test_band_over_everything_has_lost_nothing() -> None:
    found = band_of(sides_of(view(*arm("a", {"one": ["pass", "agent"], "two": ["fail", "pass"]})))[0], metric="pass_rate")

    assert (found.cases, found.lost) == (2, [])
    assert "Not scored" not in band_text(found)


@pytest.mark.parametrize(
    ("outcomes", "said"),
    [
        ({"one": ["pass"], "two": ["unscored"], "three": ["harness"]}, " over 1 of 3 trials"),
        ({"one": ["pass"], "two": ["agent"]}, ""),
    ],
)
@pytest.mark.parametrize("metric", ["pass_rate", "score", "tests"])
def test_gate_says_how_many_trials_its_figure_is_over(outcomes: dict[str, list[str]], said: str, metric: str) -> None:
    (result,) = check_gates([parse_gate(f"{metric}>=0")], sides_of(view(*arm("a", outcomes))), None, alpha=0.05)

    assert (" trials" in result.why) is bool(said)
    assert said in result.why


def test_no_regression_says_how_many_cases_are_others_than_the_baselines() -> None:
    base, new = (replace(sides_of(view(*arm(name, TEN)))[0], inputs=dict.fromkeys(TEN, "1")) for name in ("base", "new"))
    new = replace(new, inputs=new.inputs | {"c2": "2", "c3": "2"})

    (same,) = check_gates([parse_gate("no-regression")], [base], base, alpha=0.05)
    (result,) = check_gates([parse_gate("no-regression")], [new], base, alpha=0.05)

    assert "2 with other contents than in the baseline" in result.why
    assert "other contents" not in same.why


@pytest.mark.parametrize("text", ["pass_rate>=0 8", "pass rate>=1", "pass_rate> =1", "pass_rate>=0.8 0", "pass_rate>=0. 8"])
def test_space_inside_a_name_or_number_of_a_gate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no gate"):
        parse_gate(text)


def test_space_around_the_parts_of_a_gate_is_none_of_them() -> None:
    gate = parse_gate(" pass_rate >= 0.8 ")

    assert (gate.metric, gate.operator, gate.bound) == ("pass_rate", ">=", 0.8)


@pytest.mark.parametrize(
    ("tokens", "rates", "cost"),
    [
        ({"cache_read": 16000}, {"cache_read": 0.3}, 0.0318),
        ({"cache_read": 16000}, {"cache_read": 0.0}, 0.027),
        ({"cache_read": 16000}, {}, None),
        ({"cache_write": 1}, {"cache_read": 0.3}, None),
        ({"cache_read": 0, "cache_write": 0}, {}, 0.027),
        ({}, {}, 0.027),
    ],
)
def test_cached_tokens_of_a_judge_are_free_only_where_its_price_says_so(
    tokens: dict[str, int], rates: dict[str, float], cost: float | None
) -> None:
    price = Price(input=3.0, output=15.0, **rates)

    assert price.cost(Usage.from_json({"input": 4000, "output": 1000} | tokens)) == (
        None if cost is None else pytest.approx(cost)
    )


@pytest.mark.parametrize("value", [-1, 1.5, True, "5", None, 10**400, 2**53 + 1])
def test_number_of_tokens_that_is_none_is_unknown_and_never_counted(value: object) -> None:
    assert count({"input_tokens": value}, "input_tokens") is None


@pytest.mark.parametrize(
    ("statuses", "verdict"),
    [
        (["pass"], "pass"),
        (["fail"], "fail"),
        (["error"] * 2, "error"),
        (["error", "fail"], "fail"),
        (["unscored"], "fail"),
        ([], "fail"),
    ],
)
def test_every_form_of_a_report_has_the_same_verdict(statuses: list[str], verdict: str) -> None:
    cases = [ReportedCase(id=f"c{number}", status=status, scores=[]) for number, status in enumerate(statuses)]
    report = Projection(run_id="r", suite="demo", suite_hash="sha256:0", cases=cases, sealed=True)

    assert text_report(report).startswith(f"demo · {verdict} · ")
    assert markdown_report(report).startswith(f"# demo: {verdict}\n")
