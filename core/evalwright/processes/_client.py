"""The harness's side: one fork server for as long as commands run, one :class:`Process` per command."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

from evalwright.errors import SandboxError, SandboxLost
from evalwright.interfaces import BoundedOutput, Command, OutputSink
from evalwright.model import Completed
from evalwright.processes.identity import state_of
from evalwright.processes.orphans import become_subreaper, end_orphans

__all__ = ["Process", "Supervisor"]

CHUNK_BYTES = 1 << 16
PIPE_BYTES = 1 << 18
ASK_SECONDS = 0.25
LOOK_SECONDS = 1.0
DRAIN_SECONDS = 1.0
LOST_SECONDS = 30.0
SIGNAL_LIMITS = {signal.SIGXCPU: "cpu_limit", signal.SIGXFSZ: "file_size_limit"}


class Supervisor:
    """Starts commands, each supervised to its end. Thread-safe. Use it as a context manager, or call :meth:`close`.

    The fork server starts with the first command and again if it was killed. When this process dies, however it dies,
    every running command's tree is killed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._live: set[Process] = set()

    def start(self, command: Command) -> Process:
        """Start a command; its output waits in pipes until :meth:`Process.wait`.

        A program that cannot be executed is no exception: :meth:`Process.wait` reports it in ``spawn_error``.
        """
        process = Process(command, self)
        self._live.add(process)
        return process

    def run(self, command: Command) -> Completed:
        """Start a command and wait for its end."""
        return self.start(command).wait()

    def close(self) -> None:
        """End every running command and the fork server."""
        for process in list(self._live):
            process.kill()
        with self._lock:
            self._disconnect()

    def __enter__(self) -> Supervisor:
        """Return self."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        self.close()

    def __del__(self) -> None:
        """Close a supervisor that was forgotten, so that no fork server outlives its use."""
        with contextlib.suppress(Exception):
            self.close()

    def ended(self, process: Process, command_pid: int | None, *, lost: bool) -> None:
        """Forget a process. Of one whose supervisor was lost, everything that can still be found is dead after this."""
        self._live.discard(process)
        if lost:
            self._tidy()
            end_orphans(command_pid)

    def rouse(self) -> None:
        """Wake the fork server if somebody stopped it."""
        server = self._server
        if server and state_of(server.pid) == "T":
            server.send_signal(signal.SIGCONT)

    def _tidy(self) -> None:
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

    def send(self, descriptors: list[int]) -> None:
        """Pass descriptors to the fork server, started now if there is none."""
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

    def _connect(self) -> socket.socket:
        become_subreaper()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = str(Path(__file__).with_name("_server.py"))
        with theirs:
            self._server = subprocess.Popen(
                [sys.executable, "-I", "-S", program, str(theirs.fileno())],
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


class Process:
    """One running command. :meth:`wait` belongs to one thread; :meth:`kill` may be called from any."""

    def __init__(self, command: Command, supervisor: Supervisor) -> None:
        self._command = command
        self._supervisor = supervisor
        self._command_pid: int | None = None
        self._supervisor_pid: int | None = None
        self._report: dict[str, Any] | None = None
        self._lost = False
        self._asked = False
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._pipes: dict[int, tuple[Literal["stdout", "stderr"], OutputSink]] = {}
        self._sinks: dict[str, OutputSink] = {}
        with contextlib.ExitStack() as cleanup:
            cleanup.callback(theirs.close)
            stdout, stderr = self._pipe("stdout", cleanup), self._pipe("stderr", cleanup)
            stdin = _stdin(command.stdin)
            cleanup.callback(os.close, stdin)
            request = _memory_file(_request(command))
            cleanup.callback(os.close, request)
            try:
                supervisor.send([request, stdin, stdout, stderr, theirs.fileno()])
            except BaseException:
                self._release()
                raise

    def kill(self) -> None:
        """Ask the supervisor, once, to end the command's tree: TERM, grace, KILL."""
        if not self._asked:
            self._asked = True
            with contextlib.suppress(OSError):
                self._control.send(b"kill")

    def wait(self) -> Completed:
        """Pump the output until the command has ended and return how.

        Raises ``SandboxLost`` when the supervisor was killed or does not answer.
        """
        try:
            self._pump()
        finally:
            self._release()
            self._supervisor.ended(self, self._command_pid, lost=self._report is None)
        if self._report is None:
            raise SandboxLost(
                "the command's supervisor is gone", hint="a sandbox with a pid namespace keeps agents away from it"
            )
        return self._completed(self._report)

    def _pipe(self, name: Literal["stdout", "stderr"], cleanup: contextlib.ExitStack) -> int:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        cleanup.callback(os.close, writer)
        with contextlib.suppress(OSError):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.set_blocking(reader, False)
        sink = (self._command.capture or BoundedOutput)()
        self._pipes[reader] = (name, sink)
        self._sinks[name] = sink
        return writer

    def _pump(self) -> None:
        poll = select.poll()
        for descriptor in (*self._pipes, self._control.fileno()):
            poll.register(descriptor, select.POLLIN)
        give_up = self._give_up()
        look = time.monotonic() + LOOK_SECONDS
        while self._pipes or not self._ended:
            for descriptor, _ in poll.poll(ASK_SECONDS * 1000):
                if descriptor == self._control.fileno():
                    self._receive()
                    if self._ended:
                        poll.unregister(descriptor)
                        give_up = time.monotonic() + DRAIN_SECONDS
                elif not self._read(descriptor):
                    poll.unregister(descriptor)
                    del self._pipes[descriptor]
                    os.close(descriptor)
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

    def _read(self, descriptor: int) -> bool:
        name, sink = self._pipes[descriptor]
        try:
            data = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return True
        if data:
            sink.feed(data)
            if self._command.on_output:
                self._command.on_output(name, data)
        return bool(data)

    def _look(self) -> None:
        """Kill a supervisor that somebody stopped; the fork server then ends the tree."""
        self._supervisor.rouse()
        if self._supervisor_pid is not None and state_of(self._supervisor_pid) == "T":
            self._abandon()

    def _abandon(self) -> None:
        """Give up on a supervisor that was stopped: the fork server ends the tree of a killed one."""
        if self._report is None and self._supervisor_pid is not None:
            with contextlib.suppress(OSError):
                os.kill(self._supervisor_pid, signal.SIGKILL)

    def _release(self) -> None:
        self._control.close()
        for descriptor in self._pipes:
            os.close(descriptor)
        self._pipes.clear()

    def _completed(self, report: dict[str, Any]) -> Completed:
        spawn_error = report.get("spawn_error")
        status = None if spawn_error else report["status"]
        code = None if status is None else os.waitstatus_to_exitcode(status)
        ended_by = -code if code is not None and code < 0 else None
        return Completed(
            exit_code=code,
            signal=ended_by,
            timed_out=report["timed_out"],
            canceled=report["canceled"],
            spawn_error=spawn_error,
            spawn_errno=report.get("spawn_errno"),
            limit=SIGNAL_LIMITS.get(signal.Signals(ended_by)) if ended_by in set(signal.Signals) else None,
            duration=report["duration"],
            stdout=self._sinks["stdout"].finish(),
            stderr=self._sinks["stderr"].finish(),
            leaked_processes=report["leaked"],
            survivors=report["survivors"],
        )


def _request(command: Command) -> bytes:
    return json.dumps(
        {
            "argv": list(command.argv),
            "cwd": command.cwd or "/",
            "env": dict(command.env),
            "timeout": command.timeout,
            "grace": command.grace,
            "limits": dict(command.limits),
        }
    ).encode()


def _stdin(content: bytes | None) -> int:
    if content is None:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    return _memory_file(content)


def _memory_file(content: bytes) -> int:
    descriptor = os.memfd_create("evalwright", os.MFD_CLOEXEC)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
