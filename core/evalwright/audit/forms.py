"""The forms in which a canary may be written: as it is, encoded, in wide characters, and packed, in layers too.

The file stands alone, so that it can be given to any Python from 3.7 on together with the spy.
"""

from __future__ import annotations

import base64
import bz2
import contextlib
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["OVERLAP_BYTES", "UNPACKED_BYTES", "encoded_marks", "readings", "tokens", "unpacked"]

MARK = b"EVALWRIGHT" + b"-CANARY-"
TOKEN = re.compile(rb"CANARY-([a-z-]+)-([0-9a-f]{16})")
BASE64 = re.compile(rb"[A-Za-z0-9+/_-]{0,400}")
WIDE = (("utf-16", 2), ("utf-32", 4))
BETWEEN = rb"(?:\\x|0x|[\s,:;'\"-]){0,6}"
HEX = re.compile(BETWEEN.join(rb"%02x" % byte for byte in MARK), re.IGNORECASE)
HEX_BYTES = 1024
"""How far a canary in hexadecimal digits may reach, what stands between them included."""
NO_HEX = re.compile(rb"\\x|0x|[^0-9A-Fa-f]")
DUMP = re.compile(rb"^[ \t]*[0-9A-Fa-f]{4,16}:?[ \t]+((?:[0-9A-Fa-f]{2}(?:[0-9A-Fa-f]{2})?[ \t]{1,2}){2,32})", re.MULTILINE)
OVERLAP_BYTES = 2048
"""A canary in any form is shorter."""
UNPACKED_BYTES = 16 << 20
PIECE_BYTES = 1 << 16
ZLIB = re.compile(rb"\x78[\x01\x5e\x9c\xda]")
DEFLATED = re.compile(rb"PK\x03\x04.{4}\x08\x00.{16}(..)(..)", re.DOTALL)
PACKERS: tuple[tuple[str, Any, Callable[[], Any]], ...] = (
    ("compressed", re.compile(rb"\x1f\x8b\x08"), lambda: zlib.decompressobj(31)),
    ("compressed", re.compile(rb"BZh[1-9]1AY&SY"), bz2.BZ2Decompressor),
    ("compressed", re.compile(rb"\xfd7zXZ\x00"), lzma.LZMADecompressor),
    ("zip", DEFLATED, lambda: zlib.decompressobj(-15)),
    ("zlib", ZLIB, zlib.decompressobj),
)


def encoded_marks() -> list[tuple[str, bytes, int]]:
    """Return ``(encoding, how the mark looks in it, characters that stand before it)``; base64 has three alignments."""
    found = [("hex", MARK.hex().encode(), 0), ("hex", MARK.hex().upper().encode(), 0)]
    for before in range(3):
        text = base64.b64encode(b"\0" * before + MARK)
        first = (before * 8 + 5) // 6
        found.append(("base64", text[first : (before + len(MARK)) * 8 // 6], first))
    return found


BASE64_MARKS = [(mark, before) for encoding, mark, before in encoded_marks() if encoding == "base64"]


def tokens(data: bytes) -> Iterator[tuple[str, str]]:
    """Yield place and code of every canary that stands in bytes as it is."""
    for match in TOKEN.finditer(data):
        yield match[1].decode(), match[2].decode()


def readings(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield ``(form, bytes)`` for each way to read bytes in which a canary shows: plain, base64, hex, UTF-16, UTF-32.

    Base64 and hexadecimal digits may be broken into lines; the digits may have spaces and the like between them, or be a
    dump with addresses.
    """
    if MARK in data:
        yield "plain", data
    for name, width in WIDE:
        for at in found(data, b"".join(bytes([byte]) + b"\0" * (width - 1) for byte in MARK)[: 1 - width]):
            yield name, data[at : at + HEX_BYTES : width]
    flat = data.replace(b"\r", b"").replace(b"\n", b"") if b"\n" in data else data
    for mark, before in BASE64_MARKS:
        for at in found(flat, mark):
            yield "base64", from_base64(flat, at - before if at >= before else at - before + 4)
    for text in (data, b"".join(DUMP.findall(data))):
        for match in HEX.finditer(text):
            yield "hex", from_hex(text[match.start() : match.start() + HEX_BYTES])


def found(data: bytes, mark: bytes) -> Iterator[int]:
    """Yield where a mark stands."""
    at = data.find(mark)
    while at >= 0:
        yield at
        at = data.find(mark, at + len(mark))


def from_base64(data: bytes, start: int) -> bytes:
    """Return what a run of characters says in base64, of either alphabet."""
    match = BASE64.match(data, max(start, 0))
    run = match[0].replace(b"-", b"+").replace(b"_", b"/") if match else b""
    whole = run[:-1] if len(run) % 4 == 1 else run
    return base64.b64decode(whole + b"=" * (-len(whole) % 4))


def from_hex(data: bytes) -> bytes:
    """Return what hexadecimal digits say, whatever stands between them."""
    digits = NO_HEX.sub(b"", data)
    return bytes.fromhex(digits[: len(digits) // 2 * 2].decode())


def unpacked(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield what bytes hold in compressed form, wherever it begins.

    Known are gzip, bzip2, xz, deflated members of zip, and zlib streams as git keeps them.
    """
    git = data.startswith(b"PACK") or ZLIB.match(data) is not None
    for how, begins, make in PACKERS:
        name = how if how != "zlib" else "git object" if git else "compressed"
        for content in streams(data, begins, make):
            yield name, content


def streams(data: bytes, begins: Any, make: Callable[[], Any]) -> Iterator[bytes]:
    """Yield the content of every compressed stream of one kind; a pack of git is a row of them."""
    match = begins.search(data)
    while match is not None:
        start = at = match.start() + 1
        first = match.start()
        if begins is DEFLATED:
            first = match.end() + int.from_bytes(match[1], "little") + int.from_bytes(match[2], "little")
        with contextlib.suppress(zlib.error, lzma.LZMAError, OSError, EOFError):
            content, start = inflated(data, first, make())
            yield content
        match = begins.search(data, max(at, start))


def inflated(data: bytes, start: int, inflater: Any) -> tuple[bytes, int]:
    """Return what a stream holds, as far as it goes, and where it ends. Raises what the inflater raises for none."""
    view = memoryview(data)
    parts: list[bytes] = []
    size, used = 0, start
    while not inflater.eof and used < len(data) and size < UNPACKED_BYTES:
        part = inflater.decompress(view[used : used + PIECE_BYTES], UNPACKED_BYTES - size)
        parts.append(part)
        size += len(part)
        used += PIECE_BYTES
    end = min(used, len(data)) - len(inflater.unused_data) if inflater.eof else start + 1
    return b"".join(parts), end
