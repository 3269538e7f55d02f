"""Connections to hosts of an allow-list: names are resolved here, and what was checked is what is connected to."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from evalwright_plugins.network._connections import BUFFER_BYTES
from evalwright_plugins.network._hosts import AllowList, entry_for, literal_address

__all__ = ["Dialer", "Refused", "Resolver", "Unreachable", "resolve"]

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Resolver = Callable[[str, int], Sequence[str]]

RESOLVERS = 4


class Refused(Exception):
    """The trial may not reach that. ``entry`` is what the allow-list would need."""

    def __init__(self, message: str, entry: str) -> None:
        super().__init__(message)
        self.entry = entry


class Unreachable(Exception):
    """The trial may reach it, but nobody answers."""


def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host, as the system knows them. Raises ``OSError``."""
    return [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


class Dialer:
    """Connects to listed hosts, each attempt within ``seconds``. Lives in one event loop's thread."""

    def __init__(self, allow: AllowList, *, resolver: Resolver, seconds: float, tls: ssl.SSLContext | None) -> None:
        self._allow = allow
        self._resolver = resolver
        self._seconds = seconds
        self._tls = tls
        self._threads = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="evalwright-resolve")

    def close(self) -> None:
        """Forget what waits to be resolved."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def check(self, host: str, port: int) -> None:
        """Raise ``Refused`` for a host that is not listed."""
        if not self._allow.admits(host, port):
            raise Refused(f"{host}:{port} is not in the allow-list", entry_for(host, port))

    async def dial(self, host: str, port: int, *, tls: bool = False) -> Streams:
        """Connect to a listed host. Raises ``Refused`` or ``Unreachable``."""
        self.check(host, port)
        context = self._context() if tls else None
        failure = "no address"
        for address in await self._addresses(host, port):
            try:
                async with asyncio.timeout(self._seconds):
                    return await asyncio.open_connection(
                        address, port, ssl=context, server_hostname=host if tls else None, limit=BUFFER_BYTES
                    )
            except TimeoutError:
                failure = f"no answer within {self._seconds:g} s"
            except OSError as error:
                failure = error.strerror or str(error)
        raise Unreachable(f"cannot connect to {host}:{port}: {failure}")

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses that a listed host may stand for."""
        if literal_address(host) is not None:
            return [host]
        try:
            async with asyncio.timeout(self._seconds):
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._threads, self._resolver, host, port)
        except (OSError, UnicodeError) as error:
            raise Unreachable(f"cannot resolve {host}: {error or 'no answer in time'}") from error
        good = [text for text in found if self._allow.admits_address(ipaddress.ip_address(text.partition("%")[0]), port)]
        if found and not good:
            why = f"{host}:{port} resolves to {found[0]}, which is not public and not in the allow-list itself"
            raise Refused(why, entry_for(found[0], port))
        return good

    def _context(self) -> ssl.SSLContext:
        """Return a context that verifies certificates; the system's certificates are read on first use."""
        self._tls = self._tls or ssl.create_default_context()
        return self._tls
