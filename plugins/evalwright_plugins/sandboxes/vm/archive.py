"""What a guest sends back: an archive that is read with suspicion, since whoever broke out of its user may have written it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal

from evalwright.errors import SandboxError

__all__ = ["Member", "read_archive"]

BLOCK_BYTES = 512
MAX_NAME_BYTES = 4096
MAX_MEMBERS = 500_000
MAX_DEPTH = 400
MODE_BITS = 0o777
Kind = Literal["file", "directory", "link", "fifo"]
KINDS: dict[bytes, Kind] = {b"0": "file", b"\0": "file", b"5": "directory", b"2": "link", b"6": "fifo"}
LONG_NAME, LONG_LINK, HARD_LINK = b"L", b"K", b"1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One entry. ``path`` is relative and clean; ``offset`` says where in the archive a file's ``size`` bytes lie."""

    path: bytes
    kind: Kind
    mode: int
    size: int = 0
    offset: int = 0
    link: bytes = b""


def read_archive(file: BinaryIO, max_bytes: int) -> dict[bytes, Member]:
    """Return the members of an archive by path, each directory before what is in it.

    Raises ``SandboxError`` for everything that no honest guest sends: a path that leads up or through something that is no
    directory, a path twice, a file of an unknown kind, contents of more than ``max_bytes`` in all.
    """
    found: dict[bytes, Member] = {}
    left = max_bytes
    for member in _members(file, found):
        if member.path in found or len(found) >= MAX_MEMBERS:
            raise _refused("a path twice, or too many of them", member.path)
        parent = os.path.dirname(member.path)
        if parent and (parent not in found or found[parent].kind != "directory"):
            raise _refused("a path through something that is no directory", member.path)
        left -= member.size
        if left < 0:
            raise _refused(f"more than {max_bytes} bytes", member.path)
        found[member.path] = member
    return found


def _members(file: BinaryIO, found: dict[bytes, Member]) -> Iterator[Member]:
    name = link = b""
    while True:
        header = file.read(BLOCK_BYTES)
        if len(header) < BLOCK_BYTES:
            raise _refused("an archive without an end", name)
        if not header.strip(b"\0"):
            return
        _check_sum(header)
        size, kind = _number(header[124:136]), header[156:157]
        if kind in (LONG_NAME, LONG_LINK):
            if size > MAX_NAME_BYTES:
                raise _refused("a name that is too long", name)
            text = file.read(_padded(size))[:size].rstrip(b"\0")
            name, link = (text, link) if kind == LONG_NAME else (name, text)
            continue
        path = _clean(name or _name(header))
        target = link or header[157:257].rstrip(b"\0")
        mode = _number(header[100:108]) & MODE_BITS
        name = link = b""
        if kind == HARD_LINK:
            yield _hard_link(path, mode, found.get(_clean(target)))
            continue
        if kind not in KINDS:
            raise _refused("a file of an unknown kind", path)
        if KINDS[kind] != "file":
            yield Member(path=path, kind=KINDS[kind], mode=mode, link=target)
            continue
        yield Member(path=path, kind="file", mode=mode, size=size, offset=file.tell())
        file.seek(_padded(size), os.SEEK_CUR)


def _hard_link(path: bytes, mode: int, first: Member | None) -> Member:
    """Return a file with the contents of one that came before."""
    if first is None or first.kind != "file":
        raise _refused("a link to nothing", path)
    return Member(path=path, kind="file", mode=mode, size=first.size, offset=first.offset)


def _clean(raw: bytes) -> bytes:
    """Return a path without a last slash. ``SandboxError`` for one that is not plainly relative."""
    path = raw.removesuffix(b"/")
    if path.count(b"/") > MAX_DEPTH:
        raise _refused("a path that is too deep", raw)
    if not path or any(part in (b"", b".", b"..") for part in path.split(b"/")) or b"\0" in path:
        raise _refused("a path that leads out", raw)
    return path


def _name(header: bytes) -> bytes:
    name, prefix = header[:100].rstrip(b"\0"), header[345:500].rstrip(b"\0")
    return prefix + b"/" + name if prefix and header[257:263] == b"ustar\0" else name


def _number(field: bytes) -> int:
    try:
        return int(field.rstrip(b" \0") or b"0", 8)
    except ValueError:
        raise _refused("a number that is none", field) from None


def _check_sum(header: bytes) -> None:
    if sum(header) - sum(header[148:156]) + 8 * ord(" ") != _number(header[148:156]):
        raise _refused("a damaged header", header[:100].rstrip(b"\0"))


def _padded(size: int) -> int:
    return size + -size % BLOCK_BYTES


def _refused(why: str, path: bytes) -> SandboxError:
    shown = path[:200].decode("utf-8", "backslashreplace")
    return SandboxError(f"the guest sent {why}: {shown!r}", hint="look at what the agent did")
