"""Which process is it, really: a pid alone may have been reused."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ProcessIdentity", "boot_id", "current_process", "identity_of", "parent_of", "session_of", "state_of"]

STAT_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """A process of one boot of one host. ``start_time`` is in clock ticks since boot, as ``/proc/PID/stat`` has it."""

    pid: int
    start_time: int
    boot_id: str
    host: str

    def as_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {"pid": self.pid, "start_time": self.start_time, "boot_id": self.boot_id, "host": self.host}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> ProcessIdentity:
        """Read a record back; raises ``KeyError`` when a field is missing."""
        return ProcessIdentity(
            pid=int(record["pid"]),
            start_time=int(record["start_time"]),
            boot_id=str(record["boot_id"]),
            host=str(record["host"]),
        )

    @property
    def local(self) -> bool:
        """Tell whether it belongs to this host, so that :attr:`alive` can know."""
        return self.host == host_name()

    @property
    def alive(self) -> bool:
        """Tell whether exactly this process still runs here."""
        return self.local and self.boot_id == boot_id() and _start_time(self.pid) == self.start_time

    @property
    def ended(self) -> bool:
        """Tell whether it ended in this boot of this host and no other process has its pid, so its session may still live."""
        return self.local and self.boot_id == boot_id() and _start_time(self.pid) is None


def current_process() -> ProcessIdentity:
    """Return the identity of the calling process."""
    return _identity_of_this(os.getpid())


@functools.lru_cache(maxsize=1)
def _identity_of_this(pid: int) -> ProcessIdentity:
    return ProcessIdentity(pid=pid, start_time=_start_time(pid) or 0, boot_id=boot_id(), host=host_name())


def identity_of(pid: int) -> ProcessIdentity | None:
    """Return the identity of a living process of this host, ``None`` for one that is gone."""
    started = _start_time(pid)
    if started is None:
        return None
    return ProcessIdentity(pid=pid, start_time=started, boot_id=boot_id(), host=host_name())


@functools.cache
def host_name() -> str:
    """Return the name of this host, as it was when it was first asked for."""
    return os.uname().nodename


@functools.cache
def boot_id() -> str:
    """Return the kernel's id of the present boot, or an empty string where there is none."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def state_of(pid: int) -> str:
    """Return the state letter of a process (``R``, ``S``, ``T`` for stopped, ...), or an empty string for none."""
    fields = _stat(pid)
    return fields[0].decode() if fields else ""


def session_of(pid: int) -> int | None:
    """Return the session of a living process."""
    fields = _stat(pid)
    return int(fields[3]) if fields and fields[0] not in (b"Z", b"X") else None


def parent_of(pid: int) -> int | None:
    """Return the parent of a living process."""
    fields = _stat(pid)
    return int(fields[1]) if fields and fields[0] not in (b"Z", b"X") else None


def _start_time(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[19]) if fields and fields[0] not in (b"Z", b"X") else None


def _stat(pid: int) -> list[bytes]:
    """Return the fields of ``/proc/PID/stat`` from the state on, none for a process that is gone."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return []
    try:
        return os.read(descriptor, STAT_BYTES).rpartition(b")")[2].split()
    except OSError:
        return []
    finally:
        os.close(descriptor)
