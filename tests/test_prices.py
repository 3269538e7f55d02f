"""Each kind of token is billed once at its own rate; what is unknown has no cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evalwright.errors import UsageError
from evalwright.model import Usage
from evalwright.prices import Price, PriceTable, read_prices
from evalwright.testing import FakeHost
from evalwright_adapters.stream_json import StreamJsonParser

LASTLIGHT = Path(__file__).parent / "data" / "lastlight"
PRICE = Price(model="m", input=3, output=15, cache_read=0.3)


def test_cached_tokens_are_billed_once_at_their_own_rate() -> None:
    usage = Usage(input=4000, cache_read=16000, cache_write=0, output=1000)
    assert PRICE.cost(usage) == pytest.approx(0.0318, abs=1e-12)


def test_triage_of_the_published_run_costs_what_was_billed() -> None:
    usage = Usage(input=51, cache_read=35677, cache_write=14752, output=2510, model="anthropic/claude-haiku-4-5")
    assert PriceTable().priced(usage).cost == pytest.approx(0.0346087, abs=1e-12)


@pytest.mark.parametrize("name", ["triage.jsonl", "code-fix.jsonl", "pr-review-1.jsonl"])
def test_shipped_prices_reproduce_what_transcripts_were_billed(name: str) -> None:
    with FakeHost() as host:
        usage = StreamJsonParser(None, host).parse((LASTLIGHT / name).read_bytes()).usage
    priced = PriceTable().priced(usage)
    assert priced.cost_computed == pytest.approx(usage.cost, abs=1e-9)
    assert (priced.cost, priced.cost_source) == (usage.cost, "reported")


WHOLE = Usage(input=1, output=1, cache_read=1, cache_write=0, model="m")


@pytest.mark.parametrize("name", ["input", "output", "cache_read", "cache_write"])
def test_cost_is_unknown_when_a_count_is(name: str) -> None:
    assert PRICE.cost(WHOLE) is not None
    assert PRICE.cost(replace(WHOLE, **{name: None})) is None


def test_tokens_without_a_rate_have_no_cost_and_no_tokens_need_no_rate() -> None:
    assert PRICE.cost(replace(WHOLE, cache_write=1)) is None
    assert PRICE.cost(replace(WHOLE, cache_write=0)) is not None


def test_model_that_is_not_in_the_table_has_no_cost() -> None:
    priced = PriceTable().priced(replace(WHOLE, model="anthropic/claude-haiku-4"))
    assert (priced.cost, priced.cost_source, priced.cost_computed) == (None, None, None)
    assert PriceTable().priced(replace(WHOLE, model=None)).cost is None


def test_reported_cost_beats_the_computed_one_and_both_are_kept() -> None:
    priced = PriceTable([PRICE]).priced(replace(WHOLE, cost=0.5))
    assert (priced.cost, priced.cost_source) == (0.5, "reported")
    assert priced.cost_computed == pytest.approx(18.3e-6)


def test_computed_cost_says_so() -> None:
    priced = PriceTable([PRICE]).priced(WHOLE)
    assert (priced.cost, priced.cost_source) == (priced.cost_computed, "computed")


def test_prices_of_a_file_win_over_shipped_ones_by_name_and_alias(tmp_path: Path) -> None:
    file = tmp_path / "prices.toml"
    file.write_text('["mine"]\ninput = 7\noutput = 8.5\neffective = 2026-01-02\naliases = ["claude-haiku-4-5", "other"]\n')
    table = read_prices(file)
    found = table.find("claude-haiku-4-5")
    assert found is not None
    assert (found.model, found.input, found.effective, table.find("other")) == ("mine", 7, "2026-01-02", found)
    assert table.find("anthropic/claude-haiku-4-5") == PriceTable().find("anthropic/claude-haiku-4-5")
    assert PriceTable.from_json(table.as_json()).find("other") == replace(found, aliases=["claude-haiku-4-5", "other"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("input = 1", "input: must be a table"),
        ("[m]\ninput = 1", "m.output"),
        ("[m]\ninput = -1\noutput = 1", "m.input"),
        ("[m]\ninput = nan\noutput = 1", "m.input"),
        ('[m]\ninput = "1"\noutput = 1', "m.input"),
        ("[m]\ninput = 1\noutput = 1\ncached = 1", "m.cached"),
        ('[m]\ninput = 1\noutput = 1\neffective = "soon"', "m.effective"),
        ('[m]\ninput = 1\noutput = 1\naliases = ["n"]\n[n]\ninput = 1\noutput = 1', "n is named twice"),
        ("[m", "prices.toml"),
    ],
)
def test_file_of_prices_with_a_mistake_is_refused_and_the_place_named(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    with pytest.raises(UsageError, match=told) as caught:
        read_prices(file)
    assert str(file) in caught.value.message
    assert caught.value.hint


def test_file_of_prices_that_is_missing_or_huge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        read_prices(tmp_path / "none.toml")
    huge = tmp_path / "huge.toml"
    huge.write_bytes(b"#" * (1 << 21))
    with pytest.raises(UsageError, match="longer than"):
        read_prices(huge)


def test_shipped_table_keeps_its_own_shape(tmp_path: Path) -> None:
    import evalwright.prices as module

    file = tmp_path / "prices.toml"
    file.write_bytes((Path(module.__file__).parent / "prices.toml").read_bytes())
    assert len(read_prices(file).own) >= 5
