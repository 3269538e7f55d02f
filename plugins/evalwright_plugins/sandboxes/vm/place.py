"""Where a machine's sockets and its transfer disk lie: a directory of its own, under a name that says whose it is."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path

from evalwright.processes import ProcessIdentity, boot_id, current_process

__all__ = ["MACHINE_USER", "discard_place", "make_place", "reap_places"]

MACHINE_USER = 65534
"""The user that a machine runs as when root starts it."""


def make_place(owner: str, disk_bytes: int) -> Path:
    """Make the directory of one machine, with an empty transfer disk; ``owner`` is the trial that it is for."""
    family = _family()
    family.mkdir(mode=0o711, parents=True, exist_ok=True)
    status = family.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PermissionError(f"{family} belongs to somebody else")
    me = current_process()
    place = family / f"{me.pid}-{me.start_time}-{_pid_namespace()}-{secrets.token_hex(4)}"
    place.mkdir(mode=0o700)
    (place / "owner").write_text(owner, encoding="utf-8")
    disk = place / "disk"
    disk.touch(mode=0o600)
    os.truncate(disk, disk_bytes)
    if os.geteuid() == 0:
        for path in (disk, place):
            os.chown(path, MACHINE_USER, MACHINE_USER)
    return place


def discard_place(place: Path) -> None:
    """Remove what :func:`make_place` made. ``ValueError`` for any other directory, ``OSError`` when something stays."""
    if place.parent.resolve() != _family().resolve():
        raise ValueError(f"refusing to delete {place}: it is no machine's directory")
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(place)


def reap_places() -> Sequence[str]:
    """Remove the directories of processes that are dead, and name the trials that they were for."""
    found: list[str] = []
    host = current_process().host
    for place in sorted(_family().glob("*-*-*-*")):
        pid, start, namespace, _ = place.name.split("-")
        if not (pid + start + namespace).isdigit() or int(namespace) != _pid_namespace():
            continue
        harness = ProcessIdentity(pid=int(pid), start_time=int(start), boot_id=boot_id(), host=host)
        if harness.alive:
            continue
        owner = _owner_of(place)
        with contextlib.suppress(OSError):
            discard_place(place)
            found.append(owner)
    return found


def _owner_of(place: Path) -> str:
    try:
        return (place / "owner").read_text(encoding="utf-8")
    except OSError:
        return place.name


def _family() -> Path:
    return Path(tempfile.gettempdir(), f"evalwright-vm-{os.getuid()}")


def _pid_namespace() -> int:
    return os.stat("/proc/self/ns/pid").st_ino
