"""Commands in cgroups of their own (version 2): found and killed as one, however they fork, detach or ignore signals."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalwright.errors import SandboxLost
from evalwright.interfaces import Command
from evalwright.model import Completed
from evalwright.processes import hierarchy
from evalwright.processes._client import Door, send_command
from evalwright.processes._streams import Streams
from evalwright.processes._tree import begins_namespace
from evalwright.processes.process import DRAIN_SECONDS, Process, completed_by

__all__ = ["CgroupProcess", "Cgroups", "cgroup_of", "end_cgroup", "kill_cgroup"]

ASK_SECONDS = 0.25
LOOK_SECONDS = 1.0
SETTLE_SECONDS = 0.2
SWEEP_SECONDS = 10.0
TICK_SECONDS = 0.005
STORM = 500


LIVE: dict[int, Path] = {}
"""The cgroup of each running command of this process, by the command's process id."""


class Cgroups:
    """This process's directory in the hierarchy, with one below it for each command. Thread-safe."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._numbers = itertools.count(1)

    @staticmethod
    def make() -> Cgroups | None:
        """Make the directory below this process's own cgroup; ``None`` where there is none that can be written and killed."""
        own = hierarchy.own_directory()
        if own is None or not os.access(own / "cgroup.procs", os.W_OK):
            return None
        root = own / hierarchy.private_name()
        try:
            for place in hierarchy.abandoned(own):
                kill_cgroup(place)
            root.mkdir()
            if not os.access(root / "cgroup.kill", os.W_OK):
                root.rmdir()
                return None
        except OSError:
            return None
        for controller in ("memory", "pids"):
            with contextlib.suppress(OSError):
                (root / "cgroup.subtree_control").write_bytes(f"+{controller}".encode())
        return Cgroups(root)

    def directory(self) -> Path:
        """Make a directory for one command."""
        place = self.root / str(next(self._numbers))
        os.mkdir(place)
        return place

    def close(self) -> None:
        """Kill what is left and remove the directory."""
        kill_cgroup(self.root)


