"""An HTTP server on loopback that does what a script says, byte by byte."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

Act = Callable[["Exchange"], None]
"""What the server does with one request; it writes to the exchange's socket. Raising ``EOFError`` closes the connection."""


@dataclass
class Exchange:
    """One request that arrived, and the way back."""

    number: int
    line: str
    headers: Mapping[str, str]
    body: bytes
    socket: socket.socket
    stopped: threading.Event

    @property
    def document(self) -> Any:
        return json.loads(self.body)


@dataclass
class JudgeServer:
    """Serves until the end of the ``with`` block; the last act of the script answers every further request."""

    script: Sequence[Act]
    requests: list[Exchange] = field(default_factory=list[Exchange])

    def __enter__(self) -> JudgeServer:
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = int(self._listener.getsockname()[1])
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stopped.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        with self._lock:
            sockets = list(self._sockets)
        for one in sockets:
            _shut(one)
        for thread in list(self._threads):
            thread.join()
        self._listener.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._sockets.append(connection)
            thread = threading.Thread(target=self._serve, args=(connection,))
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as reader:
            try:
                while exchange := self._read(connection, reader):
                    self.script[min(exchange.number, len(self.script) - 1)](exchange)
            except (OSError, EOFError):
                _shut(connection)

    def _read(self, connection: socket.socket, reader: Any) -> Exchange | None:
        line = reader.readline().decode("latin-1").strip()
        if not line:
            return None
        headers: dict[str, str] = {}
        while text := reader.readline().decode("latin-1").strip():
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        body = reader.read(int(headers.get("content-length", "0")))
        with self._lock:
            exchange = Exchange(len(self.requests), line, headers, body, connection, self._stopped)
            self.requests.append(exchange)
        return exchange


def reply(
    body: bytes | Mapping[str, Any],
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    kind: str | None = "application/json",
) -> Act:
    """Answer with a whole response."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(data)}", *([f"content-type: {kind}"] if kind else [])]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return raw("\r\n".join([*lines, "", ""]).encode() + data, close=False)


def raw(data: bytes, *, close: bool = True) -> Act:
    """Send bytes as they are."""

    def act(exchange: Exchange) -> None:
        exchange.socket.sendall(data)
        if close:
            raise EOFError

    return act


def drip(start: bytes, each: bytes) -> Act:
    """Send a beginning, then a little at a time, for ever."""

    def act(exchange: Exchange) -> None:
        exchange.socket.sendall(start)
        while not exchange.stopped.wait(0.02):
            exchange.socket.sendall(each)

    return act


def silence(start: bytes = b"") -> Act:
    """Send a beginning, then nothing."""

    def act(exchange: Exchange) -> None:
        exchange.socket.sendall(start)
        exchange.stopped.wait()

    return act


def completion(text: Any, finish: Any = "stop", **fields: Any) -> dict[str, Any]:
    """Return the document of a chat completion."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": finish}
    return {"model": "m1", "choices": [choice], **fields}


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
