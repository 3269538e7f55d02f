"""Limits on a command's memory and number of processes, by cgroups: version 2 where it offers them, else version 1."""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evalwright.processes import hierarchy

__all__ = ["LimitGroup", "LimitGroups"]

WRAPPER_PROCESSES = 2


@dataclass(frozen=True, slots=True)
class Controller:
    """A controller of either version: what sets its limit, and the counter that tells whether something ran into it."""

    name: str
    limit_files: tuple[str, ...]
    event_files: tuple[str, ...]
    event: str
    reason: str


CONTROLLERS: Mapping[str, Controller] = {
    "memory_bytes": Controller(
        "memory", ("memory.max", "memory.limit_in_bytes"), ("memory.events", "memory.oom_control"), "oom_kill", "oom_killed"
    ),
    "processes": Controller("pids", ("pids.max",), ("pids.events",), "max", "pids_limit"),
}


class LimitGroup:
    """The cgroups that bind one command. ``rest`` are the limits that it has to bear as resource limits of each process.

    ``enter`` lists the directories that the command must move into before it runs; ``source`` names what binds it;
    ``exceeded`` is the limit that it ran into.
    """

    def __init__(self, limits: Mapping[str, int]) -> None:
        self.rest = dict(limits)
        self.enter: list[Path] = []
        self.source = "rlimit" if limits else None
        self.exceeded: str | None = None
        self._watched: list[tuple[Controller, Path]] = []

    def bind(self, limit: str, place: Path, source: str, *, spare: int = 0) -> bool:
        """Have a cgroup keep one of the limits; say whether it does. ``spare`` is added to what the limit allows."""
        controller = CONTROLLERS[limit]
        for name in controller.limit_files:
            with contextlib.suppress(OSError):
                (place / name).write_bytes(str(self.rest[limit] + spare).encode())
                del self.rest[limit]
                self.source = source
                self._watched.append((controller, place))
                return True
        return False

    def look(self) -> None:
        """Note in ``exceeded`` which limit something in the cgroups ran into, while they still exist."""
        for controller, place in self._watched:
            if any(_count(place / name, controller.event) for name in controller.event_files):
                self.exceeded = self.exceeded or controller.reason

    def close(self) -> None:
        """Look for the last time and remove the directories; everything in them has ended."""
        self.look()
        for place in self.enter:
            hierarchy.remove(place)


class LimitGroups:
    """Makes a :class:`LimitGroup` for each command of this process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._roots: dict[str, Path | None] = {}

    def make(self, limits: Mapping[str, int], place: Path | None, *, wrapped: bool) -> LimitGroup:
        """Bind a command's limits; ``place`` is its own cgroup of version 2, if it has one."""
        group = LimitGroup(limits)
        number = next(self._numbers)
        for limit in CONTROLLERS.keys() & limits.keys():
            spare = WRAPPER_PROCESSES if wrapped and limit == "processes" else 0
            if place and group.bind(limit, place, "cgroup-v2", spare=spare):
                continue
            root = self._root(CONTROLLERS[limit].name)
            if root is None:
                continue
            directory = root / str(number)
            with contextlib.suppress(OSError):
                directory.mkdir()
                group.enter.append(directory)
                group.bind(limit, directory, "cgroup-v1", spare=spare)
        return group

    def close(self) -> None:
        """Remove this process's directories."""
        with self._lock:
            for root in filter(None, self._roots.values()):
                hierarchy.remove(root)
            self._roots.clear()

    def _root(self, controller: str) -> Path | None:
        """Return this process's directory in a hierarchy of version 1, made on first use; ``None`` where it must not."""
        with self._lock:
            if controller not in self._roots:
                self._roots[controller] = _make_root(hierarchy.own_directory(controller))
            return self._roots[controller]


def _make_root(own: Path | None) -> Path | None:
    if own is None:
        return None
    for place in hierarchy.abandoned(own):
        hierarchy.remove(place)
    root = own / hierarchy.private_name()
    try:
        root.mkdir()
    except OSError:
        return None
    return root


def _count(file: Path, event: str) -> int:
    """Return a counter from a file of ``name value`` lines, 0 where there is none."""
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.split()[0] == event), 0)
