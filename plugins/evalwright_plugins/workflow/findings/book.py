"""The account of a work's findings on file: a ledger that several processes write, each for a moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
        self._known: set[tuple[str, str, str]] = set()
        self.refresh()

    def refresh(self) -> None:
        """Take in what others have written since."""
        for event in read_events(self._path) if self._path.is_file() else []:
            self._take(event)

    def raise_findings(self, findings: Iterable[Finding], *, run: str, candidate: str) -> None:
        """Put the findings of a review on record, those that a review of this candidate in this run has not raised yet."""
        records: list[Mapping[str, Any]] = []
        for finding in findings:
            key = run, candidate, finding.fingerprint
            if key not in self._known:
                self._known.add(key)
                records.append({**finding.as_json(), "fingerprint": finding.fingerprint, "run": run, "candidate": candidate})
        self._write(RAISED, records)

    def adjudicate(self, fingerprint: str, decision: Decision, *, by: str, reason: str) -> None:
        """Put on record what a person says of a finding."""
        data = {"fingerprint": fingerprint, "decision": decision, "by": by, "reason": reason}
        self._write(ADJUDICATED, [data], human=by)

    def _write(self, type: str, records: Sequence[Mapping[str, Any]], human: str | None = None) -> None:
        if not records:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with Ledger(self._path, run=self._work, patience=PATIENCE_SECONDS, read=self._take) as ledger:
            for data in records:
                self._take(ledger.append(type, data, actor=human or "workflow", kind="human" if human else "kernel"))
            ledger.commit()

    def _take(self, event: Mapping[str, Any]) -> None:
        if event["seq"] > self._seq:
            self.apply(event)
            self._seq = event["seq"]
            data = event["data"]
            self._known.add((data.get("run", ""), data.get("candidate", ""), data.get("fingerprint", "")))
