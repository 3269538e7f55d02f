"""Loopback of a sandbox's own network, served from the host: each port leads to a proxy or to an endpoint of the host."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from evalwright.errors import SandboxError
from evalwright.interfaces import Deadline
from evalwright_plugins.network._connections import ConnectionServer
from evalwright_plugins.network._relay import relay_to

__all__ = ["Loopback", "Serve"]

Serve = Callable[[socket.socket], Callable[[], None]]
Stop = Callable[[], None]

ENTER = Path(__file__).with_name("_enter.py")
SOCKET = "control"
READY = b"+"
BACKLOG = 16
MOST_PORTS = 64
CONNECTIONS = 256
CREDENTIALS = struct.Struct("3i")


class Loopback:
    """The host's side of commands that run in a network of their own. Thread-safe; :meth:`close` ends everything.

    ``directory`` becomes private to ``uid`` (default: this process's user), who runs the commands; nothing else may lie in
    it. ``ports`` says what each port of 127.0.0.1 inside leads to: ``host:port`` or ``unix:/path`` for plain bytes to an
    endpoint of the host, or a function that adopts a listener, such as :meth:`EgressProxy.serve`. Every command that starts
    with :meth:`prefix` gets a new network with these ports, which are closed when it ends. ``seconds`` is the time for
    handing them over. Raises ``SandboxError`` when the socket cannot be made, ``ValueError`` for a port or an endpoint that
    is none.
    """

    def __init__(
        self, directory: Path, ports: Mapping[int, Serve | str], *, uid: int | None = None, seconds: float = 10.0
    ) -> None:
        if not 0 < len(ports) <= MOST_PORTS or not all(0 < port < 65536 for port in ports):
            raise ValueError(f"a loopback has 1 to {MOST_PORTS} ports between 1 and 65535, not {sorted(ports)}")
        self._relays = ConnectionServer("evalwright-relay", connections=CONNECTIONS)
        self._serves = {port: self._serve(target) for port, target in ports.items()}
        self._uid = os.geteuid() if uid is None else uid
        self._seconds = seconds
        self._directory = directory
        self._control = _control_socket(directory, self._uid)
        self._wake, self._waker = socket.socketpair()
        self._thread = threading.Thread(target=self._run, name="evalwright-loopback", daemon=True)
        self._thread.start()

    def prefix(self) -> list[str]:
        """Return the words before a command that give it its network and make it ``uid``'s.

        A command that cannot get it ends with exit status 125 and a line on stderr.
        """
        control = str(self._directory / SOCKET)
        return [sys.executable, "-I", "-S", str(ENTER), control, str(self._uid), ",".join(map(str, self._serves)), "--"]

    def close(self, deadline: Deadline) -> None:
        """Close every port and connection and remove what was made in the directory; the proxies stay, as they are not ours.

        Raises ``SandboxError`` when a thread does not end in time.
        """
        with contextlib.suppress(OSError):
            self._waker.send(b"x")
        self._thread.join(deadline.remaining)
        if self._thread.is_alive():
            raise SandboxError("the thread 'evalwright-loopback' did not end in time")
        self._waker.close()
        self._relays.close(deadline)
        (self._directory / SOCKET).unlink(missing_ok=True)

    def _serve(self, target: Serve | str) -> Serve:
        return partial(self._relays.serve, talk=relay_to(target)) if isinstance(target, str) else target

    def _run(self) -> None:
        """Take ports over, and close those of commands that have ended."""
        running: dict[int, list[Stop]] = {}
        with selectors.DefaultSelector() as selector, self._control, self._wake:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(self._wake, selectors.EVENT_READ)
            while True:
                ready = {key.fd for key, _ in selector.select()}
                if self._wake.fileno() in ready:
                    break
                if self._control.fileno() in ready and (taken := self._take_over()):
                    running[taken[0]] = taken[1]
                    selector.register(taken[0], selectors.EVENT_READ)
                for ended in ready & running.keys():
                    selector.unregister(ended)
                    _end(ended, running.pop(ended))
        for command, stops in running.items():
            _end(command, stops)

    def _take_over(self) -> tuple[int, list[Stop]] | None:
        """Serve the ports that one command offers; return a descriptor of its process and what closes the ports."""
        stops: list[Stop] = []
        command = -1
        with contextlib.suppress(OSError, SandboxError), self._control.accept()[0] as peer:
            peer.settimeout(self._seconds)
            pid, uid, _ = CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size))
            if uid != self._uid:
                return None
            command = os.pidfd_open(pid)
            with contextlib.ExitStack() as offered:
                listeners = [offered.enter_context(listener) for listener in _received(peer, list(self._serves))]
                stops += [serve(listener) for serve, listener in zip(self._serves.values(), listeners, strict=False)]
                offered.pop_all()
            if stops:
                peer.send(READY)
                return command, stops
        _end(command, stops)
        return None


def _control_socket(directory: Path, uid: int) -> socket.socket:
    """Return a listening socket in a directory that only ``uid`` can enter."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            control.bind(f"/proc/self/fd/{place}/{SOCKET}")
            os.chmod(SOCKET, 0o600, dir_fd=place)
            os.chown(SOCKET, uid, -1, dir_fd=place, follow_symlinks=False)
            os.fchmod(place, 0o700)
            os.fchown(place, uid, -1)
        finally:
            os.close(place)
        control.listen(BACKLOG)
    except OSError as error:
        control.close()
        raise SandboxError(f"cannot make a control socket in {directory}: {error.strerror or error}") from error
    return control


def _received(peer: socket.socket, ports: list[int]) -> list[socket.socket]:
    """Return the listeners that a command sent, none unless they are those of loopback that were asked for."""
    _, descriptors, _, _ = socket.recv_fds(peer, 16, MOST_PORTS)
    received = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    for listener in received:
        listener.set_inheritable(False)
    if [_address(listener) for listener in received] == [("127.0.0.1", port) for port in ports]:
        return received
    for listener in received:
        listener.close()
    return []


def _address(listener: socket.socket) -> object:
    """Return the address on which an IPv4 stream socket listens, ``None`` for any other socket."""
    listens = listener.family == socket.AF_INET and listener.type == socket.SOCK_STREAM
    return listener.getsockname() if listens and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) else None


def _end(command: int, stops: list[Stop]) -> None:
    for stop in stops:
        stop()
    if command >= 0:
        os.close(command)
