"""The channel's frames, the same on both sides: kind, stream and length, then the payload.

Every stream has a window in each direction: whoever sends ``DATA`` or ``ERROR`` uses it up, and ``CREDIT`` gives it back
once the other side has really consumed the bytes. So nobody ever has to hold more than a window for a stream, and a stream
whose consumer is stuck stalls no other. Standard library only: it is part of the guest's agent.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

HEADER = struct.Struct("!BII")
WINDOW = 1 << 18
PORTION = WINDOW // 4
CHUNK = 1 << 15
MAX_PAYLOAD = 1 << 22
GUEST_STREAMS = 1 << 31

HELLO = 1
PING = 2
PONG = 3
OPEN = 4
DATA = 5
ERROR = 6
END = 7
CREDIT = 8
SIGNAL = 9
DONE = 10


class Frame(NamedTuple):
    """One message. ``stream`` is 0 where none is meant; those that the guest opened start at ``GUEST_STREAMS``."""

    kind: int
    stream: int
    payload: bytes


def encode(kind: int, stream: int, payload: bytes = b"") -> bytes:
    """Return a frame as bytes."""
    return HEADER.pack(kind, stream, len(payload)) + payload


class Decoder:
    """Finds the frames in a stream of bytes."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Take bytes and yield what is complete. ``ValueError`` for a frame that is longer than any may be."""
        self._data += data
        start = 0
        while len(self._data) - start >= HEADER.size:
            kind, stream, length = HEADER.unpack_from(self._data, start)
            if length > MAX_PAYLOAD:
                raise ValueError(f"a frame of {length} bytes")
            end = start + HEADER.size + length
            if len(self._data) < end:
                break
            yield Frame(kind, stream, bytes(self._data[start + HEADER.size : end]))
            start = end
        del self._data[:start]
