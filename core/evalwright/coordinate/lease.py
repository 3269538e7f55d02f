"""Who works on a run: an OS lock on the run's directory, held by the process, and a record for people and other hosts."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Generator, Mapping
from typing import Any, Literal

from evalwright.canonical import is_object
from evalwright.errors import RunBusy
from evalwright.rundir import RunDirectory, write_document

__all__ = ["Lease", "lease_state", "read_reservation"]

BEAT_SECONDS = 5.0
LOCK_TRIES = 10
LOCK_PAUSE_SECONDS = 0.02


class Lease:
    """The right to write a run. Taken by :meth:`take`, given back by :meth:`release` or by the process's death."""

    def __init__(self, run: RunDirectory, descriptor: int, ttl: int, *, reclaimed: bool) -> None:
        self.run = run
        self.reclaimed = reclaimed
        self._descriptor = descriptor
        self._ttl = ttl
        self._started = _now()
        self._beaten = 0.0

    @staticmethod
    def take(run: RunDirectory, ttl: int) -> Lease:
        """Lock the run. Raises ``RunBusy`` naming the owner when somebody holds it, here or on another host."""
        descriptor = os.open(run.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        record = read_reservation(run)
        try:
            _lock(descriptor, run, record)
            if _fresh_elsewhere(record):
                raise _busy(run, record)
            lease = Lease(run, descriptor, ttl, reclaimed=bool(record))
            lease.beat()
        except BaseException:
            os.close(descriptor)
            raise
        return lease

    @staticmethod
    @contextlib.contextmanager
    def locked(run: RunDirectory) -> Generator[None]:
        """Hold only the lock while the block runs; the record of a former owner stays. Raises ``RunBusy``."""
        descriptor = os.open(run.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            _lock(descriptor, run, read_reservation(run))
            yield
        finally:
            os.close(descriptor)

    def moved(self, run: RunDirectory) -> None:
        """Go on under the directory's new name; the lock is on the directory itself."""
        self.run = run
        self._beaten = 0.0
        self.beat()

    def beat(self) -> None:
        """Renew the record, at most every five seconds."""
        if time.monotonic() - self._beaten < BEAT_SECONDS:
            return
        self._beaten = time.monotonic()
        from evalwright.processes import current_process

        owner = current_process().as_json()
        times = {"started_ts": self._started, "heartbeat_ts": _now(), "ttl_seconds": self._ttl}
        write_document(self.run.reservation, {"run_id": self.run.path.name, **owner, **times})

    def release(self) -> None:
        """Remove the record and unlock."""
        if self._descriptor < 0:
            return
        with contextlib.suppress(FileNotFoundError):
            self.run.reservation.unlink()
        os.close(self._descriptor)
        self._descriptor = -1


def _lock(descriptor: int, run: RunDirectory, record: Mapping[str, Any]) -> None:
    """Take the lock; a former owner may need a moment to let it go. Raises ``RunBusy``."""
    for attempt in range(LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError as error:
            record = read_reservation(run) or record
            if attempt == LOCK_TRIES - 1 or _owned_here(record):
                raise _busy(run, record) from error
            time.sleep(LOCK_PAUSE_SECONDS)


def _owned_here(record: Mapping[str, Any]) -> bool:
    """Tell whether the owner is a living process of this host."""
    from evalwright.processes import ProcessIdentity

    try:
        return ProcessIdentity.from_json(record).alive
    except (KeyError, ValueError, TypeError):
        return False


def lease_state(run: RunDirectory) -> Literal["free", "held", "stale"]:
    """Tell from the owner's record whether somebody works on the run now, or did and died.

    The lock itself is not touched: whoever only looks must not keep anybody from taking it.
    """
    record = read_reservation(run)
    if not record:
        return "free"
    return "held" if _owned_here(record) or _fresh_elsewhere(record) else "stale"


def read_reservation(run: RunDirectory) -> Mapping[str, Any]:
    """Return the owner's record, empty when there is none that can be read."""
    try:
        record = json.loads(run.reservation.read_bytes())
    except (OSError, ValueError):
        return {}
    return record if is_object(record) else {}


def _fresh_elsewhere(record: Mapping[str, Any]) -> bool:
    """Tell whether an owner on another host has beaten within its time; the lock says all about this host."""
    from datetime import UTC, datetime, timedelta

    from evalwright.processes import ProcessIdentity

    try:
        if ProcessIdentity.from_json({"start_time": 0, "boot_id": "", **record}).local:
            return False
        beat = datetime.fromisoformat(str(record["heartbeat_ts"]))
        return datetime.now(UTC) < beat + timedelta(seconds=int(record["ttl_seconds"]))
    except (KeyError, ValueError, TypeError):
        return False


def _busy(run: RunDirectory, record: Mapping[str, Any]) -> RunBusy:
    owner = f"process {record['pid']} on {record['host']}" if {"pid", "host"} <= record.keys() else "another process"
    since = f" since {record['started_ts']}" if "started_ts" in record else ""
    return RunBusy(
        f"run {run.path.name} is worked on by {owner}{since}",
        hint=f"watch it: evalwright status {run.path.name}",
        owner=dict(record),
    )


def _now() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).isoformat(timespec="seconds")
