"""Commands under a supervisor of their own, forked by one server: for machines and users without cgroups."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.errors import SandboxError, SandboxLost
from evalwright.interfaces import Command
from evalwright.model import Completed
from evalwright.processes._streams import Streams, memory_file
from evalwright.processes.identity import state_of
from evalwright.processes.limits import LimitGroup, LimitGroups
from evalwright.processes.orphans import become_subreaper, end_orphans
from evalwright.processes.process import DRAIN_SECONDS, Process, completed_by

__all__ = ["Door", "ForkServer", "SupervisedProcess", "send_command"]

ASK_SECONDS = 0.25
LOOK_SECONDS = 1.0
LOST_SECONDS = 30.0
BOOT = "import os, sys; sys.path.append(os.path.dirname(sys.argv[1])); import _server; _server.main()"
"""Starts the program that is its first argument. A program that Python is told to run it compiles every time."""


class ForkServer:
    """The harness's side of the server that forks supervisors. Thread-safe; it starts with the first command and again if
    it was killed. When this process dies, however it dies, every running command's tree is killed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def send(self, descriptors: list[int]) -> None:
        """Pass descriptors to the server, started now if there is none."""
        with self._lock:
            for attempt in (1, 2):
                channel = self._channel or self._connect()
                try:
                    socket.send_fds(channel, [b"run"], descriptors)
                    return
                except OSError as error:
                    self._disconnect()
                    if attempt == 2:
                        raise SandboxError(f"the fork server does not answer: {error}") from error

    def rouse(self) -> None:
        """Wake the server if somebody stopped it."""
        server = self._server
        if server and state_of(server.pid) == "T":
            server.send_signal(signal.SIGCONT)

    def tidy(self) -> None:
        """Return once no tree of a killed supervisor lives, or nobody answers for long."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(LOOK_SECONDS)
        give_up = time.monotonic() + LOST_SECONDS
        with ours, contextlib.suppress(OSError, SandboxError):
            with theirs:
                self.send([theirs.fileno()])
            while time.monotonic() < give_up:
                self.rouse()
                with contextlib.suppress(TimeoutError):
                    ours.recv(16)
                    return

    def close(self) -> None:
        """End the server, and with it every command that still runs."""
        with self._lock:
            self._disconnect()

    def _connect(self) -> socket.socket:
        become_subreaper()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = str(Path(__file__).with_name("_server.py"))
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", BOOT, program, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd="/",
                env={},
            )
        self._channel = ours
        return ours

    def _disconnect(self) -> None:
        if self._channel:
            self._channel.close()
        if self._server:
            try:
                self._server.wait(LOST_SECONDS)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
        self._channel = self._server = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """What a command needs of the supervisor that starts it. ``ended`` is told once it is over."""

    server: ForkServer
    limits: LimitGroups
    ended: Callable[[Process], None]
    wrapped: bool


class SupervisedProcess(Process):
    """A command under its own supervisor process."""

    def __init__(self, command: Command, door: Door) -> None:
        self._command = command
        self._door = door
        self._command_pid: int | None = None
        self._supervisor_pid: int | None = None
        self._report: dict[str, Any] | None = None
        self._lost = False
        self._asked = False
        self._limits = door.limits.make(command.limits, None, wrapped=door.wrapped)
        self._streams = Streams(command)
        try:
            self._control = send_command(command, self._streams, door, self._limits)
        except BaseException:
            self._streams.close()
            self._limits.close()
            raise

    def kill(self) -> None:
        """Ask the supervisor, once, to end the command's tree: TERM, grace, KILL."""
        if not self._asked:
            self._asked = True
            with contextlib.suppress(OSError):
                self._control.send(b"kill")

    def wait(self) -> Completed:
        """Pump the output until the command has ended and return how.

        Raises ``SandboxLost`` when the supervisor was killed or does not answer; everything that can still be found of the
        command is dead by then.
        """
        try:
            self._pump()
        finally:
            self._release()
            self._door.ended(self)
            if self._report is None:
                self._door.server.tidy()
                end_orphans(self._command_pid)
            self._limits.close()
        if self._report is None:
            raise SandboxLost(
                "the command's supervisor is gone", hint="a sandbox with a pid namespace keeps agents away from it"
            )
        return completed_by(self._report, self._streams, self._limits, wrapped=self._door.wrapped)

    def _pump(self) -> None:
        poll = select.poll()
        self._streams.watch(poll)
        poll.register(self._control.fileno(), select.POLLIN)
        give_up = self._give_up()
        look = time.monotonic() + LOOK_SECONDS
        while self._streams.open or not self._ended:
            for descriptor, _ in poll.poll(ASK_SECONDS * 1000):
                if self._streams.read(descriptor):
                    continue
                self._receive()
                if self._ended:
                    poll.unregister(descriptor)
                    give_up = time.monotonic() + DRAIN_SECONDS
            if give_up is not None and time.monotonic() > give_up:
                self._abandon()
                return
            if self._command.canceled and self._command.canceled():
                self.kill()
            if time.monotonic() > look:
                look = time.monotonic() + LOOK_SECONDS
                self._look()

    @property
    def _ended(self) -> bool:
        return self._report is not None or self._lost

    def _give_up(self) -> float | None:
        if self._command.timeout is None:
            return None
        return time.monotonic() + self._command.timeout + self._command.grace + LOST_SECONDS

    def _receive(self) -> None:
        message = self._message()
        record = json.loads(message) if message else None
        if record is None:
            self._lost = True
        elif "supervisor" in record:
            self._supervisor_pid, self._command_pid = record["supervisor"], record["command"]
            if self._command.on_start:
                self._command.on_start((record["supervisor"], record["command"]))
        else:
            self._report = record

    def _message(self) -> bytes:
        """Return the next message. A reset says only that ours was never read: what was sent before is still there."""
        for _ in range(2):
            try:
                return self._control.recv(1 << 16)
            except ConnectionResetError:
                continue
            except OSError:
                break
        return b""

    def _look(self) -> None:
        """Kill a supervisor that somebody stopped; the fork server then ends the tree."""
        self._door.server.rouse()
        if self._supervisor_pid is not None and state_of(self._supervisor_pid) == "T":
            self._abandon()

    def _abandon(self) -> None:
        """Give up on a supervisor that was stopped: the fork server ends the tree of a killed one."""
        if self._report is None and self._supervisor_pid is not None:
            with contextlib.suppress(OSError):
                os.kill(self._supervisor_pid, signal.SIGKILL)

    def _release(self) -> None:
        self._control.close()
        self._streams.close()


def send_command(
    command: Command, streams: Streams, door: Door, limits: LimitGroup, *, cgroup: str | None = None
) -> socket.socket:
    """Have the server start a command, supervised by a process or in a cgroup; return the socket on which it answers."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    request = {
        "argv": list(command.argv),
        "cwd": command.cwd or "/",
        "env": dict(command.env),
        "timeout": command.timeout,
        "grace": command.grace,
        "limits": limits.rest,
        "groups": [str(place) for place in limits.enter],
        "cgroup": cgroup,
        "wrapped": door.wrapped,
    }
    descriptor = memory_file(json.dumps(request).encode())
    try:
        with theirs:
            door.server.send([descriptor, streams.stdin, streams.stdout, streams.stderr, theirs.fileno()])
    except BaseException:
        control.close()
        raise
    finally:
        os.close(descriptor)
    streams.hand_over()
    return control
