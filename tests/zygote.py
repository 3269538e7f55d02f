"""A process that has imported the command line already and forks a fresh copy of itself for each call.

Starting Python and importing everything takes most of the time of a short call, and the tests make thousands. A call made
here runs the same code with its own directory, environment and standard streams; what start-up itself does is tested by
calls that start Python.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

PRELOADED = (
    "evalwright.audit",
    "evalwright.cli.dispatch",
    "evalwright.cli.project",
    "evalwright.coordinate",
    "evalwright.suite",
    "evalwright.worker",
    "evalwright_plugins.progress",
    "evalwright_plugins.queues.local",
    "evalwright_plugins.runners.command",
    "evalwright_plugins.sandboxes.subprocess",
    "evalwright_plugins.workflow.commands.deciding",
    "evalwright_plugins.workflow.commands.looking",
    "evalwright_plugins.workflow.commands.preflight",
    "evalwright_scorers.choice",
    "evalwright_scorers.command",
    "evalwright_scorers.exit_code",
    "evalwright_scorers.files",
    "evalwright_scorers.json_schema",
    "evalwright_scorers.number",
    "evalwright_scorers.numeric",
    "evalwright_scorers.tests",
    "evalwright_scorers.text",
    "stevedore.named",
)


class Zygote:
    """The caller's side: one zygote process per test process."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__)), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=Path(__file__).parent.parent,
            )

    def call(
        self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdin: int, stdout: int, stderr: int
    ) -> socket.socket:
        """Start one call; the socket returned tells the call's pid, then its exit status as a JSON number each."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        request = json.dumps({"words": list(words), "cwd": os.fspath(cwd), "env": dict(env)}).encode()
        payload = os.memfd_create("request", os.MFD_CLOEXEC)
        with open(payload, "wb") as file, theirs:
            file.write(request)
            file.flush()
            with self._lock:
                socket.send_fds(self._socket, [b"call"], [payload, stdin, stdout, stderr, theirs.fileno()])
        return ours

    def close(self) -> None:
        """End the zygote."""
        self._socket.close()
        self._process.wait()


def main() -> None:
    """Import everything, then fork for each request until the other side is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for name in PRELOADED:
        importlib.import_module(name)
    channel = socket.socket(fileno=int(sys.argv[1]))
    while True:
        _, descriptors, _, _ = socket.recv_fds(channel, 16, 5)
        if not descriptors:
            return
        if os.fork() == 0:
            channel.close()
            attend(*descriptors)
        for descriptor in descriptors:
            os.close(descriptor)


def attend(payload: int, stdin: int, stdout: int, stderr: int, answer: int) -> None:
    """Fork the call itself, wait for its end and tell it."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with open(payload, "rb") as file:
        file.seek(0)
        request = json.load(file)
    control = socket.socket(fileno=answer)
    child = os.fork()
    if child == 0:
        control.close()
        become(request, (stdin, stdout, stderr))
    for descriptor in (stdin, stdout, stderr):
        os.close(descriptor)
    control.send(json.dumps(child).encode())
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        control.send(json.dumps(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def become(request: Mapping[str, object], streams: Sequence[int]) -> None:
    """Turn this process into the command line."""
    for target, descriptor in enumerate(streams):
        os.dup2(descriptor, target)
    os.closerange(3, 64)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(request["env"])  # type: ignore[call-overload]
    words = [str(word) for word in request["words"]]  # type: ignore[attr-defined]
    sys.argv = ["evalwright", *words]
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115  they are the process's own
    from evalwright.cli import main as command_line

    code = 70
    try:
        code = command_line(words)
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else 1
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
