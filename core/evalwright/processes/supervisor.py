"""The door to all of it: starts commands, each supervised to its end by the best means that this machine has."""

from __future__ import annotations

import contextlib
import os
import threading
from types import TracebackType

from evalwright.interfaces import Command
from evalwright.model import Completed
from evalwright.processes._client import Door, ForkServer, SupervisedProcess
from evalwright.processes.cgroups import CgroupProcess, Cgroups
from evalwright.processes.limits import LimitGroups
from evalwright.processes.process import Process

__all__ = ["Supervisor"]

MEANS_VARIABLE = "EVALWRIGHT_SUPERVISION"


class Supervisor:
    """Starts commands, each supervised to its end. Thread-safe. Use it as a context manager, or call :meth:`close`.

    With a writable cgroup v2 directory every command gets a cgroup of its own; elsewhere a supervising process, as with
    ``EVALWRIGHT_SUPERVISION=process``. When this process dies, however it dies, every running command's tree is killed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server = ForkServer()
        self._limits = LimitGroups()
        self._cgroups: Cgroups | None = None
        self._decided = os.environ.get(MEANS_VARIABLE) == "process"
        self._live: set[Process] = set()

    def start(self, command: Command, *, wrapped: bool = False) -> Process:
        """Start a command; its output waits in pipes until :meth:`Process.wait`.

        A program that cannot be executed is no exception: :meth:`Process.wait` reports it in ``spawn_error``. A ``wrapped``
        command is a program that runs another one in a pid namespace and ends with its status: TERM goes to what it runs
        and not to itself, and neither it nor the first two processes of the namespace count as left running.
        """
        cgroups = self._writable()
        door = Door(server=self._server, limits=self._limits, ended=self._live.discard, wrapped=wrapped)
        if cgroups is None:
            process: Process = SupervisedProcess(command, door)
        else:
            process = CgroupProcess(command, door, cgroups)
        self._live.add(process)
        return process

    def run(self, command: Command) -> Completed:
        """Start a command and wait for its end."""
        return self.start(command).wait()

    def close(self) -> None:
        """End every running command and what supervises them."""
        for process in list(self._live):
            process.kill()
        self._server.close()
        with self._lock:
            if self._cgroups:
                self._cgroups.close()
            self._limits.close()
            self._cgroups, self._decided = None, os.environ.get(MEANS_VARIABLE) == "process"

    def __enter__(self) -> Supervisor:
        """Return self."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        self.close()

    def __del__(self) -> None:
        """Close a supervisor that was forgotten, so that nothing outlives its use."""
        with contextlib.suppress(Exception):
            self.close()

    def _writable(self) -> Cgroups | None:
        """Return this process's cgroups, made with the first command; ``None`` where that is not possible."""
        with self._lock:
            if not self._decided:
                self._decided = True
                self._cgroups = Cgroups.make()
            return self._cgroups
