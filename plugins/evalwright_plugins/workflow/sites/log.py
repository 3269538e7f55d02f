"""The log of one attempt: what its commands say while they run, without secrets, and no more than a disk can bear."""

from __future__ import annotations

import codecs
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from evalwright.redaction import Redactor

__all__ = ["MAX_BYTES", "StepLog", "Stream"]

MAX_BYTES = 16 << 20
TAIL_BYTES = 128 << 10


class StepLog:
    """Appends to a file: its first ``max_bytes`` at once, of what comes then the last few when it is closed. Thread-safe.

    Secrets are taken out before anything is cut. Raises ``OSError`` where nothing can be written.
    """

    def __init__(self, path: Path, redactor: Redactor, *, max_bytes: int = MAX_BYTES, tail_bytes: int = TAIL_BYTES) -> None:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.redactor = redactor
        self.total_bytes = 0
        self._file = path.open("ab", buffering=0)
        self._room = max(0, max_bytes - path.stat().st_size)
        self._keep = tail_bytes
        self._left_out = 0
        self._tail = bytearray()
        self._lock = threading.Lock()

    def stream(self) -> Stream:
        """Return what takes the bytes of one stream; a secret in it is found however it is cut into pieces."""
        return Stream(self)

    def emit(self, type: str, data: Mapping[str, Any]) -> None:
        """Write an event in a line of its own."""
        self.write((json.dumps({"type": type, "data": self.redactor.json(data)}) + "\n").encode())

    def write(self, data: bytes) -> None:
        """Take bytes that hold no secrets."""
        with self._lock:
            self.total_bytes += len(data)
            begun, rest = data[: self._room], data[self._room :]
            self._room -= len(begun)
            self._file.write(begun)
            if rest:
                self._tail += rest
                self._left_out += max(0, len(self._tail) - self._keep)
                del self._tail[: -self._keep]
                os.utime(self._file.fileno())

    def account(self) -> dict[str, Any]:
        """Return what the record says of a log that is not whole."""
        return {"truncated": True, "outputBytes": self.total_bytes} if self._left_out else {}

    def close(self) -> None:
        """Write the end of what was too long, and say how much is left out before it."""
        with self._lock:
            if self._left_out:
                self._file.write(f"\n[{self._left_out} bytes are left out here]\n".encode())
            self._file.write(self._tail)
            self._tail.clear()
            self._file.close()

    def __enter__(self) -> StepLog:
        """Return self."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        self.close()


class Stream:
    """One stream on its way to a log. What may be the beginning of a secret waits for what follows."""

    def __init__(self, log: StepLog) -> None:
        self._log = log
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._pending = ""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        if self._log.redactor.idle:
            self._log.write(data)
            return
        self._pending += self._decoder.decode(data)
        text, taken = self._log.redactor.settled(self._pending)
        self._pending = self._pending[taken:]
        self._log.write(text.encode("utf-8", "surrogateescape"))

    def finish(self) -> None:
        """Pass on what has waited: nothing follows."""
        rest = self._pending + self._decoder.decode(b"", final=True)
        self._log.write(self._log.redactor.text(rest).encode("utf-8", "surrogateescape"))
        self._pending = ""
