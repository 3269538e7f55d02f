"""Real servers and clients on loopback for tests of the network: what a test says byte for byte, and certificates for it."""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 20.0
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

Handler = Callable[["Wire"], None]


@dataclass
class Wire:
    """One connection, spoken byte by byte; every wait ends with an error after a time."""

    socket: socket.socket
    buffer: bytes = b""

    def __post_init__(self) -> None:
        self.socket.settimeout(SECONDS)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def until(self, end: bytes) -> bytes:
        """Read up to and with ``end``."""
        while end not in self.buffer:
            piece = self.socket.recv(65536)
            assert piece, f"closed after {self.buffer!r}"
            self.buffer += piece
        found, _, self.buffer = self.buffer.partition(end)
        return found + end

    def exactly(self, size: int) -> bytes:
        while len(self.buffer) < size:
            piece = self.socket.recv(65536)
            assert piece, f"closed after {self.buffer!r}"
            self.buffer += piece
        found, self.buffer = self.buffer[:size], self.buffer[size:]
        return found

    def rest(self) -> bytes:
        """Read to the end; a reset is an end too."""
        with contextlib.suppress(ConnectionResetError):
            while piece := self.socket.recv(65536):
                self.buffer += piece
        found, self.buffer = self.buffer, b""
        return found

    def head(self) -> bytes:
        return self.until(b"\r\n\r\n")


@dataclass
class Server:
    """A listening server whose handler gets one connection after the other, each in a thread; it keeps what went wrong."""

    listener: socket.socket
    handler: Handler
    port: int
    tls: ssl.SSLContext | None = None
    failures: list[BaseException] = field(default_factory=list[BaseException])
    accepted: list[socket.socket] = field(default_factory=list[socket.socket])
    threads: list[threading.Thread] = field(default_factory=list[threading.Thread])

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    def run(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                self.accepted.append(connection)
                thread = threading.Thread(target=self.talk, args=(connection,))
                self.threads.append(thread)
                thread.start()

    def talk(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(SECONDS)
            if self.tls:
                try:
                    connection = self.tls.wrap_socket(connection, server_side=True)
                except OSError:
                    return
                self.accepted.append(connection)
            with Wire(connection) as wire:
                self.handler(wire)
        except BaseException as failure:
            self.failures.append(failure)
        finally:
            connection.close()


@contextlib.contextmanager
def serving(handler: Handler, *, tls: ssl.SSLContext | None = None, listener: socket.socket | None = None) -> Generator[Server]:
    """Serve until the end of the block; a handler's failure is raised there."""
    listener = listener or socket.create_server(("127.0.0.1", 0))
    server = Server(listener, handler, listener.getsockname()[1], tls)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(SECONDS)
        for connection in server.accepted:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for talk in server.threads:
            talk.join(SECONDS)
        for connection in server.accepted:
            connection.close()
    if server.failures:
        raise server.failures[0]


def answering(response: bytes = OK, seen: list[bytes] | None = None) -> Handler:
    """Return a handler that notes a request's head, reads its body, and answers."""

    def handler(wire: Wire) -> None:
        head = wire.head()
        length = re.search(rb"Content-Length: (\d+)", head)
        wire.exactly(int(length[1]) if length and b"Expect" not in head else 0)
        if seen is not None:
            seen.append(head)
        wire.send(response)

    return handler


def make_certificate(directory: Path, *names: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Make a certificate for hosts and return the contexts of its server and of a client that trusts it alone."""
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    alternatives = ",".join(f"IP:{name}" if name[0].isdigit() else f"DNS:{name}" for name in names)
    words = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    words += ["-keyout", str(key), "-out", str(certificate), "-subj", "/CN=test", "-addext", f"subjectAltName={alternatives}"]
    subprocess.run(words, check=True, capture_output=True, timeout=SECONDS)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    return server, ssl.create_default_context(cafile=str(certificate))
