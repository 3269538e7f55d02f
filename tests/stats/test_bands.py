"""Repeats of one arm."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import UsageError
from evalwright.stats import band, flip_rate, flip_rates, intersection_at_k, mcnemar, stability, union_at_k

BAND = Path(__file__).parent.parent / "data" / "lastlight" / "band"


@pytest.fixture(scope="module")
def hits() -> dict[str, list[bool]]:
    """Return for every gold finding whether each of the three repeats found it."""
    found: dict[str, list[bool]] = {}
    for card in sorted(BAND.glob("*/scorecard.json")):
        for result in json.loads(card.read_text())["results"]:
            for number, gold in enumerate(result["review"].get("trace", {}).get("gold", [])):
                found.setdefault(f"{result['instance_id']}#{number}", []).append(gold["matchedFinding"] is not None)
    return found


def test_the_band_of_three_repeats_is_the_published_one(hits: dict[str, list[bool]]) -> None:
    recalls = [sum(repeat) / len(hits) for repeat in zip(*hits.values(), strict=True)]
    result = band(recalls)

    assert len(hits) == 25
    assert recalls == pytest.approx([0.320, 0.080, 0.200])
    assert (result.repeats, result.mean, result.maximum - result.minimum) == (3, pytest.approx(0.2), pytest.approx(0.24))
    assert result.sd == pytest.approx(0.12)
    assert result.interval is not None
    assert (result.interval.low, result.interval.high) == pytest.approx((-0.0980965, 0.4980965))


def test_union_and_intersection_are_the_published_ones(hits: dict[str, list[bool]]) -> None:
    assert [union_at_k(hits, k).value for k in (1, 2, 3)] == pytest.approx([0.200, 1 / 3, 0.440], abs=5e-5)
    assert [intersection_at_k(hits, k).value for k in (1, 2, 3)] == pytest.approx([0.200, 0.0667, 0.040], abs=5e-5)
    assert union_at_k(hits, 4).value is None


def test_mcnemar_between_two_repeats_is_the_published_one(hits: dict[str, list[bool]]) -> None:
    gained = sum(first and not second for first, second, _ in hits.values())
    lost = sum(second and not first for first, second, _ in hits.values())
    result = mcnemar(gained, lost)
    assert (result.gained, result.lost, round(result.p, 4)) == (7, 1, 0.0703)


def test_one_repeat_has_no_spread_and_equal_repeats_prove_none() -> None:
    assert (band([0.5]).sd, band([0.5]).interval) == (None, None)
    assert (band([0.5, 0.5]).sd, band([0.5, 0.5]).interval) == (0.0, None)
    with pytest.raises(UsageError, match="no repeat"):
        band([])
    with pytest.raises(UsageError, match="repeat 2"):
        band([0.5, float("nan")])


def test_flips_are_counted_within_a_case() -> None:
    assert flip_rate(1, 1) is None
    assert flip_rates({"flaky": [1.0, 0.0, 1.0], "stable": [1.0, 1.0], "single": [0.0], "missing": []}) == {
        "flaky": pytest.approx(2 / 3),
        "single": None,
        "stable": 0.0,
    }


def test_cases_are_stable_flaky_or_never_pass() -> None:
    assert stability({"a": [1.0, 1.0], "b": [0.0, 1.0], "c": [0.0], "d": []}) == {"a": "stable", "b": "flaky", "c": "never"}


@given(st.lists(st.booleans(), min_size=2, max_size=8))
def test_the_flip_rate_is_the_share_of_pairs_that_disagree(tries: list[bool]) -> None:
    pairs = [(one, other) for number, one in enumerate(tries) for other in tries[:number]]
    assert flip_rate(len(tries), sum(tries)) == pytest.approx(sum(one != other for one, other in pairs) / len(pairs))
