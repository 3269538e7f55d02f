"""Write trees: private copies, links as links, names as bytes, never a hard link."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from evalwright.model import Manifest
from evalwright.workspace.ownership import give

__all__ = ["copy_file", "copy_tree", "open_readable", "restore"]

SMALL_BYTES = 1 << 20


def copy_file(source: str | bytes | Path, target: str | bytes | Path, mode: int = 0o644, *, owner: int | None = None) -> None:
    """Copy a file's content to a new file of that mode and owner, by the kernel where it can; the target must not exist."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    reader = open_readable(source)
    try:
        writer = os.open(target, flags, mode | 0o200)
        try:
            _transfer(reader, writer)
            give(writer, owner)
            os.fchmod(writer, mode)
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def copy_tree(
    source: Path,
    target: Path,
    *,
    skip: Callable[[bytes], bool] | None = None,
    special: bool = False,
    owner: int | None = None,
) -> None:
    """Copy a directory into a new one: links as links, modes kept; what is below it belongs to ``owner`` where one is named.

    ``skip`` gets each path relative to ``source`` and leaves out what it says yes to. FIFOs, sockets and devices are refused
    with ``OSError``, or left out where ``special`` says that they may be there.
    """
    directories: list[tuple[bytes, int]] = []
    base, goal = os.fsencode(source), os.fsencode(target)
    os.makedirs(goal, exist_ok=True)
    waiting = [b""]
    while waiting:
        directory = waiting.pop()
        with os.scandir(os.path.join(base, directory)) as found:
            items = [item for item in found if not (skip and skip(os.path.join(directory, item.name)))]
        for item in items:
            relative = os.path.join(directory, item.name)
            place = os.path.join(goal, relative)
            mode = item.stat(follow_symlinks=False).st_mode
            if stat.S_ISDIR(mode):
                os.mkdir(place, 0o700)
                give(place, owner)
                directories.append((place, stat.S_IMODE(mode)))
                waiting.append(relative)
            elif stat.S_ISLNK(mode):
                os.symlink(os.readlink(item.path), place)
                give(place, owner)
            elif stat.S_ISREG(mode):
                copy_file(item.path, place, stat.S_IMODE(mode), owner=owner)
            elif not special:
                raise OSError(f"{os.fsdecode(relative)} is neither a file, a directory nor a link")
    for place, permissions in reversed(directories):
        os.chmod(place, permissions)


def restore(manifest: Manifest, target: Path, blob: Callable[[str], Path], *, owner: int | None = None) -> None:
    """Write the tree that ``manifest`` describes into the existing directory ``target``; ``blob`` finds content by digest.

    What is written belongs to ``owner`` where one is named.
    """
    base = os.fsencode(target)
    directories: list[tuple[bytes, int]] = []
    for entry in manifest.entries:
        place = base + b"/" + entry.raw_path
        if entry.kind == "directory":
            os.mkdir(place, 0o700)
            give(place, owner)
            directories.append((place, entry.mode or 0o755))
        elif entry.kind == "symlink":
            os.symlink(os.fsencode(entry.target or ""), place)
            give(place, owner)
        else:
            copy_file(blob(entry.sha256 or ""), place, entry.mode or 0o644, owner=owner)
    for place, mode in reversed(directories):
        os.chmod(place, mode)


def open_readable(path: str | bytes | Path) -> int:
    """Open a file for reading, never through a link; one that its owner closed is opened all the same and keeps its mode."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(path, flags)
    except PermissionError:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        os.chmod(path, mode | 0o400)
        try:
            return os.open(path, flags)
        finally:
            os.chmod(path, mode)


def _transfer(reader: int, writer: int) -> None:
    size = os.fstat(reader).st_size
    if size <= SMALL_BYTES:
        data = os.read(reader, SMALL_BYTES + 1)
        while data:
            written = os.write(writer, data)
            data = data[written:] or os.read(reader, SMALL_BYTES + 1)
        return
    try:
        while os.copy_file_range(reader, writer, 1 << 30):
            pass
    except OSError:
        while data := os.read(reader, SMALL_BYTES):
            os.write(writer, data)
