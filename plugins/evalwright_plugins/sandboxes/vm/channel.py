"""The host's end of the channel to a guest: streams over one socket, bounded in both directions, and a watch over silence."""

from __future__ import annotations

import contextlib
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, cast

from evalwright.errors import SandboxLost
from evalwright.interfaces import Deadline
from evalwright_plugins.sandboxes.vm.guest import wire

__all__ = ["Channel", "Stream"]

Record = dict[str, Any]
TICK_SECONDS = 1.0
PINGS = 4
"""How often a silent guest is asked for a word before it is given up."""
READ_BYTES = 1 << 18
WAKE = wire.Frame(0, 0, b"")


class Stream:
    """One request to the guest, or one connection that the guest has opened.

    :meth:`receive` belongs to one thread and :meth:`send` to one; everything else may be called from any. All raise
    ``SandboxLost`` once the guest is gone.
    """

    def __init__(self, channel: Channel, number: int) -> None:
        self.channel = channel
        self.number = number
        self._incoming: queue.SimpleQueue[wire.Frame | None] = queue.SimpleQueue()
        self._unread = self._owed = 0
        self._window = wire.WINDOW
        self._changed = threading.Condition()
        self._over = self._guest_ended = False

    def receive(self, timeout: float | None = None) -> wire.Frame | None:
        """Return the next ``DATA``, ``ERROR``, ``END`` or ``DONE``; ``None`` after ``timeout`` seconds or a :meth:`wake`."""
        try:
            frame = self._incoming.get(timeout=timeout)
        except queue.Empty:
            return None
        if frame is None:
            self._incoming.put(None)
            raise self.channel.lost
        return None if frame is WAKE else frame

    def consumed(self, count: int) -> None:
        """Let the guest send so many more bytes; told it in portions, since a word costs it more than a byte."""
        with self._changed:
            self._unread -= count
            self._owed += count
            owed = self._owed if self._owed >= wire.PORTION else 0
            self._owed -= owed
        if owed:
            self.channel.send(wire.CREDIT, self.number, owed.to_bytes(4, "big"))

    def send(self, data: bytes, *, wait: bool = True) -> int:
        """Send what the guest's window takes and return how much that was.

        With ``wait`` it blocks until that is something, or until the stream is over.
        """
        with self._changed:
            while wait and self._window <= 0 and not self._over:
                self._changed.wait()
            count = 0 if self._over else min(len(data), max(0, self._window), wire.CHUNK)
            self._window -= count
        if count:
            self.channel.send(wire.DATA, self.number, data[:count])
        return count

    def say(self, kind: int, payload: bytes = b"") -> None:
        """Send a frame that needs no window."""
        self.channel.send(kind, self.number, payload)

    def wake(self) -> None:
        """Make :meth:`receive` return at once."""
        self._incoming.put(WAKE)

    def answer(self, deadline: Deadline) -> Record:
        """Return the guest's last word, dropping everything before it. ``TimeoutError`` when it does not come."""
        while True:
            frame = self.receive(deadline.remaining)
            if frame is None:
                if deadline.expired:
                    raise TimeoutError("the guest did not answer in time")
            elif frame.kind == wire.DONE:
                return record_of(frame.payload)
            else:
                self.consumed(len(frame.payload))

    def take(self, frame: wire.Frame) -> None:
        """Take a frame from the channel's reader. ``ValueError`` for one that no honest guest sends.

        What a guest can make this side hold is bounded by that: its window, and no frame that costs it nothing.
        """
        with self._changed:
            if frame.kind == wire.CREDIT:
                self._give(int.from_bytes(frame.payload, "big"))
                frame = WAKE
            elif frame.kind == wire.END:
                if self._guest_ended:
                    raise ValueError("a second end")
                self._guest_ended = True
            elif frame.kind in (wire.DATA, wire.ERROR):
                self._unread += len(frame.payload)
                if not frame.payload or self._unread + self._owed > wire.WINDOW:
                    raise ValueError("no bytes, or more than the window allows")
        self._incoming.put(frame)
        if frame.kind == wire.DONE:
            self.end()

    def _give(self, count: int) -> None:
        if not 0 < count <= wire.WINDOW - self._window:
            raise ValueError("credit for what was never sent")
        self._window += count
        self._changed.notify_all()

    def end(self, *, lost: bool = False) -> None:
        """Release whoever waits to send, and with ``lost`` whoever waits to receive."""
        with self._changed:
            self._over = True
            self._changed.notify_all()
        if lost:
            self._incoming.put(None)


