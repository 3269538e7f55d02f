"""Frames in, frames out, and what is done when a descriptor is ready: one thread that nobody can block."""

from __future__ import annotations

import contextlib
import json
import os
import select
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

if TYPE_CHECKING:
    from evalwright_plugins.sandboxes.vm.guest import wire
else:
    import wire

READ_BYTES = 1 << 18
PAUSE_SECONDS = 0.01
IDLE_MILLISECONDS = 1000


class Job(Protocol):
    """The guest's end of one stream."""

    def data(self, payload: bytes) -> None:
        """Take bytes that the host sent."""
        ...

    def end(self) -> None:
        """Note that the host sends no more."""
        ...

    def credit(self, count: int) -> None:
        """Note that the host has consumed so many bytes."""
        ...

    def signal(self, number: int) -> None:
        """Signal what runs."""
        ...

    def tick(self) -> float | None:
        """Go on with what waits; return the seconds until the next call, ``None`` for whenever there is news."""
        ...

    def drop(self) -> None:
        """End at once: the host is no longer interested."""
        ...


Starter = Callable[["Loop", int, Any], object]


class Loop:
    """Serves one port. ``starters`` begin the job that a stream is opened for, by the name in its request."""

    def __init__(self, port: int, starters: Mapping[str, Starter]) -> None:
        self.port = port
        self.starters = starters
        self.poll = select.poll()
        self.watched: dict[int, Callable[[int], None]] = {}
        self.jobs: dict[int, Job] = {}
        self.children: dict[int, Callable[[int], None]] = {}
        self.outgoing = bytearray()
        self.decoder = wire.Decoder()
        self.next_stream = wire.GUEST_STREAMS
        self.watch(port, select.POLLIN, self.transfer)

    def watch(self, descriptor: int, events: int, call: Callable[[int], None]) -> None:
        """Have ``call`` told the events of a descriptor."""
        self.watched[descriptor] = call
        self.expect(descriptor, events)

    def expect(self, descriptor: int, events: int) -> None:
        """Wait for these events of a watched descriptor; none leave it alone, hang-ups included."""
        if events:
            self.poll.register(descriptor, events)
        else:
            with contextlib.suppress(KeyError):
                self.poll.unregister(descriptor)

    def forget(self, descriptor: int) -> None:
        """Watch a descriptor no longer."""
        self.expect(descriptor, 0)
        self.watched.pop(descriptor, None)

    def send(self, kind: int, stream: int, payload: bytes = b"") -> None:
        """Put a frame into the queue to the host."""
        self.outgoing += wire.encode(kind, stream, payload)
        self.flush()

    def done(self, stream: int, answer: Any) -> None:
        """Give the last word on a stream."""
        self.jobs.pop(stream, None)
        self.send(wire.DONE, stream, json.dumps(answer).encode())

    def open(self, job: Job, request: Any) -> int:
        """Open a stream to the host and return its number."""
        self.next_stream += 1
        self.jobs[self.next_stream] = job
        self.send(wire.OPEN, self.next_stream, json.dumps(request).encode())
        return self.next_stream

    def flush(self) -> None:
        """Write what fits into the port."""
        while self.outgoing:
            try:
                count = os.write(self.port, self.outgoing)
            except BlockingIOError:
                break
            except OSError:
                time.sleep(PAUSE_SECONDS)
                break
            del self.outgoing[:count]
        self.expect(self.port, select.POLLIN | (select.POLLOUT if self.outgoing else 0))

    def transfer(self, events: int) -> None:
        """Read from and write to the port."""
        if self.outgoing:
            self.flush()
        if not events & select.POLLIN:
            if events & select.POLLHUP:
                time.sleep(PAUSE_SECONDS)
            return
        data = bytearray()
        while len(data) < READ_BYTES:
            try:
                part = os.read(self.port, READ_BYTES)
            except BlockingIOError:
                break
            if not part:
                time.sleep(PAUSE_SECONDS)
                break
            data += part
        for frame in self.decoder.feed(bytes(data)):
            self.receive(frame)

    def receive(self, frame: wire.Frame) -> None:
        """Do what a frame asks for."""
        kind, stream, payload = frame
        job = self.jobs.get(stream)
        if kind == wire.PING:
            self.send(wire.PONG, 0)
        elif kind == wire.OPEN:
            self.begin(stream, json.loads(payload))
        elif kind not in (wire.DATA, wire.END, wire.CREDIT, wire.SIGNAL, wire.DONE):
            raise ValueError(f"no frame is of kind {kind}")
        elif job is None:
            return
        elif kind == wire.DATA:
            job.data(payload)
        elif kind == wire.END:
            job.end()
        elif kind == wire.CREDIT:
            job.credit(int.from_bytes(payload, "big"))
        elif kind == wire.SIGNAL:
            job.signal(payload[0])
        else:
            self.jobs.pop(stream)
            job.drop()

    def begin(self, stream: int, request: Any) -> None:
        """Start the job that a stream was opened for."""
        self.starters[request["do"]](self, stream, request)

    def reap(self, _events: int = 0) -> None:
        """Collect every child that has ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            ended = self.children.pop(pid, None)
            if ended:
                ended(status)

    def serve(self) -> NoReturn:
        """Work for ever."""
        self.send(wire.HELLO, 0)
        while True:
            waits = [seconds for job in list(self.jobs.values()) if (seconds := job.tick()) is not None]
            for descriptor, events in self.poll.poll(min([IDLE_MILLISECONDS, *(seconds * 1000 for seconds in waits)])):
                call = self.watched.get(descriptor)
                if call:
                    call(events)
