"""Mounts: overlays over a fixture, and the end of every mount below a directory before that is deleted."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

__all__ = ["mount_overlay", "unmount", "unmount_below"]

MOUNTS = Path("/proc/self/mountinfo")
DETACH = 2
NO_FOLLOW = 8
READ_ONLY = 1
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


def unmount(target: Path | bytes) -> None:
    """Unmount what is mounted there; what is still in use goes once its last user has. Raises ``OSError``."""
    place = os.fsencode(target)
    try:
        _call("umount2", place, NO_FOLLOW, path=target)
    except OSError:
        _call("umount2", place, NO_FOLLOW | DETACH, path=target)


def unmount_below(directory: Path) -> None:
    """Unmount everything that is mounted below a directory, so that deleting it reaches nothing else. Raises ``OSError``.

    A link is not followed: nothing is mounted below it.
    """
    if os.geteuid() != 0:
        return
    prefix = os.fsencode(directory.parent.resolve() / directory.name) + b"/"
    data = MOUNTS.read_bytes()
    if _escaped(prefix) not in data:
        return
    points = [_unescaped(line.split(b" ", 5)[4]) for line in data.splitlines()]
    for point in reversed(points):
        if point.startswith(prefix):
            unmount(point)


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


def _escaped(path: bytes) -> bytes:
    return re.sub(rb"[ \t\n\\]", lambda found: b"\\%03o" % found[0][0], path)


def _unescaped(path: bytes) -> bytes:
    return re.sub(rb"\\([0-7]{3})", lambda found: bytes([int(found[1], 8)]), path)
