"""What lies on disk, file by file, without asking git: an index can be told to look away, the disk cannot."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Iterator

__all__ = ["mark_of", "marks_below", "read_small", "special_below"]

CHUNK_BYTES = 1 << 20
MAX_SMALL_BYTES = 8192


def marks_below(root: str, *, leave: Collection[str] = (), by_status: Collection[str] = ()) -> Iterator[tuple[str, str]]:
    """Yield the path, relative to ``root``, and the mark of everything below it, directories too; links are not followed.

    Nothing is said of the paths in ``leave`` and below them. Those in ``by_status`` are not read: their mark tells size and
    time of the last change instead of content. ``root`` that does not exist holds nothing.
    """
    waiting = [""]
    while waiting:
        directory = waiting.pop()
        for name in _names(os.path.join(root, directory)):
            path = os.path.join(directory, name)
            if path in leave:
                continue
            mark = mark_of(os.path.join(root, path), read=path not in by_status)
            yield path, mark
            if mark.startswith("directory"):
                waiting.append(path)


def read_small(path: str) -> bytes | None:
    """Return what a regular file of git's own says, up to 8 KiB; ``None`` for anything else, and nothing is waited for."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(MAX_SMALL_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def mark_of(path: str, *, read: bool = True) -> str:
    """Return type, mode and content of one file, link or directory as a line of text; ``missing`` for nothing there.

    With ``read`` false, or where reading is forbidden, size and time of the last change stand for the content.
    """
    try:
        status = os.lstat(path)
        mode = f"{stat.S_IMODE(status.st_mode):04o}"
        if stat.S_ISDIR(status.st_mode):
            return f"directory {mode}" if _open(path) else f"directory {mode} closed {status.st_ctime_ns}"
        if stat.S_ISLNK(status.st_mode):
            return f"link {os.fsencode(os.readlink(path)).hex()}"
        if not stat.S_ISREG(status.st_mode):
            return f"special {stat.S_IFMT(status.st_mode):o} {mode} {status.st_rdev}"
        content = _digest(path) if read else None
        return f"file {mode} {content or f'{status.st_size} {status.st_ino} {status.st_ctime_ns}'}"
    except (FileNotFoundError, NotADirectoryError):
        return "missing"


def special_below(root: str) -> str | None:
    """Return the path of something below a directory that is neither a file nor a directory nor a link: reading it may wait
    for ever.
    """
    for directory, names, files in os.walk(root):
        for name in (*names, *files):
            path = os.path.join(directory, name)
            if mark_of(path, read=False).startswith("special"):
                return path
    return None


def _names(directory: str) -> list[str]:
    try:
        return sorted(os.listdir(directory)) if _open(directory) else []
    except (FileNotFoundError, NotADirectoryError):
        return []


def _open(directory: str) -> bool:
    return os.access(directory, os.R_OK | os.X_OK)


def _digest(path: str) -> str | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        return None
    content = hashlib.sha256()
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        while block := file.read(CHUNK_BYTES):
            content.update(block)
    return content.hexdigest()
