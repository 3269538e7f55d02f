"""Where a stream's bytes go while a command runs."""

from __future__ import annotations

from io import BytesIO
from typing import Protocol

from evalwright.model import Output

__all__ = ["BoundedOutput", "OutputSink"]

TAIL_BYTES = 4096


class OutputSink(Protocol):
    """Takes a stream chunk by chunk and keeps a bounded part of it. Used by one thread at a time."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes; never blocks."""
        ...

    def finish(self) -> Output:
        """Return what was kept. The sink takes nothing afterwards."""
        ...


class BoundedOutput:
    """Keep the first ``max_bytes`` of a stream and its last few kilobytes, whatever its length."""

    def __init__(self, max_bytes: int = 5 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self._head = BytesIO()
        self._tail = bytearray()
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._total += len(data)
        room = self._max_bytes - self._head.tell()
        if room > 0:
            self._head.write(data[:room])
            data = data[room:]
        if data:
            self._tail += data[-TAIL_BYTES:]
            del self._tail[:-TAIL_BYTES]

    def finish(self, *, complete: bool = True) -> Output:
        """Return head, tail and totals; a stream that is not ``complete`` counts as truncated."""
        head = self._head.getvalue()
        truncated = self._total > len(head) or not complete
        return Output(head=head, tail=bytes(self._tail), total_bytes=self._total, truncated=truncated)
