"""A forward proxy on the host for what one trial may reach: CONNECT, plain HTTP, and requests for one fixed upstream."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from evalwright.errors import SandboxError
from evalwright.interfaces import Deadline
from evalwright_plugins.network._connections import ConnectionServer, splice
from evalwright_plugins.network._dialer import Dialer, Refused, Resolver, Unreachable, resolve
from evalwright_plugins.network._exchange import Broken, exchange
from evalwright_plugins.network._hosts import AllowList, HostRule
from evalwright_plugins.network._http import CHUNKED, Malformed, Request, read_request
from evalwright_plugins.network._record import Decision, Decisions
from evalwright_plugins.network._routes import Route, Upstream, parse_upstream, route_of
from evalwright_plugins.network.config import Injection

__all__ = ["EgressProxy", "ProxyLimits"]

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
REASONS = {
    400: "Bad Request",
    403: "Forbidden",
    405: "Method Not Allowed",
    408: "Request Timeout",
    431: "Request Header Fields Too Large",
    501: "Not Implemented",
    502: "Bad Gateway",
    503: "Service Unavailable",
}
LINGER_SECONDS = 1.0
LINGER_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyLimits:
    """How much one trial may ask of its proxy: open connections, seconds for a request's head and for each attempt to
    connect, and the bytes of a head. A body, a tunnel and the wait for an answer have no limit but the trial's end.
    """

    connections: int = 256
    head_seconds: float = 30.0
    head_bytes: int = 1 << 15
    connect_seconds: float = 20.0


class EgressProxy:
    """Lets one trial reach the hosts of its allow-list and nothing else. Thread-safe; it runs in one thread of its own.

    ``environment`` is where the values to inject come from. ``resolver`` turns a host and a port into addresses. ``tls``
    replaces the system's certificates. Raises ``SandboxError`` when a variable to inject is missing, ``ValueError`` for
    an entry of ``allow`` that is none.
    """

    def __init__(
        self,
        allow: Sequence[str],
        inject: Sequence[Injection] = (),
        *,
        environment: Mapping[str, str] | None = None,
        limits: ProxyLimits | None = None,
        resolver: Resolver = resolve,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits or ProxyLimits()
        self._credentials = [_Credential.of(injection, environment or {}) for injection in inject]
        self._decisions = Decisions()
        self._dialer = Dialer(AllowList(allow), resolver=resolver, seconds=self._limits.connect_seconds, tls=tls)
        busy = _answer(503, f"this trial has {self._limits.connections} connections open, which is the most")
        self._server = ConnectionServer("evalwright-egress", connections=self._limits.connections, busy=busy)

    def serve(self, listener: socket.socket, *, upstream: str | None = None) -> Callable[[], None]:
        """Adopt a listening stream socket, and return what closes it again.

        With ``upstream`` (``https://host[:port]`` or ``http://...``) its connections carry requests for that host alone, as
        a client sends them that takes the proxy for the host; without, the requests of a client that knows of the proxy.
        Raises ``SandboxError`` once closed, and for an upstream that is malformed or not listed.
        """
        return self._server.serve(listener, partial(self._talk, self._upstream(upstream)))

    def handle(self, connection: socket.socket, *, upstream: str | None = None) -> None:
        """Adopt one connected stream socket. Otherwise like :meth:`serve`."""
        self._server.handle(connection, partial(self._talk, self._upstream(upstream)))

    def record(self) -> list[dict[str, str | int | None]]:
        """Return who was asked for so far: ``host port allowed count bytes_up bytes_down reason``, at most 1,000 entries.

        A request that could not be read stands under an empty host and port 0.
        """
        return self._decisions.entries()

    def close(self, deadline: Deadline) -> None:
        """Close every socket and end the thread. Raises ``SandboxError`` when it does not end in time."""
        self._dialer.close()
        self._server.close(deadline)

    def _upstream(self, url: str | None) -> Upstream | None:
        if url is None:
            return None
        try:
            upstream = parse_upstream(url)
            self._dialer.check(upstream.host, upstream.port)
            if not upstream.tls and self._speaks_tls(upstream.host, upstream.port):
                raise ValueError("a credential for it may travel over TLS only")
        except (ValueError, Refused) as error:
            raise SandboxError(
                f"the upstream {url!r} cannot be used: {error}", hint="write 'https://host', and list the host in allow"
            ) from error
        return upstream

    async def _talk(self, upstream: Upstream | None, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        first, persistent = True, True
        try:
            while persistent:
                try:
                    async with asyncio.timeout(self._limits.head_seconds):
                        request = await read_request(reader, self._limits.head_bytes)
                except TimeoutError as error:
                    if not first:
                        return
                    raise Malformed("the request's head did not arrive in time", 408) from error
                if request is None:
                    return
                persistent = await self._answer((reader, writer), request, route_of(request, upstream, self._speaks_tls))
                first = False
        except Malformed as error:
            self._decisions.refuse("", 0, str(error))
            writer.write(_answer(error.status, str(error)))
        except _Failure as failure:
            writer.write(_answer(failure.status, str(failure)))
        except Broken:
            writer.transport.abort()
            return
        await _linger(reader, writer)

    async def _answer(self, near: Streams, request: Request, route: Route) -> bool:
        """Carry one request to its host, and return whether another one may follow on this connection."""
        host, port = route.host, route.port
        try:
            far = await self._dialer.dial(host, port, tls=route.tls)
        except Refused as error:
            self._decisions.refuse(host, port, str(error))
            cure = f'To allow it, add "{error.entry}" to "allow" of the sandbox in the suite.'
            raise _Failure(403, f"{error}.\n{cure}") from error
        except Unreachable as error:
            self._decisions.explain(self._decisions.allow(host, port), str(error))
            raise _Failure(502, str(error)) from error
        decision = self._decisions.allow(host, port)
        try:
            return await self._carry(near, far, request, route, decision)
        except (Malformed, Broken, OSError, EOFError) as error:
            self._decisions.explain(decision, str(error) or type(error).__name__)
            if isinstance(error, Broken):
                raise
            status = error.status if isinstance(error, Malformed) else 502
            raise _Failure(status, f"{host}:{port}: {error or 'the connection broke'}") from error
        finally:
            far[1].transport.abort()

    async def _carry(self, near: Streams, far: Streams, request: Request, route: Route, decision: Decision) -> bool:
        def passed(up: int, down: int) -> None:
            self._decisions.add(decision, up=up, down=down)

        if route.tunnel:
            near[1].write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            try:
                await splice(near, far, passed)
            except OSError as error:
                raise Broken(str(error)) from error
            return False
        head = (route.path, self._header(request, route))
        return await exchange(near, far, request, head, limit=self._limits.head_bytes, passed=passed)

    def _header(self, request: Request, route: Route) -> list[tuple[str, str]]:
        """Return what goes up: the agent's own fields, and over them the credentials of that host."""
        meant = [c for c in self._credentials if c.rule.matches(route.host, route.port) and (route.tls or not c.tls)]
        own = [(credential.header, credential.value) for credential in meant]
        replaced = ["host", *(name for name, _ in own), *(["expect"] if request.minor == 0 else [])]
        lengths = [("Content-Length", value) for value in request.fields.all("content-length")]
        framing = [("Transfer-Encoding", CHUNKED)] if request.framing == CHUNKED else lengths
        return [("Host", route.authority), *request.fields.end_to_end(without=replaced), *framing, *own]

    def _speaks_tls(self, host: str, port: int) -> bool:
        """Tell whether plain requests to a host are carried on over TLS."""
        return any(c.tls and (c.rule.matches(host, port)) for c in self._credentials)


@dataclass(frozen=True, slots=True, repr=False)
class _Credential:
    """A header with its secret value; it has no representation that could end up in a message."""

    rule: HostRule
    header: str
    value: str
    tls: bool

    @staticmethod
    def of(injection: Injection, environment: Mapping[str, str]) -> _Credential:
        try:
            value = injection.value(environment)
        except ValueError as error:
            raise SandboxError(f"cannot inject into requests to {injection.host}: {error}", hint="set it") from error
        return _Credential(injection.rule, injection.header, value, injection.tls)


class _Failure(Exception):
    """What the client is told instead of an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def _answer(status: int, message: str) -> bytes:
    text = f"evalwright: {message}\n".encode()
    head = f"HTTP/1.1 {status} {REASONS.get(status, 'Error')}\r\nContent-Type: text/plain; charset=utf-8\r\n"
    return f"{head}Content-Length: {len(text)}\r\nConnection: close\r\n\r\n".encode() + text


async def _linger(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read on for a moment after the last answer: to close with unread bytes would take the answer back."""
    await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
    left = LINGER_BYTES
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LINGER_SECONDS):
            while left > 0 and (piece := await reader.read(LINGER_BYTES)):
                left -= len(piece)
