"""What an agent consumed: tokens, turns, tool calls, cost; and sums that say how much of them is known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["COUNTS", "Total", "Usage", "as_amount", "as_count", "exact_sum"]

COUNTS = ("input", "output", "cache_read", "cache_write", "reasoning", "turns", "tool_calls", "tool_errors")
"""The fields of :class:`Usage` that are whole numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens, turns and tool calls of one trial. ``None`` is unknown, which is never zero.

    ``input`` excludes cached tokens: ``cache_read`` and ``cache_write`` are counted apart, so that nothing is billed twice.
    ``reasoning`` is the part of ``output`` that was spent on thinking. ``cost`` is in US dollars; ``cost_source`` says whether
    it was ``reported`` by the agent or ``computed`` from a price table. ``cost_computed`` is what the table gives, also
    beside a reported cost. ``model`` names the one model that the tokens belong to.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    turns: int | None = None
    tool_calls: int | None = None
    tool_errors: int | None = None
    cost: float | None = None
    cost_source: str | None = None
    cost_computed: float | None = None
    model: str | None = None

    @property
    def total_input(self) -> int | None:
        """Return all tokens that went in, cached ones included; ``None`` when a part is unknown."""
        return exact_sum((self.input, self.cache_read, self.cache_write))

    @property
    def total(self) -> int | None:
        """Return all tokens in and out; ``None`` when a part is unknown."""
        return exact_sum((self.total_input, self.output))

    @property
    def known_tokens(self) -> int | None:
        """Return the tokens that are known of, a lower bound of :attr:`total`; ``None`` when nothing is known."""
        parts = [part for part in (self.input, self.cache_read, self.cache_write, self.output) if part is not None]
        return sum(parts) if parts else None

    def as_json(self) -> dict[str, Any]:
        """Return every field, unknown ones as ``null``."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Usage:
        """Read a record written by :meth:`as_json`; other keys are left out."""
        return Usage(**{field.name: record.get(field.name) for field in fields(Usage)})

    @staticmethod
    def total_of(parts: Sequence[Usage]) -> Usage:
        """Return the sum of each field; one that a part does not know is unknown. The model is kept where all have the same."""
        counts = {name: exact_sum(getattr(part, name) for part in parts) for name in COUNTS}
        costs = Total.over(part.cost for part in parts)
        models = {part.model for part in parts}
        cost = costs.value if costs.known == costs.of else None
        return Usage.from_json({**counts, "cost": cost, "model": models.pop() if len(models) == 1 else None})


@dataclass(frozen=True, slots=True)
class Total:
    """The sum of the known ones of ``of`` values: a lower bound unless all are known, ``None`` when none is."""

    value: float | None
    known: int
    of: int

    @staticmethod
    def over(values: Iterable[float | None]) -> Total:
        """Return the total of values of which some may be unknown."""
        given = list(values)
        known = [value for value in given if value is not None]
        whole = all(isinstance(value, int) for value in known)
        value = (sum(known) if whole else math.fsum(known)) if known else None
        return Total(value, len(known), len(given))

    def as_json(self) -> dict[str, Any]:
        """Return ``{value, known, of}``."""
        return {"value": self.value, "known": self.known, "of": self.of}

    def __str__(self) -> str:
        """Return ``0.05``, ``>= 0.02 (1 of 2 known)`` or ``unknown``."""
        if self.value is None:
            return "unknown"
        text = f"{self.value:,}" if isinstance(self.value, int) else f"{self.value:.6f}".rstrip("0").rstrip(".")
        return text if self.known == self.of else f">= {text} ({self.known} of {self.of} known)"


def exact_sum(parts: Iterable[int | None]) -> int | None:
    """Return the sum, ``None`` when a part is unknown."""
    total = 0
    for part in parts:
        if part is None:
            return None
        total += part
    return total


def as_count(value: Any) -> int | None:
    """Return a whole number from 0 to 2**53 as it stands in JSON, ``None`` for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2**53 else None


def as_amount(value: Any) -> float | None:
    """Return a finite number of at least 0 as it stands in JSON, ``None`` for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value <= 2**53:
        return None
    return abs(float(value))
