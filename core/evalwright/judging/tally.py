"""What the questions of a scorer, and of a whole trial, cost."""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from evalwright.model import Usage

if TYPE_CHECKING:
    from evalwright.interfaces import JudgeReply

__all__ = ["Tally", "spent_on", "total_of"]


class Tally:
    """Counts questions, cached replies, tokens and US dollars. Thread-safe.

    Usage is that of the fresh replies, cost what they and those that could not be used cost; both are unknown (``None``) as
    soon as one reply does not say.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        self._failed: list[float | None] = []
        self._replies: list[JudgeReply] = []

    def answered(self, reply: JudgeReply) -> None:
        """Count a question that was answered."""
        with self._lock:
            self._calls += 1
            self._replies.append(reply)

    def failed(self, cost: float | None) -> None:
        """Count a question that was not answered, and what it cost nevertheless."""
        with self._lock:
            self._calls += 1
            self._failed.append(cost)

    def record(self) -> dict[str, Any] | None:
        """Return ``{calls, cached, failed, tries, usage, cost, model}`` for the score's record; ``None`` without a question."""
        with self._lock:
            if not self._calls:
                return None
            fresh = [reply for reply in self._replies if not reply.cached]
            models = sorted({reply.model for reply in self._replies if reply.model})
            return {
                "calls": self._calls,
                "cached": len(self._replies) - len(fresh),
                "failed": len(self._failed),
                "tries": sum(reply.tries for reply in fresh),
                "usage": _usage(fresh),
                "cost": total_of(self._costs()),
                "model": models[0] if len(models) == 1 else models or None,
            }

    def costs(self) -> list[float | None]:
        """Return what each question cost in US dollars, ``None`` where that is unknown; nothing for a cached reply."""
        with self._lock:
            return self._costs()

    def _costs(self) -> list[float | None]:
        return [*(reply.cost for reply in self._replies if not reply.cached), *self._failed]


def spent_on(tallies: Collection[Tally]) -> dict[str, Any] | None:
    """Return ``{cost, unknown}``: US dollars as far as they are known, and the number of questions of which they are not;
    ``None`` when nobody was asked."""
    costs = [cost for tally in tallies for cost in tally.costs()]
    return {"cost": sum(cost for cost in costs if cost is not None), "unknown": costs.count(None)} if tallies else None


def _usage(replies: list[JudgeReply]) -> dict[str, Any]:
    names = [field.name for field in fields(Usage) if field.name != "cost"]
    found = [reply.usage or Usage() for reply in replies]
    return {name: total_of([getattr(usage, name) for usage in found]) for name in names}


def total_of(values: list[Any]) -> Any:
    """Return the sum, ``None`` when a part of it is unknown."""
    return None if None in values else sum(values)
