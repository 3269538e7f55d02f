"""Locks between processes: held on an open file, so that a dead owner's is free at once; the file names the owner."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import sys
import time
from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.errors import RunBusy
from evalwright.processes import ProcessIdentity, current_process

__all__ = ["Lock", "hold", "owner_of"]

PAUSE_SECONDS = 0.02
MAX_RECORD = 64 * 1024
SHOWN_CHARACTERS = 120


class Lock:
    """A held lock. :meth:`release` gives it back, and so does the process's death, however it comes."""

    def __init__(self, path: Path, descriptor: int, *, shared: bool) -> None:
        self.path = path
        self.descriptor = descriptor
        self._shared = shared

    @staticmethod
    def take(path: Path, *, shared: bool = False, patience: float = 0.0) -> Lock:
        """Lock a file, made where there is none. Shared owners exclude only an exclusive one.

        Waits up to ``patience`` seconds, then raises ``RunBusy`` that names the owner.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        give_up = time.monotonic() + patience
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            try:
                locked = _locked(descriptor, shared=shared)
                if locked and _is_still(path, descriptor):
                    if not shared:
                        os.ftruncate(descriptor, 0)
                        os.pwrite(descriptor, json.dumps(_record()).encode(), 0)
                    return Lock(path, descriptor, shared=shared)
            except BaseException:
                os.close(descriptor)
                raise
            os.close(descriptor)
            if not locked:
                if time.monotonic() >= give_up:
                    raise _busy(path)
                time.sleep(PAUSE_SECONDS)

    def release(self) -> None:
        """Unlock. Doing it again does nothing."""
        if self.descriptor < 0:
            return
        if not self._shared:
            os.ftruncate(self.descriptor, 0)
        os.close(self.descriptor)
        self.descriptor = -1


@contextlib.contextmanager
def hold(path: Path, *, shared: bool = False, patience: float = 0.0) -> Generator[Lock]:
    """Hold a lock while the block runs; see :meth:`Lock.take`."""
    lock = Lock.take(path, shared=shared, patience=patience)
    try:
        yield lock
    finally:
        lock.release()


def owner_of(path: Path) -> dict[str, Any] | None:
    """Return the record of who holds a lock alone (``pid``, ``host``, ``start_time``, ``command``, ``since``).

    ``None`` where that is nobody, or nobody knows. The lock itself is not touched: whoever only looks keeps nobody out.
    """
    try:
        record = json.loads(path.read_bytes()[:MAX_RECORD])
        owner = ProcessIdentity.from_json(record)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if owner.alive or not owner.local else None


def _locked(descriptor: int, *, shared: bool) -> bool:
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    """Tell whether the name still leads to the locked file; somebody may have removed it in between."""
    try:
        return os.path.samestat(os.stat(path, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _record() -> dict[str, Any]:
    since = datetime.now(UTC).isoformat(timespec="seconds")
    return {**current_process().as_json(), "command": sys.argv, "since": since}


def _busy(path: Path) -> RunBusy:
    owner = owner_of(path) or {}
    who = f"process {owner['pid']} on {owner['host']}" if {"pid", "host"} <= owner.keys() else "another process"
    what = f" ({' '.join(map(str, owner['command']))[:SHOWN_CHARACTERS]})" if owner.get("command") else ""
    since = f" since {owner['since']}" if "since" in owner else ""
    return RunBusy(f"{path} is held by {who}{what}{since}", hint="wait for it, or stop that process", owner=owner)
