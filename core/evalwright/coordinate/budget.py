"""What may still be spent: the cost of all agents and judges, and of what is in flight, against the user's limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from evalwright.canonical import is_object
from evalwright.ledger import Event, read_events
from evalwright.rundir import Layout
from evalwright.rundir.experiment import ExperimentRecord

__all__ = ["Budget", "cost_limit", "spent_by", "spent_in"]

SPENDING = ("TRIAL_FINISHED", "TRIAL_RETRIED", "TRIAL_LATE")


class Budget:
    """US dollars, counted over all runs of an experiment; ``limit`` ``None`` counts only.

    A trial in flight is reckoned with the highest cost that one of its arm had so far. Until an arm's first cost is known,
    one trial of it runs at a time. So a stop overshoots the limit by one trial's cost, however many run at once.
    """

    def __init__(self, limit: float | None, spent: float = 0.0) -> None:
        self.limit = limit
        self.spent = spent
        self.unknown = 0
        self._highest: dict[str, float] = {}
        self._flying: Counter[str] = Counter()

    @property
    def exhausted(self) -> bool:
        """Tell whether nothing more may start."""
        return self.limit is not None and self.spent >= self.limit

    def allows(self, arm: str) -> bool:
        """Tell whether a trial of an arm may start now, beside those in flight."""
        if self.limit is None:
            return True
        if not self._flying.total():
            return self.spent < self.limit
        if arm not in self._highest and self._flying[arm]:
            return False
        reserved = sum(count * self._highest.get(name, 0.0) for name, count in self._flying.items())
        return self.spent + reserved < self.limit

    def started(self, arm: str) -> None:
        """Note that a trial of an arm is in flight."""
        self._flying[arm] += 1

    def ended(self, arm: str) -> None:
        """Note that it is no more."""
        self._flying[arm] -= 1

    def note(self, arm: str, attempt: Mapping[str, Any]) -> None:
        """Add what an attempt cost, its judges' answers too; one that does not tell all of it is counted as unknown."""
        cost, is_whole = cost_of(attempt)
        self.unknown += not is_whole
        self.spent += cost
        self._highest[arm] = max(cost, self._highest.get(arm, 0.0))


def cost_of(attempt: Mapping[str, Any]) -> tuple[float, bool]:
    """Return what agent and judges cost according to an attempt's ``usage`` and ``judging``, in US dollars, and whether
    that is all of it."""
    agent, judging = _cost_in(attempt.get("usage")), attempt.get("judging")
    if not is_object(judging):
        return agent or 0.0, agent is not None
    judges = _cost_in(judging)
    return (agent or 0.0) + (judges or 0.0), agent is not None and judges is not None and not judging.get("unknown")


def _cost_in(record: Any) -> float | None:
    cost = record.get("cost") if is_object(record) else None
    return float(cost) if isinstance(cost, (int, float)) and not isinstance(cost, bool) and cost >= 0 else None


def spent_in(events: Iterable[Event]) -> float:
    """Return what the attempts of a run cost according to its ledger, in US dollars; unknown costs add nothing."""
    return sum(cost_of(event["data"])[0] for event in events if event["type"] in SPENDING)


def spent_by(layout: Layout, run_ids: Iterable[str]) -> float:
    """Return what runs cost so far, in US dollars. Raises ``LedgerDamaged``."""
    ledgers = [layout.run(run_id).ledger for run_id in run_ids]
    return sum(spent_in(read_events(ledger)) for ledger in ledgers if ledger.is_file())


def cost_limit(record: ExperimentRecord, asked: float | None) -> float | None:
    """Return the limit of an experiment in US dollars: what is asked for, which goes on record, else what held before."""
    if not record.exists():
        return asked
    known = record.max_cost()
    if asked is not None and asked != known:
        record.log(("EXTENDED", {"max_cost_usd": asked}))
    return known if asked is None else asked