class CgroupProcess(Process):
    """A command in a cgroup of its own, a child of the fork server."""

    def __init__(self, command: Command, door: Door, cgroups: Cgroups) -> None:
        self._command = command
        self._door = door
        self._started = time.monotonic()
        self._report: dict[str, Any] = {"timed_out": False, "canceled": False, "leaked": 0, "survivors": 0, "status": None}
        self._pid: int | None = None
        self._ended = self._lost = self._swept = False
        self._asked = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.place = cgroups.directory()
        self._limits = door.limits.make(command.limits, self.place, wrapped=door.wrapped)
        self._streams = Streams(command)
        try:
            self._control = send_command(command, self._streams, door, self._limits, cgroup=str(self.place))
        except BaseException:
            self._release()
            raise

    def kill(self) -> None:
        """Have the waiting thread end the command's tree."""
        with contextlib.suppress(OSError, ValueError):  # it may have ended and released its descriptor
            os.eventfd_write(self._asked, 1)

    def wait(self) -> Completed:
        """Pump the output until the command has ended and return how; everything in its cgroup is dead by then.

        Raises ``SandboxLost`` when the fork server was killed, so that nobody knows how the command ended.
        """
        try:
            self._follow()
        finally:
            self._sweep()
            self._release()
            self._control.close()
            self._door.ended(self)
        if self._lost:
            raise SandboxLost("the fork server is gone", hint="a sandbox with a pid namespace keeps agents away from it")
        return completed_by(self._report, self._streams, self._limits, wrapped=self._door.wrapped)

    def _follow(self) -> None:
        """Wait for the command's end, or cut it; then let its children settle, kill what is left and drain the pipes."""
        poll = select.poll()
        self._streams.watch(poll)
        own = (self._control.fileno(), self._asked)
        for descriptor in own:
            poll.register(descriptor, select.POLLIN)
        self._pump(poll)
        for descriptor in own:
            poll.unregister(descriptor)
        self._report["duration"] = time.monotonic() - self._started
        if self._ended:
            self._drain(poll, SETTLE_SECONDS, self._alone)
        elif not self._lost:
            self._terminate(poll)
        self._sweep()
        self._drain(poll, DRAIN_SECONDS, lambda: not self._streams.open)

    def _pump(self, poll: select.poll) -> None:
        """Return when the command has ended, when its time is up, or when it shall stop."""
        timeout, canceled = self._command.timeout, self._command.canceled
        give_up = None if timeout is None else self._started + timeout
        look = self._started + LOOK_SECONDS
        while True:
            left = ASK_SECONDS if give_up is None else min(ASK_SECONDS, give_up - time.monotonic())
            ready = {descriptor for descriptor, _ in poll.poll(max(0.0, left * 1000))}
            for descriptor in ready:
                self._streams.read(descriptor)
            if self._control.fileno() in ready:
                self._receive()
            if self._ended or self._lost:
                return
            now = time.monotonic()
            if give_up is not None and now >= give_up:
                self._report["timed_out"] = True
                return
            if self._asked in ready or (canceled is not None and canceled()):
                self._report["canceled"] = True
                return
            if now > look:
                look = now + LOOK_SECONDS
                self._door.server.rouse()

    def _receive(self) -> None:
        """Take the server's next word: the command's process id, then how it ended."""
        try:
            message = self._control.recv(1 << 16)
        except OSError:
            message = b""
        record = json.loads(message) if message else None
        if record is None:
            self._lost = True
        elif "command" in record:
            self._pid = record["command"]
            LIVE[record["command"]] = self.place
            if self._command.on_start:
                self._command.on_start((record["command"],))
        else:
            self._report |= record
            self._ended = True

    def _terminate(self, poll: select.poll) -> None:
        """Ask everything in the cgroup to end and wait for it during the grace time, unless it is a fork storm."""
        members = [pid for pid in _members(self.place) if not (self._door.wrapped and pid == self._pid)]
        for pid in members:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGTERM)
                os.kill(pid, signal.SIGCONT)
        if len(members) < STORM:
            self._drain(poll, self._command.grace, self._alone)

    def _drain(self, poll: select.poll, seconds: float, done: Callable[[], bool]) -> None:
        """Go on reading until something is so, or the time is up; look often at first, then every :data:`TICK_SECONDS`."""
        give_up = time.monotonic() + seconds
        tick = TICK_SECONDS / 16
        while not done() and time.monotonic() < give_up:
            for descriptor, _ in poll.poll(max(1, tick * 1000)):
                self._streams.read(descriptor)
            tick = min(TICK_SECONDS, tick * 2)

    def _alone(self) -> bool:
        """Tell whether nothing lives in the cgroup any more."""
        return not _populated(self.place)

    def _sweep(self) -> None:
        """Kill what is left in the cgroup, count it, and remove the directory, once."""
        if self._swept:
            return
        self._limits.look()
        if _populated(self.place):
            left = set(_members(self.place)) - {self._pid}
            self._report["leaked"] += sum(not (self._door.wrapped and begins_namespace(pid)) for pid in left)
            self._report["survivors"] += kill_cgroup(self.place)
        else:
            hierarchy.remove(self.place)
        self._swept = True

    def _release(self) -> None:
        LIVE.pop(self._pid or 0, None)
        self._streams.close()
        self._limits.close()
        if self._asked >= 0:
            os.close(self._asked)
            self._asked = -1


def kill_cgroup(place: Path) -> int:
    """Kill everything in a cgroup and below it, and remove it; return how many processes outlived even that."""
    give_up = time.monotonic() + SWEEP_SECONDS
    while _populated(place) and time.monotonic() < give_up:
        with contextlib.suppress(OSError):
            (place / "cgroup.kill").write_bytes(b"1")
        time.sleep(TICK_SECONDS / 5)
    survivors = len(_members(place)) if _populated(place) else 0
    hierarchy.remove(place)
    return survivors


def _populated(place: Path) -> bool:
    """Tell whether anything lives in a cgroup or below it; zombies do not."""
    try:
        descriptor = os.open(f"{place}/cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return b"populated 1" in os.read(descriptor, 256)
    finally:
        os.close(descriptor)


def _members(place: Path) -> list[int]:
    """Return the processes in a cgroup and below it."""
    found: list[int] = []
    for directory, _, _ in os.walk(place):
        with contextlib.suppress(OSError):
            found += [int(word) for word in Path(directory, "cgroup.procs").read_bytes().split()]
    return found


def cgroup_of(pid: int) -> str | None:
    """Return the cgroup of a running command, as ``/proc/PID/cgroup`` names it; ``None`` for one that has none of its own."""
    place, mount = LIVE.get(pid), hierarchy.unified_mount()
    return str(place).removeprefix(str(mount)) if place and mount else None


def end_cgroup(path: str) -> int:
    """Kill everything in a cgroup that is named as ``/proc/PID/cgroup`` names it; return how many processes that were."""
    mount = hierarchy.unified_mount()
    place = mount / path.strip("/") if mount else None
    if place is None or not place.is_dir():
        return 0
    count = len(_members(place))
    kill_cgroup(place)
    return count
