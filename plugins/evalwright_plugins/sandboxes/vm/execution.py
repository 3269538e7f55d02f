"""One command in the guest, followed from the host: its streams, its time limit, its end."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Mapping
from typing import Any, Literal

from evalwright.errors import SandboxError
from evalwright.interfaces import BoundedOutput, Command
from evalwright.model import Completed
from evalwright_plugins.sandboxes.vm.channel import Channel, record_of
from evalwright_plugins.sandboxes.vm.guest import wire

__all__ = ["Execution"]

ASK_SECONDS = 0.25
NAMES: Mapping[int, Literal["stdout", "stderr"]] = {wire.DATA: "stdout", wire.ERROR: "stderr"}
SHELL_SIGNAL = 128
ENOUGH = 0.9
"""What part of its processor time a command must have used before a shell's number for a signal is believed."""


class Execution:
    """A command that runs. :meth:`follow` belongs to one thread; :meth:`kill` may be called from any."""

    def __init__(self, channel: Channel, command: Command, limits: Mapping[str, int]) -> None:
        self._command = command
        self._limits = limits
        self._sinks = {name: (command.capture or BoundedOutput)() for name in NAMES.values()}
        self._input = memoryview(command.stdin or b"")
        self._stop = threading.Event()
        self._cut: Literal["", "timed_out", "canceled"] = ""
        self._kill_at: float | None = None
        self._started = time.monotonic()
        request = {
            "do": "run",
            "argv": list(command.argv),
            "cwd": command.cwd,
            "env": dict(command.env),
            "stdin": command.stdin is not None,
            "limits": dict(limits),
        }
        self._stream = channel.open(request)

    def kill(self) -> None:
        """Have the command's tree ended: TERM, its grace time, KILL."""
        self._stop.set()
        self._stream.wake()

    def follow(self) -> Completed:
        """Pump the streams until the command has ended and return how.

        Raises ``SandboxLost`` when the guest is gone, ``SandboxError`` for a directory that may not be used.
        """
        fed = self._feed()
        while True:
            frame = self._stream.receive(self._patience())
            if frame and frame.kind == wire.DONE:
                return self._completed(record_of(frame.payload))
            if frame and frame.kind in NAMES:
                self._take(NAMES[frame.kind], frame.payload)
            if not fed:
                fed = self._feed()
            self._watch_time()

    def _take(self, name: Literal["stdout", "stderr"], data: bytes) -> None:
        self._sinks[name].feed(data)
        if self._command.on_output:
            self._command.on_output(name, data)
        self._stream.consumed(len(data))

    def _feed(self) -> bool:
        """Send what stdin's window takes; tell whether everything was sent."""
        if self._command.stdin is None:
            return True
        while self._input:
            count = self._stream.send(bytes(self._input[: wire.CHUNK]), wait=False)
            if count == 0:
                return False
            self._input = self._input[count:]
        self._stream.say(wire.END)
        return True

    def _patience(self) -> float:
        """Return how long nothing has to be looked at unless the guest says something."""
        ends = [ASK_SECONDS]
        if self._command.timeout is not None and not self._cut:
            ends.append(self._started + self._command.timeout - time.monotonic())
        if self._kill_at is not None:
            ends.append(self._kill_at - time.monotonic())
        return max(0.0, min(ends))

    def _watch_time(self) -> None:
        """Cut the command when its time is up or it shall stop, and kill it once its grace is over."""
        now = time.monotonic()
        if not self._cut:
            timeout = self._command.timeout
            if timeout is not None and now >= self._started + timeout:
                self._cut = "timed_out"
            elif self._stop.is_set() or (self._command.canceled is not None and self._command.canceled()):
                self._cut = "canceled"
            else:
                return
            self._signal(signal.SIGTERM)
            self._kill_at = now + self._command.grace
        elif self._kill_at is not None and now >= self._kill_at:
            self._signal(signal.SIGKILL)
            self._kill_at = None

    def _signal(self, number: int) -> None:
        self._stream.say(wire.SIGNAL, bytes([number]))

    def _completed(self, answer: Mapping[str, Any]) -> Completed:
        if answer.get("outside"):
            raise SandboxError(f"{self._command.cwd} leads out of the workspace", hint="use a directory inside it")
        status = answer.get("status")
        if self._stop.is_set() and not self._cut:
            self._cut = "canceled"
        code = None if self._cut or not isinstance(status, int) else os.waitstatus_to_exitcode(status)
        ended_by = -code if code is not None and code < 0 else None
        return Completed(
            exit_code=code,
            signal=ended_by,
            timed_out=self._cut == "timed_out",
            canceled=self._cut == "canceled",
            spawn_error=answer.get("error"),
            spawn_errno=answer.get("errno"),
            limit=None if self._cut else _limit(answer, code, self._limits),
            duration=time.monotonic() - self._started,
            stdout=self._sinks["stdout"].finish(),
            stderr=self._sinks["stderr"].finish(),
            leaked_processes=int(answer.get("leaked", 0)),
            survivors=int(answer.get("survivors", 0)),
        )


def _limit(answer: Mapping[str, Any], code: int | None, limits: Mapping[str, int]) -> str | None:
    """Return the limit that ended a command, or the last program of its shell; one that was met but got over is none."""
    if not code:
        return None
    number = -code if code < 0 else code - SHELL_SIGNAL
    computed = "cpu_seconds" in limits and (code < 0 or answer.get("seconds", 0.0) >= ENOUGH * limits["cpu_seconds"])
    if answer.get("cpu") or (number == signal.SIGXCPU and computed):
        return "cpu_limit"
    if answer.get("oom"):
        return "oom_killed"
    if answer.get("pids"):
        return "pids_limit"
    return "file_size_limit" if number == signal.SIGXFSZ and "file_size_bytes" in limits else None
