"""Write trees: private copies, links as links, names as bytes, never a hard link."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from evalwright.interfaces.ownership import give
from evalwright.model import Entry, Manifest
from evalwright.workspace.scan import Stamped
from evalwright.workspace.stamps import Stamp, stamp_of

__all__ = ["copy_file", "copy_tree", "open_readable", "restore", "share_content"]

SMALL_BYTES = 1 << 20
FICLONE = 0x40049409


def copy_file(
    source: str | bytes | Path,
    target: str | bytes | Path,
    mode: int = 0o644,
    *,
    owner: int | None = None,
    share: bool = False,
) -> Stamp:
    """Copy a file's content to a new file of that mode and owner, by the kernel where it can; the target must not exist.

    With ``share`` both files share their blocks until one is written to; ``OSError`` where the file system cannot do that.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    reader = open_readable(source)
    try:
        writer = os.open(target, flags, mode | 0o200)
        try:
            (share_content if share else _transfer)(reader, writer)
            give(writer, owner)
            status = os.fstat(writer)
            if stat.S_IMODE(status.st_mode) != mode:
                os.fchmod(writer, mode)
                status = os.fstat(writer)
            return stamp_of(status)
        finally:
            os.close(writer)
    finally:
        os.close(reader)


def share_content(reader: int, writer: int) -> None:
    """Give an open file the content of another one on the same file system without copying it. Raises ``OSError``."""
    fcntl.ioctl(writer, FICLONE, reader)


@dataclass(slots=True)
class _Copies:
    """Copies of files: small ones made at once, large ones, which the kernel copies alone, together by :meth:`finish`."""

    owner: int | None
    share: bool = False
    stamps: Stamped | None = None
    large: list[tuple[bytes | Path, bytes, int, Entry | None]] = field(
        default_factory=list[tuple[bytes | Path, bytes, int, Entry | None]]
    )
    failures: list[BaseException] = field(default_factory=list[BaseException])

    def add(self, source: bytes | Path, target: bytes, mode: int, size: int, entry: Entry | None = None) -> None:
        if size > SMALL_BYTES:
            self.large.append((source, target, mode, entry))
        else:
            self._copy(source, target, mode, entry)

    def finish(self) -> None:
        count = min(len(self.large), len(os.sched_getaffinity(0)))
        threads = [threading.Thread(target=self._work) for _ in range(count - 1)]
        for thread in threads:
            thread.start()
        self._work()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def _work(self) -> None:
        while self.large and not self.failures:
            try:
                self._copy(*self.large.pop())
            except IndexError:
                return
            except BaseException as error:
                self.failures.append(error)

    def _copy(self, source: bytes | Path, target: bytes, mode: int, entry: Entry | None) -> None:
        stamp = copy_file(source, target, mode, owner=self.owner, share=self.share)
        if self.stamps is not None and entry is not None:
            self.stamps[entry.raw_path] = stamp, entry


def copy_tree(
    source: Path,
    target: Path,
    *,
    skip: Callable[[bytes], bool] | None = None,
    special: bool = False,
    owner: int | None = None,
) -> None:
    """Copy a directory into a new one: links as links, modes kept; what is below it belongs to ``owner`` where one is named.

    ``skip`` gets each path relative to ``source`` and leaves out what it says yes to; a target inside the source is left out
    too. FIFOs, sockets and devices are refused
    with ``OSError``, or left out where ``special`` says that they may be there: in what an agent left. Such a copy has no
    set-user and set-group bits, since its owner may be another.
    """
    kept_bits = 0o1777 if special else 0o7777
    directories: list[tuple[bytes, int]] = []
    copies = _Copies(owner)
    base, goal = os.fsencode(source), os.fsencode(target)
    os.makedirs(goal, exist_ok=True)
    itself = os.path.relpath(os.path.realpath(goal), os.path.realpath(base))
    waiting = [b""]
    while waiting:
        directory = waiting.pop()
        with os.scandir(os.path.join(base, directory)) as found:
            items = [item for item in found if not (skip and skip(os.path.join(directory, item.name)))]
        for item in items:
            relative = os.path.join(directory, item.name)
            if relative == itself:
                continue
            place = os.path.join(goal, relative)
            status = item.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                _make_directory(place, owner)
                directories.append((place, stat.S_IMODE(status.st_mode)))
                waiting.append(relative)
            elif stat.S_ISLNK(status.st_mode):
                _make_link(os.readlink(item.path), place, owner)
            elif stat.S_ISREG(status.st_mode):
                copies.add(item.path, place, status.st_mode & kept_bits, status.st_size)
            elif not special:
                raise OSError(f"{os.fsdecode(relative)} is neither a file, a directory nor a link")
    copies.finish()
    for place, permissions in reversed(directories):
        os.chmod(place, permissions)


def restore(
    manifest: Manifest,
    target: Path,
    blob: Callable[[str], Path],
    *,
    owner: int | None = None,
    share: bool = False,
    stamps: Stamped | None = None,
) -> None:
    """Write the tree that ``manifest`` describes into the existing directory ``target``; ``blob`` finds content by digest.

    What is written belongs to ``owner`` where one is named, and shares its blocks with the blobs with ``share``. ``stamps``
    gets what tells later which files are still as they were written.
    """
    base = os.fsencode(target)
    directories: list[tuple[bytes, int]] = []
    copies = _Copies(owner, share, stamps)
    for entry in manifest.entries:
        place = base + b"/" + entry.raw_path
        if entry.kind == "directory":
            _make_directory(place, owner)
            directories.append((place, 0o755 if entry.mode is None else entry.mode))
        elif entry.kind == "symlink":
            _make_link(os.fsencode(entry.target or ""), place, owner)
        else:
            mode = 0o644 if entry.mode is None else entry.mode
            copies.add(blob(entry.sha256 or ""), place, mode, entry.size or 0, entry)
    copies.finish()
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


def _make_directory(place: bytes, owner: int | None) -> None:
    os.mkdir(place, 0o700)
    give(place, owner)


def _make_link(aim: bytes, place: bytes, owner: int | None) -> None:
    os.symlink(aim, place)
    give(place, owner)


def _transfer(reader: int, writer: int) -> None:
    size = os.fstat(reader).st_size
    if size <= SMALL_BYTES:
        _copy_small(reader, writer, size)
        return
    os.ftruncate(writer, size)
    start = 0
    while start < size:
        try:
            start = os.lseek(reader, start, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return  # nothing but a hole is left
            raise
        end = os.lseek(reader, start, os.SEEK_HOLE)
        _copy_range(reader, writer, start, end)
        start = end


def _copy_small(reader: int, writer: int, size: int) -> None:
    """Copy a file that has this size, or had it a moment ago."""
    while data := os.read(reader, size + 1):
        whole = len(data) == size
        while data:
            data = data[os.write(writer, data) :]
        if whole:
            return


def _copy_range(reader: int, writer: int, start: int, end: int) -> None:
    """Copy a part of a file to the same place of another one."""
    try:
        while start < end and (count := os.copy_file_range(reader, writer, end - start, start, start)):
            start += count
    except OSError:
        while start < end and (data := os.pread(reader, min(SMALL_BYTES, end - start), start)):
            start += os.pwrite(writer, data, start)
