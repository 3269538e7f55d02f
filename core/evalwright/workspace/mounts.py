"""Mounts: overlays over a fixture, and the end of every mount below a directory before that is deleted."""

from __future__ import annotations

import contextlib
import os
import re
import select
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["MountTable", "close_to_writes", "mount_overlay", "mounts_below", "unmount", "unmount_below"]

MOUNTS = Path("/proc/self/mountinfo")
DETACH = 2
NO_FOLLOW = 8
READ_ONLY = 1
REMOUNT = 32
BIND = 4096
OPTIONS = "redirect_dir=on,metacopy=off,index=off,xino=off"


def mount_overlay(target: Path, lowers: Sequence[Path], changes: tuple[Path, Path] | None, *, volatile: bool) -> None:
    """Mount an overlay of ``lowers``, the topmost first, whose changes go to the pair of upper and work directory.

    Without that pair it is read-only. ``volatile`` leaves out what keeps data over a crash of the machine. Raises ``OSError``.
    """
    with contextlib.ExitStack() as stack:
        layers = ":".join(stack.enter_context(_by_descriptor(lower)) for lower in lowers)
        words = [f"lowerdir={layers}", OPTIONS]
        if changes:
            upper, work = (stack.enter_context(_by_descriptor(path)) for path in changes)
            words += [f"upperdir={upper}", f"workdir={work}", *(["volatile"] if volatile else [])]
        place = os.fsencode(target)
        data = ",".join(words).encode()
        _call("mount", b"overlay", place, b"overlay", 0 if changes else READ_ONLY, data, path=target)


def close_to_writes(directory: Path) -> None:
    """Mount a directory over itself, read-only: nobody changes it by mistake, not even root. Raises ``OSError``."""
    place = os.fsencode(directory)
    _call("mount", place, place, None, BIND, None, path=directory)
    _call("mount", None, place, None, BIND | REMOUNT | READ_ONLY, None, path=directory)


def unmount(target: Path | bytes) -> None:
    """Unmount what is mounted there; what is still in use goes once its last user has. Raises ``OSError``."""
    place = os.fsencode(target)
    try:
        _call("umount2", place, NO_FOLLOW, path=target)
    except OSError:
        _call("umount2", place, NO_FOLLOW | DETACH, path=target)


class MountTable:
    """What is mounted in this process's view, read again only when the kernel says that it changed. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._points: list[bytes] = []
        self._real: dict[Path, bytes] = {}

    def unmount_below(self, directory: Path) -> None:
        """Unmount everything that is mounted below a directory, so that deleting it reaches nothing else. Raises ``OSError``.

        A link is not followed: nothing is mounted below it. Only root can have mounted something there.
        """
        if os.geteuid() != 0:
            return
        with self._lock:
            points = self._current()
            parent = self._real.get(directory.parent)
            if parent is None:
                parent = self._real[directory.parent] = os.fsencode(directory.parent.resolve())
        prefix = os.path.join(parent, os.fsencode(directory.name), b"")
        for point in reversed(points):
            if point.startswith(prefix):
                unmount(point)

    def close(self) -> None:
        """Release the table; the next question opens it again."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def _current(self) -> list[bytes]:
        """Return the mount points; the kernel raises an exceptional condition for each change since it was asked last."""
        if self._descriptor is None:
            self._descriptor = os.open(MOUNTS, os.O_RDONLY | os.O_CLOEXEC)
            self._points = _mount_points()
        poller = select.poll()
        poller.register(self._descriptor, select.POLLPRI)
        if poller.poll(0):
            self._points = _mount_points()
        return self._points


def unmount_below(directory: Path) -> None:
    """Unmount what is mounted below a directory, as :meth:`MountTable.unmount_below` does, once."""
    table = MountTable()
    try:
        table.unmount_below(directory)
    finally:
        table.close()


def mounts_below(directory: Path) -> list[bytes]:
    """Return what is mounted below a directory."""
    prefix = os.path.join(os.fsencode(directory.resolve()), b"")
    return [point for point in _mount_points() if point.startswith(prefix)]


def _mount_points() -> list[bytes]:
    return [_unescaped(line.split(b" ", 5)[4]) for line in MOUNTS.read_bytes().splitlines()]


@contextlib.contextmanager
def _by_descriptor(path: Path) -> Generator[str]:
    """Give a name for a directory that holds none of the characters that mean something to ``mount``."""
    descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{descriptor}"
    finally:
        os.close(descriptor)


def _call(name: str, *arguments: Any, path: Path | bytes) -> None:
    import ctypes

    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), os.fsdecode(path))


def _unescaped(path: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), path)
