"""The endpoints of a session: ports of the guest's loopback, each carried over the channel to one address of the host."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from evalwright.errors import SandboxError, SandboxLost
from evalwright_plugins.sandboxes.vm.channel import Stream
from evalwright_plugins.sandboxes.vm.guest import wire

__all__ = ["Tunnels"]

FIRST_PORT = 8080
LAST_PORT = 65535
CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 64
UNIX = "unix:"
Serve = Callable[[socket.socket], None]


class Tunnels:
    """Carries connections of one guest. ``ports`` maps each port in the guest to its address on the host.

    An endpoint ``host:port`` keeps its port; those at ``unix:/path`` get the first free ones from 8080. ``served`` names
    ports whose connections a function of the host adopts. Raises ``SandboxError`` for an endpoint that is neither, or two
    that want the same port.
    """

    def __init__(self, endpoints: Mapping[str, str], served: Mapping[int, Serve] = MappingProxyType({})) -> None:
        self.ports: dict[int, str | Serve] = dict(served)
        self._places = threading.BoundedSemaphore(MAX_CONNECTIONS)
        sockets = [address for address in endpoints.values() if address.startswith(UNIX)]
        for name, address in endpoints.items():
            if not address.startswith(UNIX):
                self._add(name, _port_of(name, address), address)
        for address in sockets:
            port = next(port for port in range(FIRST_PORT, LAST_PORT) if port not in self.ports)
            self.ports[port] = address

    def accept(self, stream: Stream, request: Mapping[str, Any]) -> None:
        """Carry a connection that the guest has opened; one too many, or to no endpoint, is closed."""
        address = self.ports.get(request.get("port", 0))
        if address is None or not self._places.acquire(blocking=False):
            stream.channel.close_stream(stream)
            return
        threading.Thread(target=self._carry, args=(stream, address), name="evalwright-vm-tunnel", daemon=True).start()

    def _add(self, name: str, port: int, address: str) -> None:
        if port in self.ports:
            raise SandboxError(f'endpoint "{name}": port {port} is taken by another endpoint', hint="choose another port")
        self.ports[port] = address

    def _carry(self, stream: Stream, address: str | Serve) -> None:
        try:
            with _connected(address) as connection, contextlib.suppress(SandboxLost):
                upward = threading.Thread(target=_pass_on, args=(stream, connection), daemon=True)
                upward.start()
                _pass_back(stream, connection)
                upward.join()
        except OSError:
            pass  # the guest sees a closed connection
        finally:
            stream.channel.close_stream(stream)
            self._places.release()


def _pass_on(stream: Stream, connection: socket.socket) -> None:
    """Send to the host's address what the guest says, until it has no more to say."""
    with contextlib.suppress(OSError, SandboxLost):
        while True:
            frame = stream.receive()
            if frame is None:
                continue
            if frame.kind != wire.DATA:
                break
            connection.sendall(frame.payload)
            stream.consumed(len(frame.payload))
        connection.shutdown(socket.SHUT_WR)
        if frame.kind == wire.END:
            return
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _pass_back(stream: Stream, connection: socket.socket) -> None:
    """Send to the guest what the host's address says, until it has no more to say or nobody listens."""
    while data := connection.recv(wire.CHUNK):
        while data:
            count = stream.send(data)
            if count == 0:
                return
            data = data[count:]
    stream.say(wire.END)


def _connected(address: str | Serve) -> socket.socket:
    if not isinstance(address, str):
        connection, adopted = socket.socketpair()
        address(adopted)
        return connection
    if address.startswith(UNIX):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.settimeout(CONNECT_SECONDS)
            connection.connect(address.removeprefix(UNIX))
        except BaseException:
            connection.close()
            raise
    else:
        host, _, port = address.rpartition(":")
        connection = socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS)
    connection.settimeout(None)
    return connection


def _port_of(name: str, address: str) -> int:
    host, _, port = address.rpartition(":")
    if not host or not port.isdigit() or not 1 <= int(port) <= LAST_PORT:
        raise SandboxError(f'endpoint "{name}": {address!r} is no address', hint='write "host:port" or "unix:/path"')
    return int(port)
