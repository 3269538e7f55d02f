"""What a runner says it consumed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

__all__ = ["Usage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens, turns and tool calls of one trial. ``None`` is unknown, which is never zero.

    ``input`` excludes cached tokens: ``cache_read`` and ``cache_write`` are counted apart, so that nothing is billed twice.
    ``cost`` is in US dollars.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    turns: int | None = None
    tool_calls: int | None = None
    cost: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return every field, unknown ones as ``null``."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Usage:
        """Read a record written by :meth:`as_json`; other keys are left out."""
        return Usage(**{field.name: record.get(field.name) for field in fields(Usage)})
