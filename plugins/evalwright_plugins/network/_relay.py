"""Plain bytes between a socket and an endpoint of the host."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from evalwright_plugins.network._connections import Talk, splice
from evalwright_plugins.network._hosts import split_authority

__all__ = ["relay_to"]

CONNECT_SECONDS = 20.0
UNIX = "unix:"

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def relay_to(endpoint: str) -> Talk:
    """Return what relays a connection to ``host:port`` or ``unix:/path``. Raises ``ValueError`` for anything else."""
    dial = _dialer(endpoint)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async with asyncio.timeout(CONNECT_SECONDS):
            far = await dial()
        await splice((reader, writer), far)

    return talk


def _dialer(endpoint: str) -> Callable[[], Awaitable[Streams]]:
    if endpoint.startswith(UNIX):
        path = endpoint.removeprefix(UNIX)
        if not path.startswith("/") or "\0" in path:
            raise ValueError(f"{endpoint!r}: a socket's path is absolute, as in 'unix:/run/service'")
        return lambda: asyncio.open_unix_connection(path)
    host, port = split_authority(endpoint)
    if port is None:
        raise ValueError(f"{endpoint!r} names no port: write 'host:port' or 'unix:/path'")
    return lambda: asyncio.open_connection(host, port)
