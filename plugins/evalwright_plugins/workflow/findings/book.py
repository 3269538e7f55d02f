"""The account of a work's findings on file: a ledger that several processes write, each for a moment."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.ledger import Ledger, read_events
from evalwright_plugins.workflow.findings.account import ADJUDICATED, RAISED, Account, Decision
from evalwright_plugins.workflow.findings.finding import Finding

__all__ = ["Book"]

PATIENCE_SECONDS = 10.0


class Book(Account):
    """The account of one work, as its file was when it was last read or written.

    Raises ``LedgerDamaged`` for a file that does not verify, ``RunBusy`` when others write it for ten seconds.
    """

    def __init__(self, path: Path, work: str) -> None:
        super().__init__()
        self._path = path
        self._work = work
        self._seq = 0
        self.refresh()

    def refresh(self) -> None:
        """Take in what others have written since."""
        for event in read_events(self._path) if self._path.is_file() else []:
            self._take(event)

    def raise_finding(self, finding: Finding, *, run: str, candidate: str) -> None:
        """Put a finding of a review on record."""
        self._write(RAISED, {**finding.as_json(), "fingerprint": finding.fingerprint, "run": run, "candidate": candidate})

    def adjudicate(self, fingerprint: str, decision: Decision, *, by: str, reason: str) -> None:
        """Put on record what a person says of a finding."""
        data = {"fingerprint": fingerprint, "decision": decision, "by": by, "reason": reason}
        self._write(ADJUDICATED, data, human=by)

    def _write(self, type: str, data: Mapping[str, Any], human: str | None = None) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with Ledger(self._path, run=self._work, patience=PATIENCE_SECONDS, read=self._take) as ledger:
            event = ledger.append(type, data, actor=human or "workflow", kind="human" if human else "kernel")
            ledger.commit()
        self._take(event)

    def _take(self, event: Mapping[str, Any]) -> None:
        if event["seq"] > self._seq:
            self.apply(event)
            self._seq = event["seq"]
