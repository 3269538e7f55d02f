"""What tokens cost: a table by model, shipped as ``prices.toml`` and extended by a file of the user's.

A model of the user's file, or an alias in it, takes the place of a shipped one of that name as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from evalwright.errors import UsageError
from evalwright.model import Usage

__all__ = ["Price", "PriceTable", "read_prices"]

MILLION = 1_000_000
MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """The price of one model in US dollars per million tokens. ``None``: that kind of token has no price of its own.

    ``input`` is for tokens outside the cache. ``effective`` is the day (ISO 8601) from which the price holds.
    """

    model: str
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    effective: str | None = None
    aliases: Sequence[str] = ()

    def cost(self, usage: Usage) -> float | None:
        """Return US dollars: each kind of token at its own rate, none twice; ``None`` when a count or a rate is unknown."""
        parts = [
            _part(usage.input, self.input),
            _part(usage.output, self.output),
            _part(usage.cache_read, self.cache_read),
            _part(usage.cache_write, self.cache_write),
        ]
        known = [part for part in parts if part is not None]
        return math.fsum(known) / MILLION if len(known) == len(parts) else None

    def as_json(self) -> dict[str, Any]:
        """Return every field."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"aliases": list(self.aliases)}


class PriceTable:
    """Prices by model and alias. Immutable; ``own`` are the user's, which win over the shipped ones."""

    def __init__(self, own: Iterable[Price] = ()) -> None:
        self.own = tuple(own)

    @cached_property
    def _by_name(self) -> Mapping[str, Price]:
        return {**_by_name(_shipped()), **_by_name(self.own)}

    def find(self, model: str) -> Price | None:
        """Return the price of a model by its name or an alias, exactly as written."""
        return self._by_name.get(model)

    def priced(self, usage: Usage) -> Usage:
        """Return the usage with the computed cost beside the reported one, which counts more; each says where it is from."""
        price = self.find(usage.model) if usage.model else None
        computed = price.cost(usage) if price else None
        cost = usage.cost if usage.cost is not None else computed
        source = None if cost is None else "computed" if usage.cost is None else "reported"
        return replace(usage, cost=cost, cost_source=source, cost_computed=computed)

    def as_json(self) -> list[dict[str, Any]]:
        """Return the user's own prices, for a worker elsewhere."""
        return [price.as_json() for price in self.own]

    @staticmethod
    def from_json(records: Iterable[Mapping[str, Any]]) -> PriceTable:
        """Read what :meth:`as_json` wrote."""
        return PriceTable(Price(**record) for record in records)


def read_prices(file: Path) -> PriceTable:
    """Return the shipped prices with those of a file. Raises ``UsageError`` naming file, model and key."""
    import tomllib

    try:
        with file.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}", hint="name a TOML file of prices", key="prices") from error
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{file}: longer than {MAX_FILE_BYTES} bytes", hint="name a TOML file of prices", key="prices")
    try:
        document = tomllib.loads(data.decode("utf-8-sig"))
    except ValueError as error:
        raise UsageError(f"{file}: {error}", hint="write valid TOML", key="prices") from error
    prices = [_checked(name, table, file) for name, table in document.items()]
    names = [name for price in prices for name in (price.model, *price.aliases)]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise UsageError(f"{file}: {doubled[0]} is named twice", hint="name each model and alias once", key=doubled[0])
    return PriceTable(prices)


def _part(tokens: int | None, rate: float | None) -> float | None:
    """Return tokens times rate; no tokens cost nothing, whatever the rate."""
    if tokens == 0:
        return 0.0
    return None if tokens is None or rate is None else tokens * rate


def _by_name(prices: Iterable[Price]) -> dict[str, Price]:
    return {name: price for price in prices for name in (price.model, *price.aliases)}


@cache
def _shipped() -> tuple[Price, ...]:
    import tomllib
    from importlib.resources import files

    document = tomllib.loads(files(__name__).joinpath("prices.toml").read_text("utf-8"))
    return tuple(_price(name, table) for name, table in document.items())


def _price(name: str, table: Mapping[str, Any]) -> Price:
    words: dict[str, Any] = {**table, "model": name}
    if "effective" in words:
        words["effective"] = str(words["effective"])
    return Price(**words)


def _checked(name: str, table: Any, file: Path) -> Price:
    from evalwright.prices._shape import objection

    if why := objection(table):
        raise UsageError(f"{file}: {name}{why}", hint='for example: ["my-model"] with input = 1.0 and output = 5.0', key=name)
    return _price(name, table)
