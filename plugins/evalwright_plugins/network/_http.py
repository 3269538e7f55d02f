"""HTTP/1.1 messages, read strictly: whatever two readers could take differently is refused (RFC 9112)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "CHUNKED",
    "HOP_BY_HOP",
    "TOKEN",
    "UNTIL_CLOSE",
    "Fields",
    "Framing",
    "Malformed",
    "Request",
    "Response",
    "body",
    "read_request",
    "read_response",
]

CHUNKED: Literal["chunked"] = "chunked"
UNTIL_CLOSE: Literal["until close"] = "until close"
Framing = int | Literal["chunked", "until close"]

TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
REQUEST_LINE = re.compile(rf"({TOKEN}) ([\x21-\x7e]+) HTTP/1\.([01])", re.ASCII)
STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-5][0-9]{2})(?: ([\t\x20-\x7e\x80-\xff]*))?", re.ASCII)
FIELD = re.compile(rf"({TOKEN}):([\t\x20-\x7e\x80-\xff]*)", re.ASCII)
LENGTH = re.compile(r"[0-9]{1,15}", re.ASCII)
CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})[ \t]*(?:;[\t\x20-\x7e\x80-\xff]*)?")
PIECE_BYTES = 1 << 16
LINE_BYTES = 1 << 12
FIELDS = 200
HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)


class Malformed(Exception):
    """A message that is not HTTP/1.1, or is so only for a lenient reader. ``status`` is what its sender is told."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Fields(tuple[tuple[str, str], ...]):
    """The header fields of a message, in order."""

    __slots__ = ()

    def all(self, name: str) -> list[str]:
        """Return the values of all fields of that name."""
        return [value for key, value in self if key.lower() == name.lower()]

    def words(self, name: str) -> set[str]:
        """Return the comma-separated words of all fields of that name, in small letters."""
        return {word.strip().lower() for value in self.all(name) for word in value.split(",")} - {""}

    def end_to_end(self, *, without: Iterable[str] = ()) -> list[tuple[str, str]]:
        """Return what concerns the far end: without hop-by-hop fields, framing, and the fields named."""
        dropped = HOP_BY_HOP | self.words("connection") | {"content-length"} | {name.lower() for name in without}
        return [(key, value) for key, value in self if key.lower() not in dropped]


@dataclass(frozen=True, slots=True)
class Request:
    """The head of a request. ``size`` is what it took, in bytes."""

    method: str
    target: str
    minor: int
    fields: Fields
    framing: Framing
    size: int

    @property
    def persistent(self) -> bool:
        """Tell whether its sender would send another one on the same connection."""
        words = self.fields.words("connection") | self.fields.words("proxy-connection")
        return self.minor == 1 and "close" not in words


@dataclass(frozen=True, slots=True)
class Response:
    """The head of a response."""

    status: int
    reason: str
    fields: Fields
    framing: Framing

    @property
    def lengths(self) -> list[str]:
        """Return the Content-Length to pass on: one that no transfer coding replaces and that its status may have."""
        return [] if self.status < 200 or self.status == 204 else self.fields.all("content-length")


async def read_request(reader: asyncio.StreamReader, limit: int) -> Request | None:
    """Read a request's head of at most ``limit`` bytes, ``None`` when the connection ends before it. Raises ``Malformed``."""
    line = await _line(reader, limit, "a request line", may_end=True)
    if line is None:
        return None
    match = REQUEST_LINE.fullmatch(line)
    if match is None:
        raise Malformed("the request line is not that of HTTP/1.1")
    fields, size = await _fields(reader, limit - len(line))
    minor = int(match[3])
    framing = _framing(fields, absent=0)
    if framing == CHUNKED and minor == 0:
        raise Malformed("Transfer-Encoding in HTTP/1.0")
    return Request(match[1], match[2], minor, fields, framing, len(line) + 2 + size)


async def read_response(reader: asyncio.StreamReader, limit: int, method: str) -> Response:
    """Read the head of a response to a request of that method. Raises ``Malformed``, ``EOFError`` when there is none."""
    line = await _line(reader, limit, "a status line")
    match = STATUS_LINE.fullmatch(line or "")
    if match is None:
        raise Malformed("the status line is not that of HTTP/1.1")
    fields, _ = await _fields(reader, limit - len(line or ""))
    framing = _framing(fields, absent=UNTIL_CLOSE)
    status = int(match[2])
    bodiless = method == "HEAD" or status < 200 or status in (204, 304)
    return Response(status, match[3] or "", fields, 0 if bodiless else framing)


async def body(reader: asyncio.StreamReader, framing: Framing) -> AsyncIterator[bytes]:
    """Yield a body's content as it arrives. Raises ``Malformed``, and ``EOFError`` when it ends early."""
    if framing == UNTIL_CLOSE:
        while piece := await reader.read(PIECE_BYTES):
            yield piece
    elif framing == CHUNKED:
        while size := await _chunk_size(reader):
            async for piece in _exactly(reader, size):
                yield piece
            if await reader.readexactly(2) != b"\r\n":
                raise Malformed("a chunk is longer than it says")
        await _fields(reader, PIECE_BYTES)
    else:
        assert isinstance(framing, int)
        async for piece in _exactly(reader, framing):
            yield piece


async def _exactly(reader: asyncio.StreamReader, size: int) -> AsyncIterator[bytes]:
    while size:
        piece = await reader.read(min(size, PIECE_BYTES))
        if not piece:
            raise EOFError("the body ends early")
        size -= len(piece)
        yield piece


async def _chunk_size(reader: asyncio.StreamReader) -> int:
    line = await _line(reader, LINE_BYTES, "a chunk's size")
    match = CHUNK_SIZE.fullmatch((line or "").encode("latin-1"))
    if match is None:
        raise Malformed("a chunk's size is no hexadecimal number")
    return int(match[1], 16)


async def _line(reader: asyncio.StreamReader, limit: int, what: str, *, may_end: bool = False) -> str | None:
    """Read up to CR LF. ``None`` at the end of the stream, where that may be."""
    try:
        line = await reader.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        if may_end and not error.partial:
            return None
        raise
    except asyncio.LimitOverrunError as error:
        raise Malformed(f"{what} is too long", 431) from error
    if len(line) > limit:
        raise Malformed(f"{what} is too long", 431)
    if not line.endswith(b"\r\n"):
        raise Malformed(f"{what} does not end in CR LF")
    return line[:-2].decode("latin-1")


async def _fields(reader: asyncio.StreamReader, limit: int) -> tuple[Fields, int]:
    """Read header fields up to the empty line, and return them with their size in bytes."""
    found, size = list[tuple[str, str]](), 0
    while line := await _line(reader, limit - size, "the header"):
        size += len(line) + 2
        match = FIELD.fullmatch(line)
        if match is None:
            raise Malformed("a header field is malformed")
        found.append((match[1], match[2].strip(" \t")))
        if len(found) > FIELDS:
            raise Malformed("there are too many header fields", 431)
    return Fields(found), size + 2


def _framing(fields: Fields, *, absent: Framing) -> Framing:
    """Return how a body is delimited; two ways at once are refused."""
    lengths, codings = fields.all("content-length"), fields.all("transfer-encoding")
    if codings:
        if lengths:
            raise Malformed("Content-Length beside Transfer-Encoding")
        if [coding.lower() for coding in codings] != [CHUNKED]:
            raise Malformed("a Transfer-Encoding other than chunked", 501)
        return CHUNKED
    if not lengths:
        return absent
    if len(lengths) > 1 or not LENGTH.fullmatch(lengths[0]):
        raise Malformed("Content-Length is not one number")
    return int(lengths[0])
