"""pass@k and pass^k."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.errors import UsageError
from evalwright.stats import pass_at_k, pass_hat_k, suite_pass_at_k, suite_pass_hat_k

TAUBENCH = Path(__file__).parent.parent / "data" / "taubench" / "gpt-4o-airline-rewards.jsonl"


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"), [(10, 3, 5, 0.916667), (4, 1, 2, 0.5), (3, 2, 2, 1.0), (200, 1, 1, 0.005)]
)
def test_pass_at_k_is_unbiased(n: int, c: int, k: int, expected: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=5e-7)


def test_pass_hat_k_is_unbiased() -> None:
    assert pass_hat_k(3, 2, 2) == pytest.approx(1 / 3)


@pytest.mark.parametrize(("n", "c", "k"), [(3, 0, 7), (3, 3, 5), (0, 0, 1)])
def test_too_few_samples_have_no_pass_at_k(n: int, c: int, k: int) -> None:
    assert pass_at_k(n, c, k) is None
    assert pass_hat_k(n, c, k) is None


@given(st.lists(st.booleans(), min_size=1, max_size=7), st.integers(1, 7))
def test_both_are_means_over_all_choices_of_k(tries: list[bool], k: int) -> None:
    choices = list(combinations(tries, k))
    if not choices:
        assert pass_at_k(len(tries), sum(tries), k) is None
        return
    assert pass_at_k(len(tries), sum(tries), k) == pytest.approx(sum(map(any, choices)) / len(choices))
    assert pass_hat_k(len(tries), sum(tries), k) == pytest.approx(sum(map(all, choices)) / len(choices))


def test_a_suite_averages_cases_and_counts_those_with_too_few_samples() -> None:
    result = suite_pass_at_k({"once": [1.0] + [0.0] * 199, "never": [0.0] * 200, "short": [], "single": [1.0]}, 2)
    assert (result.value, result.cases, result.left_out) == (pytest.approx(0.005), 2, 2)
    assert suite_pass_at_k({"once": [1.0] + [0.0] * 199, "never": [0.0] * 200}, 1).value == pytest.approx(0.0025)


def test_cases_are_never_taken_for_samples() -> None:
    outcomes = {f"c{number}": [float(number < 50)] for number in range(164)}
    assert (suite_pass_at_k(outcomes, 10).value, suite_pass_at_k(outcomes, 10).left_out) == (None, 164)
    assert suite_pass_at_k(outcomes, 1).value == pytest.approx(0.305, abs=5e-4)


def test_tau_bench_gives_its_published_values() -> None:
    outcomes: dict[str, list[float]] = {}
    for line in TAUBENCH.read_text().splitlines():
        row = json.loads(line)
        outcomes.setdefault(str(row["task_id"]), []).append(row["reward"])

    assert [len(values) for values in outcomes.values()] == [4] * 50
    assert [suite_pass_hat_k(outcomes, k).value for k in range(1, 5)] == pytest.approx([0.420, 0.273, 0.220, 0.200], abs=5e-4)
    assert [suite_pass_at_k(outcomes, k).value for k in range(1, 5)] == pytest.approx([0.420, 0.567, 0.660, 0.720], abs=5e-4)


def test_what_is_neither_pass_nor_fail_is_refused() -> None:
    with pytest.raises(UsageError, match=r"case 'half' has the value 0\.5"):
        suite_pass_at_k({"half": [0.5]}, 1)
    with pytest.raises(UsageError, match="3 passes of 2 tries"):
        pass_at_k(2, 3, 1)
    with pytest.raises(UsageError, match="k is 0"):
        pass_at_k(2, 1, 0)
