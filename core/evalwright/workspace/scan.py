"""Read a directory tree into a manifest: every path, none skipped, none followed."""

from __future__ import annotations

import base64
import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

from evalwright.canonical import digest_bytes
from evalwright.model import Entry, Manifest
from evalwright.workspace.digest import digest_file
from evalwright.workspace.stamps import Stamp, stamp_of

__all__ = ["Known", "Stamped", "UnreadableError", "display", "entry_of", "is_broken", "scan"]

Known = Mapping[bytes, tuple[Stamp, Entry]]
Stamped = dict[bytes, tuple[Stamp, Entry]]

MOST_BYTES = 64 << 30
OTHER_KINDS = ((stat.S_ISFIFO, "fifo"), (stat.S_ISSOCK, "socket"), (stat.S_ISCHR, "device"), (stat.S_ISBLK, "device"))


class _Names(TypedDict):
    path: str
    path_b64: str | None


class UnreadableError(Exception):
    """Paths that could not be read even after their permissions were restored; ``paths`` names them."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(f"cannot read {', '.join(paths[:5])}{' ...' if len(paths) > 5 else ''}")
        self.paths = paths


def scan(
    root: Path,
    *,
    skip: Callable[[bytes], bool] | None = None,
    known: Known | None = None,
    stamps: Stamped | None = None,
) -> Manifest:
    """Return every path below ``root``, sorted by its bytes; ``skip`` leaves out relative paths that it says yes to.

    A file that is ``known`` by its relative path and still has that stamp is not read; its entry is the known one.
    ``stamps`` gets those of all files, as they were before they were read.

    A directory or file that its owner made unreadable gets its permission back first. Raises :class:`UnreadableError` when
    that does not help, when there are more than :data:`MOST_BYTES` to read (a file of holes costs an agent nothing), or when
    ``root`` itself is no directory any more: a path that cannot be read is never invisible.
    """
    if root.is_symlink() or not root.is_dir():
        raise UnreadableError(["."])
    entries: list[tuple[bytes, Entry]] = []
    unreadable: list[str] = []
    base = os.fsencode(root)
    held = known or {}
    left = MOST_BYTES
    for path in _walk(base, unreadable, skip or (lambda _: False)):
        relative = path[len(base) + 1 :]
        try:
            entry = entry_of(path, relative, held.get(relative), stamps, most_bytes=left)
            entries.append((relative, entry))
            left -= entry.size or 0
        except OSError:
            unreadable.append(display(relative))
    if unreadable:
        raise UnreadableError(sorted(unreadable))
    entries.sort(key=lambda pair: pair[0])
    return Manifest(tuple(entry for _, entry in entries))


def display(path: bytes) -> str:
    """Return a path as text for records: bytes that are not UTF-8 stand as ``\\xNN``."""
    return path.decode("utf-8", "backslashreplace")


def _walk(base: bytes, unreadable: list[str], skip: Callable[[bytes], bool]) -> Iterator[bytes]:
    waiting = [base]
    while waiting:
        directory = waiting.pop()
        try:
            names = _items(directory)
        except OSError:
            unreadable.append(display(directory[len(base) + 1 :]) or ".")
            continue
        for name, is_directory in names:
            path = directory + b"/" + name
            if skip(path[len(base) + 1 :]):
                continue
            if is_directory:
                waiting.append(path)
            yield path


def _items(directory: bytes) -> list[tuple[bytes, bool]]:
    mode = stat.S_IMODE(os.lstat(directory).st_mode)
    if mode & 0o700 != 0o700:
        with contextlib.suppress(OSError):
            os.chmod(directory, mode | 0o700)
    return _listing(directory)


def _listing(directory: bytes) -> list[tuple[bytes, bool]]:
    with os.scandir(directory) as found:
        return [(item.name, item.is_dir(follow_symlinks=False)) for item in found]


def is_broken(path: bytes) -> bool:
    """Tell whether a link leads nowhere."""
    return not os.path.exists(path)


def entry_of(
    path: bytes,
    relative: bytes,
    known: tuple[Stamp, Entry] | None = None,
    stamps: Stamped | None = None,
    *,
    most_bytes: int = MOST_BYTES,
) -> Entry:
    """Return the entry of what is at ``path`` now. Raises ``OSError`` for what cannot be read, or is larger than that."""
    status = os.lstat(path)
    mode = status.st_mode
    permissions = stat.S_IMODE(mode)
    if stat.S_ISREG(mode):
        stamp = stamp_of(status)
        if known and known[0] == stamp:
            entry = known[1] if known[1].mode == permissions else replace(known[1], mode=permissions)
        elif status.st_size > most_bytes:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        else:
            digest = _readable_digest(path, permissions)
            entry = Entry(kind="file", sha256=digest, size=status.st_size, mode=permissions, **_names(relative))
        if stamps is not None:
            stamps[relative] = stamp, entry
        return entry
    if stat.S_ISDIR(mode):
        return Entry(kind="directory", mode=permissions, **_names(relative))
    if stat.S_ISLNK(mode):
        target = os.readlink(path)
        shown = display(target)
        return Entry(kind="symlink", target=shown, sha256=digest_bytes(target), broken=is_broken(path), **_names(relative))
    subtype = next((word for test, word in OTHER_KINDS if test(mode)), "unknown")
    return Entry(kind="other", subtype=subtype, **_names(relative))


def _names(relative: bytes) -> _Names:
    name = display(relative)
    exact = None if name.encode() == relative else base64.b64encode(relative).decode()
    return {"path": name, "path_b64": exact}


def _readable_digest(path: bytes, permissions: int) -> str:
    try:
        return digest_file(path)
    except PermissionError:
        os.chmod(path, permissions | 0o400)
        try:
            return digest_file(path)
        finally:
            os.chmod(path, permissions)
