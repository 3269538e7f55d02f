"""The calls of one service, up to a bound: whoever goes on is turned away, so that what was done is always on record."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from typing import Any

from evalwright_plugins.services._messages import Answer, Call

__all__ = ["Journal"]

MAX_CALLS = 10_000
MAX_BYTES = 8 << 20
FULL = Answer(429, {"message": f"this service answers {MAX_CALLS} calls and {MAX_BYTES >> 20} MiB of requests in a trial"})


class Journal:
    """Records calls. Not thread-safe."""

    def __init__(self, *, calls: int = MAX_CALLS, size_bytes: int = MAX_BYTES) -> None:
        self._calls_left = calls
        self._bytes_left = size_bytes
        self._dropped = 0
        self._calls: list[dict[str, Any]] = []

    def take(self, call: Call, size_bytes: int, answer: Callable[[Call], Answer]) -> Answer:
        """Answer a call and record both; once the record is full the call is counted, and refused without being carried out."""
        if self._calls_left <= 0 or size_bytes > self._bytes_left:
            self._dropped += 1
            return FULL
        self._calls_left -= 1
        self._bytes_left -= size_bytes
        given = answer(call)
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        record = {"number": len(self._calls) + 1, "time": now, **call.record(), "status": given.status}
        self._calls.append(record | ({"unknown": True} if given.unknown else {}))
        return given

    def as_list(self) -> list[dict[str, Any]]:
        """Return the record; a last entry counts the calls that were turned away."""
        return [*self._calls, *([{"dropped": self._dropped}] if self._dropped else [])]
