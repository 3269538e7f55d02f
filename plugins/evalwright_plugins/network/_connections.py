"""Connections served by one thread with one event loop, from listeners and sockets that somebody else made."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from evalwright.errors import SandboxError
from evalwright.interfaces import Deadline

__all__ = ["BUFFER_BYTES", "ConnectionServer", "Talk", "splice"]

Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

BUFFER_BYTES = 1 << 16
CLOSE_SECONDS = 5.0
FULL_SECONDS = 0.1


class ConnectionServer:
    """Adopts sockets and talks on them until :meth:`close`. Thread-safe; its thread starts with the first socket.

    At most ``connections`` are open at once: a further one gets the bytes ``busy`` and is closed.
    """

    def __init__(self, name: str, *, connections: int, busy: bytes = b"") -> None:
        self._name = name
        self._most = connections
        self._busy = busy
        self._active = 0
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._listeners: set[socket.socket] = set()
        self._talks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._stop: asyncio.Event | None = None
        self._failure = ""
        self._closed = False

    def serve(self, listener: socket.socket, talk: Talk) -> Callable[[], None]:
        """Adopt a listening stream socket and return what stops listening on it. Raises ``SandboxError`` once closed."""
        self._adopt(listener, self._listen, talk)
        return partial(self._call, self._ignore, listener)

    def handle(self, connection: socket.socket, talk: Talk) -> None:
        """Adopt one connected stream socket. Raises ``SandboxError`` once closed."""
        self._adopt(connection, self._greet, talk)

    def close(self, deadline: Deadline) -> None:
        """Close every socket and end the thread. Raises ``SandboxError`` when it does not end in time."""
        with self._lock:
            self._closed = True
            if self._stop:
                self._call(self._stop.set)
            thread = self._thread
        if thread:
            thread.join(deadline.remaining)
            if thread.is_alive():
                raise SandboxError(f"the thread {self._name!r} did not end in time", hint="see what keeps this machine busy")

    def _adopt(self, adopted: socket.socket, then: Callable[[socket.socket, Talk], None], talk: Talk) -> None:
        with self._lock:
            if self._closed:
                adopted.close()
                raise SandboxError(f"{self._name!r} is closed already")
            adopted.setblocking(False)
            self._sockets.add(adopted)
            if self._thread is None:
                self._start()
            self._call(then, adopted, talk)

    def _start(self) -> None:
        """Start the thread and wait for its loop, which needs some descriptors."""
        started = threading.Event()
        thread = threading.Thread(target=self._run, args=(started,), name=self._name, daemon=True)
        thread.start()
        started.wait()
        if self._loop is None:
            raise SandboxError(f"{self._name!r} cannot start: {self._failure}", hint="raise the limit of open files")
        self._thread = thread

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        """Let the thread call a function, unless it has ended."""
        if self._loop:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(function, *arguments)

    def _run(self, started: threading.Event) -> None:
        async def until_stopped() -> None:
            self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
            started.set()
            await self._stop.wait()
            for listener in self._listeners:
                self._loop.remove_reader(listener)

        running = until_stopped()
        try:
            asyncio.run(running)
        except OSError as error:
            self._failure = str(error)
            running.close()
        finally:
            while self._sockets:
                self._sockets.pop().close()
            started.set()

    def _listen(self, listener: socket.socket, talk: Talk) -> None:
        self._listeners.add(listener)
        asyncio.get_running_loop().add_reader(listener, self._welcome, listener, talk)

    def _ignore(self, listener: socket.socket) -> None:
        if listener in self._sockets:
            asyncio.get_running_loop().remove_reader(listener)
            self._listeners.discard(listener)
            self._release(listener)

    def _welcome(self, listener: socket.socket, talk: Talk) -> None:
        """Accept one connection; when this process has no descriptor left, look again later."""
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, ConnectionError):
            return
        except OSError:
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener)
            self._listeners.discard(listener)
            loop.call_later(FULL_SECONDS, self._listen_again, listener, talk)
            return
        connection.setblocking(False)
        self._sockets.add(connection)
        self._greet(connection, talk)

    def _listen_again(self, listener: socket.socket, talk: Talk) -> None:
        if listener in self._sockets:
            self._listen(listener, talk)

    def _greet(self, connection: socket.socket, talk: Talk) -> None:
        task = asyncio.get_running_loop().create_task(self._converse(connection, talk))
        self._talks.add(task)
        task.add_done_callback(self._talks.discard)

    async def _converse(self, connection: socket.socket, talk: Talk) -> None:
        """Talk on one connection; a peer that goes away ends it, and so does the end of the loop."""
        try:
            if self._active >= self._most:
                with contextlib.suppress(OSError):
                    connection.send(self._busy)
                return
            self._active += 1
            try:
                await _converse(connection, talk)
            finally:
                self._active -= 1
        finally:
            self._release(connection)

    def _release(self, adopted: socket.socket) -> None:
        adopted.close()
        self._sockets.discard(adopted)


async def _converse(connection: socket.socket, talk: Talk) -> None:
    reader, writer = await asyncio.open_connection(sock=connection, limit=BUFFER_BYTES)
    try:
        with contextlib.suppress(OSError, EOFError):
            await talk(reader, writer)
        await _part(writer)
    finally:
        writer.transport.abort()


async def _part(writer: asyncio.StreamWriter) -> None:
    """Close once what was written is sent, if the peer takes it within a time."""
    writer.close()
    with contextlib.suppress(OSError):
        async with asyncio.timeout(CLOSE_SECONDS):
            await writer.wait_closed()


async def splice(
    near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    passed: Callable[[int, int], None] = lambda _up, _down: None,
) -> None:
    """Carry bytes both ways until both sides have ended, and close ``far``. ``passed`` is told how many went up and down."""
    up = asyncio.create_task(_pump(near[0], far[1], lambda size: passed(size, 0)))
    down = asyncio.create_task(_pump(far[0], near[1], lambda size: passed(0, size)))
    try:
        await asyncio.gather(up, down)
        await _part(far[1])
    finally:
        up.cancel()
        down.cancel()
        far[1].transport.abort()
        await asyncio.gather(up, down, return_exceptions=True)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, passed: Callable[[int], None]) -> None:
    while piece := await reader.read(BUFFER_BYTES):
        writer.write(piece)
        passed(len(piece))
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
