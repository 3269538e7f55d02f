"""A run's ledger and the state it adds up to, opened together: what is not allowed is not written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from evalwright.ledger import Event, Ledger, read_events
from evalwright_plugins.workflow.record.reducer import advance, refusal
from evalwright_plugins.workflow.record.state import State

__all__ = ["Journal", "state_of"]

KERNEL = "workflow"
Heard = Callable[[Event], object]


class Journal:
    """The one writer of a run's record. Every event is durable when :meth:`write` returns; ``heard`` is told of it then.

    Raises ``RunBusy`` when somebody else writes it, ``LedgerDamaged`` when it does not verify or breaks the rules.
    """

    def __init__(self, path: Path, *, run: str, work: str, heard: Heard | None = None) -> None:
        self.state = State()
        self._heard = heard
        self._ledger = Ledger(path, run=run, work=work, read=lambda event: advance(self.state, event))

    def write(self, type: str, data: Mapping[str, Any], *, human: str | None = None) -> Event:
        """Write an event; ``human`` names the person whose deed it is.

        Raises ``RuntimeError`` for one that the rules refuse, which is a defect of the caller, and ``OSError`` for a full disk;
        nothing is written then.
        """
        reason = refusal(self.state, type, data)
        if reason:
            raise RuntimeError(f"{type} is refused: {reason}")
        event = self._ledger.append(type, data, actor=human or KERNEL, kind="human" if human else "kernel")
        self._ledger.commit()
        advance(self.state, event)
        if self._heard:
            self._heard(event)
        return event

    def close(self) -> None:
        """Close the ledger."""
        self._ledger.close()

    def __enter__(self) -> Journal:
        """Return self."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        self.close()


def state_of(path: Path) -> State:
    """Return the state that a ledger on file adds up to, for whoever only reads.

    Raises ``LedgerDamaged`` for one that does not verify or breaks the rules, ``OSError`` when it cannot be read.
    """
    state = State()
    for event in read_events(path):
        advance(state, event)
    return state
