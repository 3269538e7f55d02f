"""A running command, whatever supervises it, and the account of its end."""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from evalwright.model import Completed
from evalwright.processes._streams import Streams
from evalwright.processes.limits import LimitGroup

__all__ = ["DRAIN_SECONDS", "Process", "completed_by"]

DRAIN_SECONDS = 1.0
SHELL_SIGNAL = 128
SIGNAL_LIMITS: Mapping[int, tuple[str, str]] = {
    signal.SIGXCPU: ("cpu_seconds", "cpu_limit"),
    signal.SIGXFSZ: ("file_size_bytes", "file_size_limit"),
}


class Process(ABC):
    """One running command. :meth:`wait` belongs to one thread; :meth:`kill` may be called from any."""

    @abstractmethod
    def kill(self) -> None:
        """Have the command's whole tree ended: TERM, its grace time, KILL."""

    @abstractmethod
    def wait(self) -> Completed:
        """Pump the output until the command has ended, and everything that it started with it; return how.

        Raises ``SandboxLost`` when nobody can say how it ended.
        """


def completed_by(report: Mapping[str, Any], streams: Streams, limits: LimitGroup, *, wrapped: bool = False) -> Completed:
    """Return how a command ended.

    ``report`` holds ``status`` as ``waitpid`` gives it (``None`` for a command that was cut), ``duration`` in seconds,
    ``timed_out``, ``canceled``, the counts ``leaked`` and ``survivors``, and ``spawn_error`` with ``spawn_errno`` if it never
    began. A ``wrapped`` command's death by signal arrives as a shell has it: 128 more than the signal's number.
    """
    spawn_error = report.get("spawn_error")
    status = None if spawn_error else report["status"]
    code = None if status is None else os.waitstatus_to_exitcode(status)
    if wrapped and code is not None and code - SHELL_SIGNAL in set(signal.Signals):
        code = SHELL_SIGNAL - code
    ended_by = -code if code is not None and code < 0 else None
    stdout, stderr = streams.outputs()
    return Completed(
        exit_code=code,
        signal=ended_by,
        timed_out=report["timed_out"],
        canceled=report["canceled"],
        spawn_error=spawn_error,
        spawn_errno=report.get("spawn_errno"),
        limit=_limit(code, limits, report["duration"]),
        limit_source=limits.source,
        duration=report["duration"],
        stdout=stdout,
        stderr=stderr,
        leaked_processes=report["leaked"],
        survivors=report["survivors"],
    )


def _limit(code: int | None, limits: LimitGroup, duration: float) -> str | None:
    """Name the limit that ended a command: its cgroup's, or that whose signal ended it or the last program of its shell.

    A second after SIGXCPU, which can be ignored, the kernel sends SIGKILL. Who exits with a shell's number for a signal is
    not believed when the time did not suffice to compute for so long.
    """
    if code == 0:
        return None
    number = 0 if code is None else -code if code < 0 else code - SHELL_SIGNAL
    allowed = limits.rest.get("cpu_seconds")
    if number == signal.SIGKILL and allowed is not None and duration >= allowed:
        number = signal.SIGXCPU
    if number == signal.SIGXCPU and allowed is not None and duration * (os.cpu_count() or 1) < allowed:
        number = 0
    limit, reason = SIGNAL_LIMITS.get(number, ("", ""))
    return limits.exceeded or (reason if limit in limits.rest else None)
