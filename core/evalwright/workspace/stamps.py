"""What a file's status says of its content: equal stamps mean equal bytes, where the file system notes every write."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

__all__ = ["Stamp", "lasting_stamp", "notes_writes", "pass_tick", "stamp_of", "tick_ago"]

Stamp = tuple[int, int, int, int, int]
NOTING = frozenset({0xEF53, 0x58465342, 0x9123683E})
CLOCK_REALTIME_COARSE = 5
TICK_SECONDS = time.clock_getres(CLOCK_REALTIME_COARSE)
MAX_TICKS = 50


def stamp_of(status: os.stat_result) -> Stamp:
    """Return device, inode, size, and the times of the last change of content and of status in ns; nobody can set the last."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def notes_writes(path: Path) -> bool:
    """Tell whether the file system there moves a file's times with every write: ext4, XFS and btrfs do.

    A memory disk does not: a page that was read through a shared mapping can be written through it unnoticed. Of network
    file systems, and of all others, nothing is known.
    """
    import ctypes

    buffer = ctypes.create_string_buffer(256)
    if ctypes.CDLL(None, use_errno=True).statfs(os.fsencode(path), buffer) != 0:
        return False
    return ctypes.c_long.from_buffer(buffer).value in NOTING


def tick_ago() -> int:
    """Return a time in ns: a file whose status changed before it gets another time with every later write."""
    return time.clock_gettime_ns(CLOCK_REALTIME_COARSE) - 2 * round(TICK_SECONDS * 1e9)


def lasting_stamp(path: Path) -> Stamp | None:
    """Return the stamp of a file if, from now on, nobody can write to it and leave it that stamp; else ``None``."""
    stamp = stamp_of(os.lstat(path))
    return stamp if stamp[4] < tick_ago() and notes_writes(path) else None


def pass_tick(stamps: Iterable[Stamp]) -> bool:
    """Wait until a later write must get a later time than these stamps have, and tell whether that came to pass.

    Times of files move in steps of the kernel's clock tick (1 to 10 ms): a write in the same tick would leave no trace.
    """
    newest = max((stamp[4] for stamp in stamps), default=0)
    for _ in range(MAX_TICKS):
        if time.clock_gettime_ns(CLOCK_REALTIME_COARSE) > newest:
            return True
        time.sleep(TICK_SECONDS / 2)
    return False
