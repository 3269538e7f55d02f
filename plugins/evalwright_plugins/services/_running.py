"""A service of one trial: an application behind HTTP on a free port of loopback, with a record of every call."""

from __future__ import annotations

import asyncio
import copy
import secrets
import socket
import threading
from base64 import b64decode
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Protocol

from evalwright.interfaces import Deadline
from evalwright_plugins.network.http import ConnectionServer, Malformed, Request, body, read_request
from evalwright_plugins.services._journal import Journal
from evalwright_plugins.services._messages import Answer, Call, Refusal, call_of

__all__ = ["Application", "HttpRunning"]

CONNECTIONS = 256
BACKLOG = 128
HEAD_BYTES = 1 << 14
BODY_BYTES = 1 << 20
IDLE_SECONDS = 30.0
CLOSE_SECONDS = 5.0
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Application(Protocol):
    """What answers calls. It is asked for one thing at a time."""

    def answer(self, call: Call) -> Answer:
        """Answer a call, or raise ``Refusal``."""
        ...

    def denied(self, call: Call) -> Answer:
        """Answer a call without the trial's token."""
        ...

    def state(self) -> dict[str, Any]:
        """Return the present state as JSON."""
        ...


class HttpRunning:
    """A running service: see :class:`evalwright.interfaces.RunningService`. It listens once this returns.

    ``env`` maps variables to texts with ``{url}`` and ``{token}``. With ``guarded`` only calls with the token, as bearer, token
    or password, get further, so that trials that run at once cannot reach one another's service. Raises ``OSError`` when there
    is no port.
    """

    def __init__(self, application: Application, env: Mapping[str, str], *, guarded: bool) -> None:
        self._application = application
        self._journal = Journal()
        self._lock = threading.Lock()
        self._token = secrets.token_hex(20)
        self._guarded = guarded
        listener = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        self.port: int = listener.getsockname()[1]
        words = {"{url}": f"http://127.0.0.1:{self.port}", "{token}": self._token}
        self.env: Mapping[str, str] = {name: _filled(text, words) for name, text in env.items()}
        self._server = ConnectionServer("evalwright-service", connections=CONNECTIONS, busy=BUSY)
        self._server.serve(listener, self._talk)

    def calls(self) -> list[Mapping[str, Any]]:
        """Return every call so far; a last entry ``{"dropped": n}`` counts those beyond the record's bounds."""
        with self._lock:
            return [dict(call) for call in self._journal.as_list()]

    def state(self) -> Mapping[str, Any]:
        """Return the application's state."""
        with self._lock:
            return copy.deepcopy(self._application.state())

    def close(self) -> None:
        """Stop listening and end every connection."""
        self._server.close(Deadline.after(CLOSE_SECONDS))

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection until it ends, is idle for too long or sends what is no HTTP."""
        try:
            while await self._exchange(reader, writer):
                pass
        except Malformed as error:
            await _send(writer, Answer(error.status, {"message": str(error)}), keep=False)
        except TimeoutError:
            return

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; tell whether the connection can carry another one."""
        async with asyncio.timeout(IDLE_SECONDS):
            request = await read_request(reader, HEAD_BYTES)
            if request is None:
                return False
            content = await _content((reader, writer), request)
        try:
            call = call_of(request.method, request.target, request.fields, content)
        except ValueError as error:
            raise Malformed(f"the target is no URL: {error}") from error
        answer = self._answered(call, request.size + len(content))
        await _send(writer, answer, keep=request.persistent, bodiless=request.method == "HEAD")
        return request.persistent

    def _answered(self, call: Call, size_bytes: int) -> Answer:
        with self._lock:
            return self._journal.take(call, size_bytes, self._answer)

    def _answer(self, call: Call) -> Answer:
        if self._guarded and not _holds(call, self._token):
            return self._application.denied(call)
        try:
            return self._application.answer(call)
        except Refusal as refusal:
            return refusal.answer
        except Exception as error:
            return Answer(500, {"message": f"a defect of this service: {type(error).__name__}: {error}"})


async def _content(streams: Streams, request: Request) -> bytes:
    """Return a request's body. Raises ``Malformed`` for one that is longer than services take."""
    reader, writer = streams
    if isinstance(request.framing, int) and request.framing > BODY_BYTES:
        raise Malformed(f"a body may have {BODY_BYTES} bytes", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    if request.minor == 1 and "100-continue" in request.fields.words("expect"):
        writer.write(CONTINUE)
    content = bytearray()
    async for piece in body(reader, request.framing):
        content += piece
        if len(content) > BODY_BYTES:
            raise Malformed(f"a body may have {BODY_BYTES} bytes", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
    return bytes(content)


async def _send(writer: asyncio.StreamWriter, answer: Answer, *, keep: bool, bodiless: bool = False) -> None:
    kind, content = answer.content()
    lines = [f"HTTP/1.1 {answer.status} {_reason(answer.status)}"]
    headers = {"Content-Type": kind} if kind else {}
    headers |= {**answer.headers, "Connection": "keep-alive" if keep else "close"}
    if answer.status not in (204, 304):
        headers["Content-Length"] = str(len(content))
    lines += [f"{name}: {value}" for name, value in headers.items()]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
    writer.write(head if bodiless or answer.status in (204, 304) else head + content)
    async with asyncio.timeout(IDLE_SECONDS):
        await writer.drain()


def _reason(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"


def _holds(call: Call, token: str) -> bool:
    """Tell whether a call carries the token in its ``Authorization`` header: bearer, token, or password of a user."""
    scheme, _, value = call.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            value = b64decode(value.strip(), validate=True).decode("utf-8", "replace").rpartition(":")[2]
        except ValueError:
            return False
    elif scheme.lower() not in ("bearer", "token"):
        return False
    return secrets.compare_digest(value.strip().encode(), token.encode())


def _filled(text: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
