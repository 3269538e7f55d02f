"""Where a request goes: its target, checked against its Host, or a listener's one upstream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evalwright_plugins.network._hosts import split_authority
from evalwright_plugins.network._http import Malformed, Request

__all__ = ["Route", "Upstream", "parse_upstream", "route_of"]

HTTP = "http://"
HTTPS = "https://"


@dataclass(frozen=True, slots=True)
class Upstream:
    """The one host behind a listener."""

    host: str
    port: int
    tls: bool


@dataclass(frozen=True, slots=True)
class Route:
    """The host that a request is for and how it is spoken to. ``path`` is what the host is asked for."""

    host: str
    port: int
    tls: bool = False
    path: str = ""
    tunnel: bool = False

    @property
    def authority(self) -> str:
        """Return the value of ``Host``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.tls else 80) else f"{host}:{self.port}"


def parse_upstream(url: str) -> Upstream:
    """Read ``https://host[:port]`` or ``http://host[:port]``. Raises ``ValueError``."""
    scheme = next((scheme for scheme in (HTTP, HTTPS) if url.startswith(scheme)), None)
    if scheme is None:
        raise ValueError("it does not begin with http:// or https://")
    host, port = split_authority(url.removeprefix(scheme).removesuffix("/"))
    tls = scheme == HTTPS
    return Upstream(host, port or (443 if tls else 80), tls)


def route_of(request: Request, upstream: Upstream | None, speaks_tls: Callable[[str, int], bool]) -> Route:
    """Return where a request goes. Raises ``Malformed`` for one that cannot be carried."""
    if request.method == "TRACE":
        raise Malformed("TRACE is refused: it would show what the proxy adds", 405)
    if "websocket" in request.fields.words("upgrade"):
        raise Malformed("a WebSocket needs a tunnel: use wss:// and CONNECT", 501)
    if upstream is not None:
        _check_host(request)
        if not request.target.startswith("/") or request.method == "CONNECT":
            raise Malformed(f"this port speaks for {upstream.host} alone; it is no proxy")
        return Route(upstream.host, upstream.port, upstream.tls, request.target)
    if request.method == "CONNECT":
        return _tunnel(request)
    return _plain(request, speaks_tls)


def _tunnel(request: Request) -> Route:
    host, port = _authority(request.target)
    if port is None:
        raise Malformed("CONNECT needs host:port")
    if request.framing != 0:
        raise Malformed("CONNECT has no body")
    _check_host(request, host, port, default=port)
    return Route(host, port, tunnel=True)


def _plain(request: Request, speaks_tls: Callable[[str, int], bool]) -> Route:
    if not request.target.lower().startswith(HTTP) or "#" in request.target:
        raise Malformed("this is a proxy: it takes CONNECT host:port, or a method and http://host/path")
    rest = request.target[len(HTTP) :]
    end = next((at for at, character in enumerate(rest) if character in "/?"), len(rest))
    host, named = _authority(rest[:end])
    port = named or 80
    _check_host(request, host, port, default=80)
    path = rest[end:] if rest[end:].startswith("/") else f"/{rest[end:]}"
    if port == 80 and speaks_tls(host, 443):
        return Route(host, 443, True, path)
    return Route(host, port, speaks_tls(host, port), path)


def _check_host(request: Request, host: str | None = None, port: int | None = None, *, default: int = 80) -> None:
    """Raise ``Malformed`` unless the request has the one Host that its version needs, and it is the target's."""
    hosts = request.fields.all("host")
    if len(hosts) > 1 or (request.minor == 1 and not hosts):
        raise Malformed("a request has one Host")
    for text in hosts if host else []:
        said, named = _authority(text)
        if (said, named or default) != (host, port):
            raise Malformed("Host is not the target's")


def _authority(text: str) -> tuple[str, int | None]:
    try:
        return split_authority(text)
    except ValueError as error:
        raise Malformed(str(error)) from error
