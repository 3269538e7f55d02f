"""A clock that only a test moves."""

from __future__ import annotations

import threading

__all__ = ["FakeClock"]


class FakeClock:
    """Call it for the time in seconds, as ``time.monotonic`` is called. Thread-safe."""

    def __init__(self, now: float = 1000.0) -> None:
        self._now = now
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """Return the present moment."""
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> None:
        """Let time pass. Raises ``ValueError`` for a step backwards: a monotonic clock has none."""
        if seconds < 0:
            raise ValueError("a monotonic clock never goes back")
        with self._lock:
            self._now += seconds
