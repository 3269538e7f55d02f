"""A command's streams: what it reads, and two pipes that are emptied into bounded sinks."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
from typing import Literal

from evalwright.interfaces import BoundedOutput, Command, OutputSink
from evalwright.model import Output

__all__ = ["Streams", "memory_file"]

CHUNK_BYTES = 1 << 16
PIPE_BYTES = 1 << 18
FIRST_FREE = 3


class Streams:
    """The streams of one command. ``stdin``, ``stdout`` and ``stderr`` are the command's ends, until :meth:`hand_over`."""

    def __init__(self, command: Command) -> None:
        self._on_output = command.on_output
        self._readers: dict[int, tuple[Literal["stdout", "stderr"], OutputSink]] = {}
        self._sinks: dict[str, OutputSink] = {}
        self._poll: select.poll | None = None
        self.stdin = self.stdout = self.stderr = -1
        try:
            self.stdin = _stdin(command.stdin)
            self.stdout = self._pipe("stdout", command)
            self.stderr = self._pipe("stderr", command)
        except BaseException:
            self.close()
            raise

    def hand_over(self) -> None:
        """Close the command's ends here: it has its own by now."""
        for descriptor in (self.stdin, self.stdout, self.stderr):
            if descriptor >= 0:
                os.close(descriptor)
        self.stdin = self.stdout = self.stderr = -1

    def watch(self, poll: select.poll) -> None:
        """Register the pipes; each is taken out again when it ends."""
        self._poll = poll
        for reader in self._readers:
            poll.register(reader, select.POLLIN)

    @property
    def open(self) -> bool:
        """Tell whether somebody may still write."""
        return bool(self._readers)

    def read(self, descriptor: int) -> bool:
        """Take the next bytes of a pipe that is ready; tell whether that descriptor is one."""
        if descriptor not in self._readers:
            return False
        name, sink = self._readers[descriptor]
        try:
            data = os.read(descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return True
        if data:
            sink.feed(data)
            if self._on_output:
                self._on_output(name, data)
        else:
            self._end(descriptor)
        return True

    def close(self) -> None:
        """Close everything."""
        self.hand_over()
        for reader in list(self._readers):
            self._end(reader)

    def outputs(self) -> tuple[Output, Output]:
        """Return what stdout and stderr held."""
        return self._sinks["stdout"].finish(), self._sinks["stderr"].finish()

    def _end(self, reader: int) -> None:
        if self._poll:
            self._poll.unregister(reader)
        del self._readers[reader]
        os.close(reader)

    def _pipe(self, name: Literal["stdout", "stderr"], command: Command) -> int:
        reader, writer = os.pipe2(os.O_CLOEXEC)
        with contextlib.suppress(OSError):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.set_blocking(reader, False)
        sink = (command.capture or BoundedOutput)()
        self._readers[reader] = (name, sink)
        self._sinks[name] = sink
        return _above_stdio(writer)


def memory_file(content: bytes) -> int:
    """Return a descriptor from which exactly ``content`` is read."""
    descriptor = os.memfd_create("evalwright", os.MFD_CLOEXEC)
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _stdin(content: bytes | None) -> int:
    if content is None:
        return _above_stdio(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    return _above_stdio(memory_file(content))


def _above_stdio(descriptor: int) -> int:
    """Return a descriptor that is none of the three standard ones, which a process may have been started without."""
    if descriptor >= FIRST_FREE:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, FIRST_FREE)
    os.close(descriptor)
    return moved
