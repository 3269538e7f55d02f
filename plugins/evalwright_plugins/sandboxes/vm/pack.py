"""Directories of the host into one archive for the guest: names as bytes, modes and links as they are."""

from __future__ import annotations

import contextlib
import os
import stat
import tarfile
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from evalwright.errors import SandboxError

__all__ = ["Tree", "pack"]

USER = 1000
BLOCK_BYTES = 512
CHUNK_BYTES = 1 << 18
END = bytes(2 * BLOCK_BYTES)
READABLE = 0o444
SEARCHABLE = 0o111


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A file or directory of the host and its path in the guest. One that is not ``owned`` by the user can only be read."""

    source: Path
    target: str
    owned: bool = True


def pack(trees: Sequence[Tree], file: BinaryIO, room_bytes: int) -> int:
    """Write an archive and return its size in bytes. Raises ``SandboxError`` when it is larger than ``room_bytes``."""
    left = room_bytes - len(END)
    start = file.tell()
    for tree in trees:
        for info, content in _members(tree):
            header = info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")
            left -= len(header) + info.size + BLOCK_BYTES
            if left < 0:
                raise SandboxError(
                    f"{tree.source} does not fit the transfer disk of {room_bytes} bytes", hint="raise sandbox.disk_bytes"
                )
            file.write(header)
            if content:
                with _opened(content) as source:
                    _copy(source, file, info.size)
    file.write(END)
    file.flush()
    return file.tell() - start


def _copy(source: BinaryIO, target: BinaryIO, size: int) -> None:
    """Copy exactly so many bytes, zeros for those that are gone, and fill the last block."""
    left = size
    while left and (chunk := source.read(min(CHUNK_BYTES, left))):
        target.write(chunk)
        left -= len(chunk)
    target.write(bytes(left + -size % BLOCK_BYTES))


def _opened(path: Path) -> BinaryIO:
    """Open a file of ours, whatever its mode says."""
    with _permitted(path, stat.S_IRUSR):
        return path.open("rb")


@contextlib.contextmanager
def _permitted(path: Path, wanted: int) -> Generator[None]:
    """Give this user rights to a file or directory of its own for as long as the block runs."""
    mode = stat.S_IMODE(path.lstat().st_mode)
    if mode & wanted != wanted:
        path.chmod(mode | wanted)
    try:
        yield
    finally:
        if mode & wanted != wanted:
            path.chmod(mode)


def _members(tree: Tree) -> Iterator[tuple[tarfile.TarInfo, Path | None]]:
    yield from _below(tree, tree.source, tree.target.strip("/"))


def _below(tree: Tree, path: Path, name: str) -> Iterator[tuple[tarfile.TarInfo, Path | None]]:
    """Yield a file or directory and everything in it; each with the rights that it has when nobody looks."""
    yield from _member(tree, path, name)
    if path.is_dir() and not path.is_symlink():
        with _permitted(path, stat.S_IRUSR | stat.S_IXUSR):
            for inner in sorted(os.listdir(path)):
                yield from _below(tree, path / inner, f"{name}/{inner}")


def _member(tree: Tree, path: Path, name: str) -> Iterator[tuple[tarfile.TarInfo, Path | None]]:
    status = path.lstat()
    info = tarfile.TarInfo(name)
    info.uid = info.gid = USER if tree.owned else 0
    info.mode = stat.S_IMODE(status.st_mode)
    if not tree.owned:
        info.mode = info.mode & ~0o022 | READABLE | (SEARCHABLE if info.mode & SEARCHABLE else 0)
    info.mtime = int(status.st_mtime)
    content = None
    if stat.S_ISREG(status.st_mode):
        info.size = status.st_size
        content = path
    elif stat.S_ISDIR(status.st_mode):
        info.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(status.st_mode):
        info.type = tarfile.SYMTYPE
        info.linkname = os.readlink(path)
    elif stat.S_ISFIFO(status.st_mode):
        info.type = tarfile.FIFOTYPE
    else:
        return
    yield info, content
