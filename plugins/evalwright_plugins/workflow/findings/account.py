"""The account of a work's findings: what was raised in any of its runs, and what people decided about it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

from evalwright.canonical import is_object
from evalwright.errors import RunCorrupt
from evalwright_plugins.workflow.findings.finding import Finding

__all__ = ["ADJUDICATED", "HISTORY", "RAISED", "Account", "Adjudication", "Decision"]

RAISED = "FINDING_RAISED"
ADJUDICATED = "FINDING_ADJUDICATED"
HISTORY = 50
Decision = Literal["dismissed", "accepted", "reopened"]
DECISIONS: tuple[Decision, ...] = get_args(Decision)


@dataclass(frozen=True, slots=True)
class Adjudication:
    """What a person decided about a finding. ``ts`` is UTC, ISO 8601."""

    fingerprint: str
    decision: Decision
    by: str
    reason: str
    ts: str

    def as_json(self) -> dict[str, Any]:
        """Return the data of the event that records it; its time is the event's own."""
        return {"fingerprint": self.fingerprint, "decision": self.decision, "by": self.by, "reason": self.reason}


class Account:
    """The state that the events of a work's ledger of findings add up to. Not thread-safe; each event costs O(1).

    Events of other types are passed over. ``FINDING_RAISED`` carries a finding, ``FINDING_ADJUDICATED`` an adjudication.
    """

    def __init__(self) -> None:
        self._findings: dict[str, Finding] = {}
        self._latest: dict[str, Adjudication] = {}
        self._dismissed: set[str] = set()

    @classmethod
    def over(cls, events: Iterable[Mapping[str, Any]]) -> Self:
        """Return the account of a whole ledger. Raises as :meth:`apply`."""
        account = cls()
        for event in events:
            account.apply(event)
        return account

    def apply(self, event: Mapping[str, Any]) -> None:
        """Take one more event in. Raises ``RunCorrupt``, and then takes nothing in, when its data says no such thing."""
        if event.get("type") not in (RAISED, ADJUDICATED):
            return
        data = event.get("data")
        try:
            if not is_object(data):
                raise ValueError("it has no data")
            if event["type"] == RAISED:
                self._raised(Finding.from_json(data))
            else:
                self._adjudicated(_adjudication(data, str(event.get("ts", ""))))
        except ValueError as error:
            where = f"event {event.get('seq')} of the findings"
            raise RunCorrupt(f"{where}: {error}", hint="restore the file of findings from a copy") from None

    @property
    def dismissed(self) -> Set[str]:
        """Return the fingerprints that do not block, as of now: the set changes with later events."""
        return self._dismissed

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Return everything ever raised, once each, in the words of the last time."""
        return tuple(self._findings.values())

    def adjudication(self, fingerprint: str) -> Adjudication | None:
        """Return the last decision about a finding."""
        return self._latest.get(fingerprint)

    def open(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return those of the findings that nobody dismissed."""
        return tuple(finding for finding in findings if finding.fingerprint not in self._dismissed)

    def history(self, last: int = HISTORY) -> list[dict[str, Any]]:
        """Return the findings decided last, the newest at the end, each with its last decision: a reviewer's anchor."""
        newest = list(self._latest.values())[-last:] if last > 0 else []
        return [self._words(one.fingerprint) | one.as_json() | {"ts": one.ts} for one in newest]

    def _words(self, fingerprint: str) -> dict[str, Any]:
        finding = self._findings.get(fingerprint)
        return finding.as_json() if finding else {}

    def _raised(self, finding: Finding) -> None:
        self._findings[finding.fingerprint] = finding

    def _adjudicated(self, adjudication: Adjudication) -> None:
        fingerprint = adjudication.fingerprint
        self._latest.pop(fingerprint, None)
        self._latest[fingerprint] = adjudication
        if adjudication.decision == "dismissed":
            self._dismissed.add(fingerprint)
        else:
            self._dismissed.discard(fingerprint)


def _adjudication(data: Mapping[str, Any], ts: str) -> Adjudication:
    fingerprint, by, reason = data.get("fingerprint"), data.get("by"), data.get("reason")
    for decision in DECISIONS:
        if data.get("decision") == decision and isinstance(fingerprint, str) and isinstance(by, str):
            return Adjudication(fingerprint, decision, by, reason if isinstance(reason, str) else "", ts)
    raise ValueError(f"an adjudication needs fingerprint, by, reason and a decision ({', '.join(DECISIONS)})")
