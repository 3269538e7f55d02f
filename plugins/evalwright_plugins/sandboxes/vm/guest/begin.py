"""What a guest does when a session begins in it: clock, entropy, memory for commands, and the tunnels of its endpoints."""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import select
import socket
import struct
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright_plugins.sandboxes.vm.guest import cgroups, wire
    from evalwright_plugins.sandboxes.vm.guest.loop import Loop
else:
    import cgroups
    import wire

ADD_ENTROPY = 0x40085203
RESEED = 0x5207
EDIT_PARTITIONS, ADD_PARTITION = 0x1269, 1
TRANSFER = "/dev/transfer"
RESERVE_BYTES = 40 << 20
LEAST_BYTES = 16 << 20
MAX_PROCESSES = 4096
BACKLOG = 64


def begin(agent: Loop, request: Any) -> None:
    """Take the host's time and randomness, bound what commands may use in all, and listen where the host has endpoints."""
    time.clock_settime(time.CLOCK_REALTIME, request["time"])
    add_entropy(bytes.fromhex(request["entropy"]))
    room = available_bytes() - request["archive_bytes"] - RESERVE_BYTES
    cgroups.write(f"{cgroups.COMMANDS}/memory.max", str(max(LEAST_BYTES, room)))
    cgroups.write(f"{cgroups.COMMANDS}/pids.max", str(MAX_PROCESSES))
    show_archive(request["archive_bytes"])
    for port in request["ports"]:
        Listener(agent, port)


def show_archive(size: int) -> None:
    """Make the beginning of the transfer disk a partition, so that whoever reads the archive in it meets its end."""
    partition = array.array("B", struct.pack("qqi64s64s4x", 0, size, 1, b"", b""))
    address, length = partition.buffer_info()
    disk = os.open(TRANSFER, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.ioctl(disk, EDIT_PARTITIONS, struct.pack("iiiP", ADD_PARTITION, 0, length, address))
    finally:
        os.close(disk)
    os.symlink(f"{os.path.realpath(TRANSFER)}1", "/dev/archive")


def add_entropy(data: bytes) -> None:
    """Mix bytes into the kernel's pool and make it draw from them: guests of one snapshot must not share their randomness."""
    with open("/dev/urandom", "wb", buffering=0) as file:
        fcntl.ioctl(file, ADD_ENTROPY, struct.pack("ii", len(data) * 8, len(data)) + data)
        fcntl.ioctl(file, RESEED)


def available_bytes() -> int:
    """Return the memory that can still be used."""
    lines = dict(line.split(":", 1) for line in cgroups.text_of("/proc/meminfo").splitlines())
    return int(lines["MemAvailable"].split()[0]) * 1024


class Listener:
    """Makes a stream to the host of every connection to a port of loopback."""

    def __init__(self, agent: Loop, port: int) -> None:
        self.agent = agent
        self.port = port
        self.socket = socket.create_server(("127.0.0.1", port), backlog=BACKLOG)
        self.socket.setblocking(False)
        agent.watch(self.socket.fileno(), select.POLLIN, self.accept)

    def accept(self, _events: int) -> None:
        """Take a connection."""
        try:
            connection, _ = self.socket.accept()
        except OSError:
            return
        Connection(self.agent, connection, self.port)


class Connection:
    """One connection: bytes both ways within the windows, each direction closed on its own."""

    def __init__(self, agent: Loop, connection: socket.socket, port: int) -> None:
        self.agent = agent
        self.socket = connection
        self.window = wire.WINDOW
        self.waiting = bytearray()
        self.input_ended = self.output_ended = False
        self.socket.setblocking(False)
        self.stream = agent.open(self, {"port": port})
        agent.watch(connection.fileno(), select.POLLIN, self.transfer)

    def transfer(self, events: int) -> None:
        """Write and read what is possible now."""
        if events & select.POLLOUT:
            self.write()
        if events & (select.POLLIN | select.POLLHUP | select.POLLERR) and not self.output_ended and self.window > 0:
            self.read()
        elif events & (select.POLLHUP | select.POLLERR) and self.output_ended:
            self.close()
            return
        self.watch()

    def read(self) -> None:
        """Send the next bytes to the host."""
        try:
            data = self.socket.recv(min(wire.CHUNK, self.window))
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.window -= len(data)
            self.agent.send(wire.DATA, self.stream, data)
        else:
            self.output_ended = True
            self.agent.send(wire.END, self.stream)

    def write(self) -> None:
        """Pass on what the host sent."""
        while self.waiting:
            try:
                count = self.socket.send(self.waiting)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno not in (errno.EPIPE, errno.ECONNRESET):
                    raise
                count = len(self.waiting)
            del self.waiting[:count]
            self.agent.send(wire.CREDIT, self.stream, count.to_bytes(4, "big"))
        if self.input_ended:
            with contextlib.suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)

    def watch(self) -> None:
        """Wait for what can go on; close when nothing can."""
        if self.socket.fileno() < 0:
            return
        if self.input_ended and self.output_ended and not self.waiting:
            self.close()
            return
        reading = select.POLLIN if self.window > 0 and not self.output_ended else 0
        self.agent.expect(self.socket.fileno(), reading | (select.POLLOUT if self.waiting else 0))

    def data(self, payload: bytes) -> None:
        """Take bytes from the host."""
        self.waiting += payload
        self.write()
        self.watch()

    def end(self) -> None:
        """Close this direction once everything is written."""
        self.input_ended = True
        self.write()
        self.watch()

    def credit(self, count: int) -> None:
        """Send on."""
        self.window += count
        self.watch()

    def close(self) -> None:
        """End both directions and tell the host."""
        if self.socket.fileno() >= 0:
            self.drop()
            self.agent.done(self.stream, {})

    def drop(self) -> None:
        """End both directions."""
        if self.socket.fileno() >= 0:
            self.agent.forget(self.socket.fileno())
            self.socket.close()

    def signal(self, number: int) -> None:
        """Take nothing."""

    def tick(self) -> float | None:
        """Have nothing to wait for."""
        return None