class Channel:
    """Speaks with one guest until either is gone. Thread-safe.

    ``accept`` is told of every stream that the guest opens. When nothing is heard for ``silence`` seconds although the guest
    was asked, or when it breaks the rules, it is lost: ``on_lost`` is told why, once, and shall end the machine.
    """

    def __init__(
        self,
        connection: socket.socket,
        *,
        silence: float,
        accept: Callable[[Stream, Mapping[str, Any]], None],
        on_lost: Callable[[str], None],
    ) -> None:
        self.lost = SandboxLost("the virtual machine was ended")
        self._socket = connection
        self._silence = silence
        self._accept = accept
        self._on_lost = on_lost
        self._sending = threading.Lock()
        self._state = threading.Lock()
        self._streams: dict[int, Stream] = {}
        self._last_number = 0
        self._heard = time.monotonic()
        self._ready = threading.Event()
        self._gone = False
        connection.settimeout(TICK_SECONDS)
        threading.Thread(target=self._read, name="evalwright-vm-channel", daemon=True).start()

    def ready(self, deadline: Deadline) -> bool:
        """Wait until the guest's agent has said a word; tell whether it has."""
        while not self._ready.wait(min(0.05, deadline.remaining)):
            if self._gone or deadline.expired:
                return False
            self.send(wire.PING, 0)
        return not self._gone

    def open(self, request: Mapping[str, Any]) -> Stream:
        """Open a stream with a request. Raises ``SandboxLost``."""
        with self._state:
            if self._gone:
                raise self.lost
            self._last_number += 1
            stream = self._streams[self._last_number] = Stream(self, self._last_number)
        self.send(wire.OPEN, stream.number, json.dumps(request).encode())
        return stream

    def call(self, request: Mapping[str, Any], deadline: Deadline) -> Record:
        """Ask the guest for something short and return its answer. Raises ``SandboxLost`` or ``TimeoutError``."""
        return self.open(request).answer(deadline)

    def close_stream(self, stream: Stream) -> None:
        """End a stream from this side."""
        with self._state:
            known = self._streams.pop(stream.number, None)
        stream.end()
        if known and not self._gone:
            with contextlib.suppress(SandboxLost):
                self.send(wire.DONE, stream.number)

    def send(self, kind: int, number: int, payload: bytes = b"") -> None:
        """Send one frame. A guest that does not take it for too long is lost. Raises ``SandboxLost``."""
        data = memoryview(wire.encode(kind, number, payload))
        give_up = time.monotonic() + self._silence
        with self._sending:
            while data:
                if self._gone:
                    raise self.lost
                try:
                    data = data[self._socket.send(data) :]
                except TimeoutError:
                    if time.monotonic() > give_up:
                        self.fail(f"the guest took nothing for {self._silence:g} s")
                except OSError as error:
                    self.fail(f"the guest's channel is closed: {error}")

    def fail(self, why: str) -> None:
        """Give the guest up: everybody who waits for it gets ``SandboxLost``."""
        with self._state:
            if self._gone:
                return
            self._gone = True
            streams = list(self._streams.values())
            self._streams.clear()
        self._on_lost(why)
        for stream in streams:
            stream.end(lost=True)

    def close(self) -> None:
        """Close the socket."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _read(self) -> None:
        decoder = wire.Decoder()
        pinged = 0.0
        try:
            while not self._gone:
                try:
                    data = self._socket.recv(READ_BYTES)
                except TimeoutError:
                    pinged = self._watch(pinged)
                    continue
                if not data:
                    self.fail("the virtual machine has ended")
                    return
                self._heard = time.monotonic()
                for frame in decoder.feed(data):
                    self._take(frame)
        except OSError as error:
            self.fail(f"the guest's channel is closed: {error}")
        except (ValueError, KeyError, TypeError) as error:
            self.fail(f"the guest broke the rules of its channel: {error}")

    def _watch(self, pinged: float) -> float:
        """Ask a silent guest for a word, and give it up when none comes; return when it was asked last."""
        now = time.monotonic()
        if not self._ready.is_set() or now - self._heard < self._silence / PINGS:
            return pinged
        if pinged > self._heard and now - self._heard > self._silence:
            self.fail(f"the guest has not answered for {now - self._heard:.0f} s")
        elif now - pinged > self._silence / PINGS:
            with contextlib.suppress(SandboxLost):
                self.send(wire.PING, 0)
            return now
        return pinged

    def _take(self, frame: wire.Frame) -> None:
        self._ready.set()
        if frame.kind in (wire.HELLO, wire.PONG):
            return
        with self._state:
            stream = self._streams.get(frame.stream)
            if frame.kind == wire.DONE:
                self._streams.pop(frame.stream, None)
            opened = frame.kind == wire.OPEN and frame.stream > wire.GUEST_STREAMS and stream is None
            if opened:
                stream = self._streams[frame.stream] = Stream(self, frame.stream)
        if opened and stream:
            self._accept(stream, record_of(frame.payload))
        elif frame.kind not in (wire.DATA, wire.ERROR, wire.END, wire.CREDIT, wire.DONE):
            raise ValueError(f"no frame is of kind {frame.kind}")
        elif stream:
            stream.take(frame)


def record_of(payload: bytes) -> Record:
    """Return a JSON object. ``ValueError`` for anything else."""
    found: Any = json.loads(payload)
    if not isinstance(found, dict):
        raise ValueError("the guest sent no object")
    return cast("Record", found)
