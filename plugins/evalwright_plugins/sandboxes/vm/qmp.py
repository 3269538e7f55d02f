"""QEMU's monitor: commands and their answers over a Unix socket, with a descriptor where a command needs one."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from evalwright.errors import SandboxError
from evalwright.interfaces import Deadline

__all__ = ["Monitor", "connect"]

PAUSE_SECONDS = 0.005
LINE_BYTES = 1 << 20


class Monitor:
    """One connection to a monitor. Used by one thread at a time."""

    def __init__(self, connection: socket.socket, deadline: Deadline) -> None:
        self._socket = connection
        self._buffer = bytearray()
        self._line(deadline)
        self.execute("qmp_capabilities", deadline=deadline)

    def execute(
        self,
        command: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        deadline: Deadline,
        descriptor: int | None = None,
    ) -> Any:
        """Carry out a command and return its answer. Raises ``SandboxError`` with what QEMU says."""
        message = json.dumps({"execute": command, "arguments": dict(arguments or {})}).encode()
        socket.send_fds(self._socket, [message], [] if descriptor is None else [descriptor])
        while True:
            answer = self._line(deadline)
            if "error" in answer:
                raise SandboxError(f"QEMU refused {command}: {answer['error'].get('desc')}", hint="is it another version?")
            if "return" in answer:
                return answer["return"]

    def await_status(self, command: str, ended: Callable[[Any], bool], deadline: Deadline) -> Any:
        """Ask until an answer satisfies ``ended`` and return it. ``SandboxError`` at the deadline."""
        while True:
            answer = self.execute(command, deadline=deadline)
            if ended(answer):
                return answer
            if deadline.expired:
                raise SandboxError(f"QEMU's {command} did not end in time: {answer}", hint="is the machine overloaded?")
            time.sleep(PAUSE_SECONDS)

    def __enter__(self) -> Monitor:
        """Return self."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Disconnect."""
        self._socket.close()

    def _line(self, deadline: Deadline) -> dict[str, Any]:
        while b"\n" not in self._buffer:
            self._socket.settimeout(max(PAUSE_SECONDS, deadline.remaining))
            try:
                data = self._socket.recv(LINE_BYTES)
            except TimeoutError:
                raise SandboxError("QEMU's monitor does not answer", hint="is the machine overloaded?") from None
            except OSError as error:
                raise SandboxError(f"QEMU's monitor is gone: {error}") from error
            if not data:
                raise SandboxError("QEMU has ended")
            self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        record: dict[str, Any] = json.loads(line)
        return record


def connect(path: Path, alive: Callable[[], bool], deadline: Deadline) -> socket.socket:
    """Connect to a Unix socket that QEMU is about to make, however long its path is. Raises ``SandboxError``."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        while True:
            try:
                connection.connect(f"/proc/self/fd/{directory}/{path.name}")
                return connection
            except (FileNotFoundError, ConnectionRefusedError):
                if not alive() or deadline.expired:
                    raise SandboxError("QEMU did not start") from None
                time.sleep(PAUSE_SECONDS)
    except BaseException:
        connection.close()
        raise
    finally:
        os.close(directory)
