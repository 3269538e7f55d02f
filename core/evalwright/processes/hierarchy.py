"""Where this process stands in the cgroup hierarchies, and directories of its own below that place."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Iterator
from pathlib import Path

from evalwright.processes.identity import ProcessIdentity, boot_id, current_process

__all__ = ["abandoned", "own_directory", "private_name", "remove", "unified_mount"]

PREFIX = "evalwright-"
TICK_SECONDS = 0.005


def own_directory(controller: str = "") -> Path | None:
    """Return this process's directory in the hierarchy of a controller (version 1), or in the unified one (version 2)."""
    mount = _mounts().get(controller)
    try:
        lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    except OSError:
        return None
    path = next((path for _, names, path in lines if controller in names.split(",")), None)
    return mount / path.strip("/") if mount and path is not None else None


def unified_mount() -> Path | None:
    """Return where the hierarchy of version 2 is mounted."""
    return _mounts().get("")


def private_name() -> str:
    """Return a new name for a directory of this process, from which :func:`abandoned` knows whose it is."""
    me = current_process()
    return f"{PREFIX}{me.pid}-{me.start_time}-{os.urandom(4).hex()}"


def abandoned(directory: Path) -> Iterator[Path]:
    """Yield the directories that dead processes of this boot left below one."""
    for place in directory.glob(f"{PREFIX}*-*-*"):
        pid, start, _ = place.name.removeprefix(PREFIX).split("-")
        owner = ProcessIdentity(pid=int(pid), start_time=int(start), boot_id=boot_id(), host=current_process().host)
        if not owner.alive:
            yield place


def remove(place: Path) -> None:
    """Remove a cgroup without members and those below it; the kernel may need a moment after the last process."""
    for _ in range(20):
        try:
            os.rmdir(place)
            return
        except FileNotFoundError:
            return
        except OSError:
            below = [entry.path for entry in os.scandir(place) if entry.is_dir(follow_symlinks=False)]
        for directory in below:
            remove(Path(directory))
        if not below:
            time.sleep(TICK_SECONDS)


@functools.cache
def _mounts() -> dict[str, Path]:
    """Return the mount point of each controller's hierarchy; that of version 2 under the empty name."""
    found: dict[str, Path] = {}
    try:
        lines = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return found
    for line in lines:
        own, _, shared = line.partition(" - ")
        kind, _, options = shared.split(" ", 2)
        if kind == "cgroup2":
            found.setdefault("", Path(own.split()[4]))
        elif kind == "cgroup":
            for name in options.split(","):
                found.setdefault(name, Path(own.split()[4]))
    return found
