"""What a proxy decided, counted by host and port, for the trial's record."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass

__all__ = ["Decision", "Decisions"]

MOST = 1000
OTHERS = "(others)"
MAX_REASON = 300
CUT = f"more than {MOST:,} hosts and ports were asked for; the later ones are counted here together"


@dataclass(slots=True)
class Decision:
    """How often a host was asked for and what passed, in bytes. ``reason`` is that of the first refusal or failure."""

    host: str
    port: int
    allowed: bool
    count: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    reason: str | None = None


class Decisions:
    """At most 1,000 decisions; what comes later is counted under the host ``(others)``, which says so. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[str, int, bool], Decision] = {}

    def allow(self, host: str, port: int) -> Decision:
        """Count one more connection or request that was let through and return the entry to which its bytes are added."""
        return self._count(host, port, True)

    def refuse(self, host: str, port: int, reason: str) -> None:
        """Count one more refusal."""
        self.explain(self._count(host, port, False), reason)

    def explain(self, decision: Decision, reason: str) -> None:
        """Keep why it failed, unless an earlier failure is on record."""
        with self._lock:
            decision.reason = decision.reason or reason[:MAX_REASON]

    def add(self, decision: Decision, *, up: int = 0, down: int = 0) -> None:
        """Count bytes that passed to the host and from it."""
        with self._lock:
            decision.bytes_up += up
            decision.bytes_down += down

    def entries(self) -> list[dict[str, str | int | None]]:
        """Return all entries as plain values, in the order in which they came up."""
        with self._lock:
            return [asdict(decision) for decision in self._found.values()]

    def _count(self, host: str, port: int, allowed: bool) -> Decision:
        with self._lock:
            key = (host, port, allowed)
            if key not in self._found and len(self._found) >= MOST - 2:
                key = (OTHERS, 0, allowed)
            decision = self._found.setdefault(key, Decision(*key, reason=CUT if key[0] == OTHERS else None))
            decision.count += 1
            return decision
