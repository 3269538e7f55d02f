"""Transcript parsers: what an agent consumed, read from what it writes while it works."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from evalwright.interfaces.plugin import Plugin
from evalwright.model import Transcript

__all__ = ["JsonLinesReader", "TranscriptParser", "TranscriptReader"]

C = TypeVar("C")


class TranscriptReader(ABC):
    """Reads one transcript while it grows. Used by one thread at a time.

    The text comes from an agent: nothing in it may raise, and what cannot be understood is passed by. ``left_out`` counts
    events that were not read, so that the sums may be too low.
    """

    left_out: int = 0

    @abstractmethod
    def feed(self, data: bytes) -> None:
        """Take the next bytes, cut anywhere."""

    @abstractmethod
    def finish(self) -> None:
        """Take note that nothing follows."""

    @abstractmethod
    def transcript(self) -> Transcript:
        """Return what is known so far; asked several times a second."""


class TranscriptParser(Plugin[C]):
    """Knows one format of transcripts. A count that the format does not tell stays ``None``; it is never zero for want of it.

    ``Usage.input`` excludes cached tokens. A format whose input includes them has them subtracted here.
    """

    @abstractmethod
    def reader(self) -> TranscriptReader:
        """Return a new reader for one transcript."""

    def parse(self, data: bytes) -> Transcript:
        """Return what a whole transcript tells."""
        reader = self.reader()
        reader.feed(data)
        reader.finish()
        return reader.transcript()


class JsonLinesReader(TranscriptReader):
    """Reads one JSON object a line, of any line ending.

    Lines that are no object are left out, and so are those longer than ``max_line_bytes``, which ``left_out`` counts. A last
    line without its end counts when it is whole.
    """

    max_line_bytes: ClassVar[int] = 4 << 20

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    @abstractmethod
    def event(self, record: Mapping[str, Any]) -> None:
        """Take the next event; its values may be of any type."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._add(line)
            self._flush()
        self._add(rest)

    def finish(self) -> None:
        """Read the last line."""
        self._flush()

    def _add(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self.max_line_bytes:
            self._parts = []
        elif part:
            self._parts.append(part)

    def _flush(self) -> None:
        self.left_out += self._size > self.max_line_bytes
        line, self._parts, self._size = b"".join(self._parts).strip(), [], 0
        if line[:1] != b"{":
            return
        try:
            record: Any = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return
        self.event(record)
