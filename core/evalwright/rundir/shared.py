"""A file that many bundles hold, such as the manifest of a large fixture: digested once, and written once where that can be."""

from __future__ import annotations

import os
import threading

from evalwright.canonical import digest_bytes

__all__ = ["SharedFile", "write_new"]

NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_OPEN = 128
"""Descriptors from this number on are left to the trials; a file that got one is written again next time."""


class SharedFile:
    """Content with its ``digest``; :meth:`put` gives it a place. Thread-safe.

    All places are names of one file (hard links). It is written anew when that is impossible (another file system, as many
    names as the file system allows, no name left), and when size or time say that somebody has changed it.
    """

    def __init__(self, data: bytes) -> None:
        self.digest = digest_bytes(data)
        self._data = data
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._stamp = 0, 0

    def put(self, path: str) -> None:
        """Make the file at a path where nothing is yet. Raises ``OSError``."""
        with self._lock:
            if not self._linked(path):
                self._release()
                self._keep(write_new(path, self._data))

    def close(self) -> None:
        """Let go of the file, which stays where it is; the next :meth:`put` writes it anew."""
        with self._lock:
            self._release()

    def _release(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _linked(self, path: str) -> bool:
        """Give the file, whatever its names have become, another one; tell whether that can be done."""
        held = self._descriptor
        if held is None or _stamp(held) != self._stamp:
            return False
        try:
            # Only with a directory, which an absolute path has no use for, does Python ask the kernel to follow the link.
            os.link(f"/proc/self/fd/{held}", path, src_dir_fd=held, follow_symlinks=True)
        except OSError:
            return False
        return True

    def _keep(self, descriptor: int) -> None:
        if descriptor >= MOST_OPEN:
            os.close(descriptor)
        else:
            self._descriptor, self._stamp = descriptor, _stamp(descriptor)


def write_new(path: str, data: bytes) -> int:
    """Write a file that must not exist yet, and return its descriptor. Raises ``OSError``."""
    descriptor = os.open(path, NEW_FILE, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _stamp(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns
