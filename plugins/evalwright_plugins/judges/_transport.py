"""HTTP whose every read and write ends by one deadline, so that no server can hold a call by sending little by little."""

from __future__ import annotations

import contextlib
import ssl
import time
from collections.abc import Iterable, Iterator
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx

__all__ = ["DeadlineTransport", "proxy_for"]

LOOPBACK = ("localhost", "127.0.0.1", "::1")
KEEP_SECONDS = 30.0
MOST_HELD = 1 << 16


def proxy_for(url: str) -> str | None:
    """Return the proxy that the environment names for a URL; loopback is always reached directly."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in LOOPBACK or host.startswith("127.") or proxy_bypass(host):
        return None
    proxies = getproxies()
    return proxies.get(parts.scheme) or proxies.get("all")


class DeadlineTransport(httpx.BaseTransport):
    """One connection to one server, for one call at a time. Set :attr:`at`, a monotonic moment, before each call."""

    def __init__(self, context: ssl.SSLContext | None, proxy: str | None) -> None:
        self.at = float("inf")
        backend = _Backend(self)
        if proxy is None:
            self._pool = httpcore.ConnectionPool(
                context, max_connections=1, keepalive_expiry=KEEP_SECONDS, network_backend=backend
            )
        else:
            self._pool = httpcore.HTTPProxy(
                proxy, ssl_context=context, max_connections=1, keepalive_expiry=KEEP_SECONDS, network_backend=backend
            )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request. Raises ``httpx.TransportError``; a passed deadline is an ``httpx.TimeoutException``."""
        url = request.url
        try:
            response = self._pool.handle_request(
                httpcore.Request(
                    request.method,
                    httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError) as error:
            raise _translated(error) from error
        stream: Iterable[bytes] = response.stream  # type: ignore[assignment]  # it is the sync kind
        return httpx.Response(response.status, headers=response.headers, stream=_Stream(stream))

    def close(self) -> None:
        """Close the connection."""
        self._pool.close()


class _Stream(httpx.SyncByteStream):
    def __init__(self, inner: Iterable[bytes]) -> None:
        self._inner = inner

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._inner
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise _translated(error) from error

    def close(self) -> None:
        close = getattr(self._inner, "close", None)
        if close:
            close()


class _Backend(httpcore.SyncBackend):
    def __init__(self, owner: DeadlineTransport) -> None:
        self._owner = owner

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect by the deadline."""
        left = _left(self._owner, timeout, httpcore.ConnectTimeout)
        return _BoundStream(super().connect_tcp(host, port, left, local_address, socket_options), self._owner)


class _BoundStream(httpcore.NetworkStream):
    """A connection that sends the head and the body of a small request at once, when its answer is wanted."""

    def __init__(self, inner: httpcore.NetworkStream, owner: DeadlineTransport) -> None:
        self._inner = inner
        self._owner = owner
        self._held = b""

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Read by the deadline. A server that hung up before it had everything may have answered all the same."""
        with contextlib.suppress(httpcore.WriteError):
            self._send(timeout)
        return self._inner.read(max_bytes, _left(self._owner, timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write by the deadline, or with what follows."""
        self._held += buffer
        if len(self._held) >= MOST_HELD:
            self._send(timeout)

    def _send(self, timeout: float | None) -> None:
        held, self._held = self._held, b""
        if held:
            self._inner.write(held, _left(self._owner, timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        """Close."""
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Go on with TLS."""
        left = _left(self._owner, timeout, httpcore.ConnectTimeout)
        return _BoundStream(self._inner.start_tls(ssl_context, server_hostname, left), self._owner)

    def get_extra_info(self, info: str) -> object:
        """Return what is known of the connection."""
        return self._inner.get_extra_info(info)


def _left(owner: DeadlineTransport, timeout: float | None, error: type[httpcore.TimeoutException]) -> float:
    left = owner.at - time.monotonic()
    if left <= 0:
        raise error("the deadline has passed")
    return left if timeout is None else min(timeout, left)


def _translated(error: Exception) -> httpx.TransportError:
    """Return httpx's error of the same name."""
    known = getattr(httpx, type(error).__name__, httpx.NetworkError)
    return known(str(error))
