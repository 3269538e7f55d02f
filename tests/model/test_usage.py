"""Unknown is never zero, cached tokens are counted apart, and a sum says of how many values it knows."""

from __future__ import annotations

import pytest

from evalwright.model import Total, Usage


def test_cached_tokens_count_in_totals_and_stay_apart() -> None:
    usage = Usage(input=3, cache_read=11000, cache_write=900, output=50)
    assert (usage.total_input, usage.total, usage.known_tokens) == (11903, 11953, 11953)
    assert (usage.input, usage.cache_read, usage.cache_write) == (3, 11000, 900)


def test_total_of_which_a_part_is_unknown_is_unknown_and_what_is_known_is_a_lower_bound() -> None:
    usage = Usage(input=3, output=50)
    assert (usage.total_input, usage.total, usage.known_tokens) == (None, None, 53)
    assert Usage().known_tokens is None


def test_sum_with_an_unknown_value_is_a_lower_bound_that_says_so() -> None:
    total = Total.over([None, 0.02])
    assert (total.value, str(total)) == (0.02, ">= 0.02 (1 of 2 known)")


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([], "unknown"),
        ([None, None], "unknown"),
        ([0, 0], "0"),
        ([1200, 34], "1,234"),
        ([0.1, 0.2], "0.3"),
        ([1131748, None, 1], ">= 1,131,749 (2 of 3 known)"),
    ],
)
def test_sum_is_shown_with_how_much_of_it_is_known(values: list[float | None], shown: str) -> None:
    assert str(Total.over(values)) == shown


def test_small_costs_do_not_vanish() -> None:
    assert Total.over([0.1] * 10).value == 1.0


def test_sum_of_usages_is_unknown_where_one_part_is() -> None:
    one, two = Usage(input=1, output=2, cost=0.5, model="m"), Usage(input=3, cost=0.25, model="m")
    assert Usage.total_of([one, two]) == Usage(input=4, cost=0.75, model="m")
    assert Usage.total_of([one, Usage(input=1, output=1, cost=0.0, model="n")]).model is None


def test_record_of_a_former_version_is_read() -> None:
    assert Usage.from_json({"input": 1, "gone": 2}) == Usage(input=1)
    assert Usage.from_json(Usage(input=1, tool_errors=2, cost=0.5).as_json()) == Usage(input=1, tool_errors=2, cost=0.5)
