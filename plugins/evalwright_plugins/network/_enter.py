"""Enter a network of its own, hand its listening ports to the host, and become a command: a program of its own.

Called as ``python3 -I -S _enter.py CONTROL_SOCKET_PATH UID PORT[,PORT...] -- COMMAND...``. It becomes that user, makes a
user and a network namespace with nothing in it but loopback, listens there, sends the listening sockets over the control
socket (``SCM_RIGHTS``), waits for one byte, and executes the command. The host then accepts connections in a network that
it is not in, and nothing of this program stays. Unless the user is root, it has no privilege inside.

Standard library only. Every failure is one line on stderr and exit status 125.
"""

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from typing import NoReturn

CLONE_NEWUSER = 0x10000000
CLONE_NEWNET = 0x40000000
SIOCGIFFLAGS = 0x8913
SIOCSIFFLAGS = 0x8914
IFF_UP = 1
IFREQ = "16sH22x"
FAILED = 125
BACKLOG = 128
WAIT_SECONDS = 30.0
READY = b"+"
PR_SET_DUMPABLE = 4
USAGE = "usage: _enter.py CONTROL_SOCKET_PATH UID PORT[,PORT...] -- COMMAND..."
NO_NAMESPACES = "user namespaces may be off (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces) or confined"


class Failure(Exception):
    """A step that failed, in a line."""


def main(words: list[str]) -> NoReturn:
    """Do it all; returns only as the command."""
    try:
        path, user, ports, command = arguments(words)
        become(user)
        isolate()
        raise_loopback()
        listeners = [listen(port) for port in ports]
        with connect(path) as control:
            hand_over(control, listeners)
        execute(command)
    except Failure as failure:
        os.write(2, f"evalwright network: {failure}\n".encode("utf-8", "replace"))
    os._exit(FAILED)


def arguments(words: list[str]) -> tuple[str, int, list[int], list[str]]:
    """Return the control socket's path, the user, the ports, and the command."""
    if len(words) < 5 or words[3] != "--" or not words[1].isdecimal():
        raise Failure(USAGE)
    ports = [int(word) if word.isascii() and word.isdigit() else 0 for word in words[2].split(",")]
    if not all(0 < port < 65536 for port in ports):
        raise Failure(f"{words[2]!r} are not ports. {USAGE}")
    return words[0], int(words[1]), ports, words[4:]


def become(user: int) -> None:
    """Give up root's rights for those of another user; what this process is stays open to that user."""
    if os.geteuid() == user:
        return
    try:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)
    except OSError as error:
        raise Failure(f"cannot become user {user}: {error.strerror}") from error
    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)


def connect(path: str) -> socket.socket:
    """Connect to the host, by way of the directory: a path may be longer than the address of a socket."""
    control = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    control.settimeout(WAIT_SECONDS)
    try:
        directory = os.open(os.path.dirname(path) or ".", os.O_PATH | os.O_DIRECTORY)
        control.connect(f"/proc/self/fd/{directory}/{os.path.basename(path)}")
        os.close(directory)
    except OSError as error:
        raise Failure(f"cannot connect to {path}: {error.strerror or error}") from error
    return control


def isolate() -> None:
    """Move into new namespaces, in which this user and group are themselves."""
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        raise Failure(f"cannot make a user and network namespace: {os.strerror(ctypes.get_errno())}; {NO_NAMESPACES}")
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        try:
            with open(f"/proc/self/{name}", "wb", buffering=0) as file:
                file.write(text.encode())
        except OSError as error:
            raise Failure(f"cannot write /proc/self/{name}: {error.strerror}; {NO_NAMESPACES}") from error


def raise_loopback() -> None:
    """Bring the interface ``lo`` up."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            found = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack(IFREQ, b"lo", 0))
            flags = struct.unpack(IFREQ, found)[1] | IFF_UP
            fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack(IFREQ, b"lo", flags))
    except OSError as error:
        raise Failure(f"cannot bring loopback up: {error.strerror}") from error


def listen(port: int) -> socket.socket:
    """Return a socket that listens on a port of loopback."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(BACKLOG)
    except OSError as error:
        raise Failure(f"cannot listen on port {port}: {error.strerror}") from error
    return listener


def hand_over(control: socket.socket, listeners: list[socket.socket]) -> None:
    """Send the sockets and wait until the host serves them; close them here."""
    try:
        socket.send_fds(control, [b"listeners"], [listener.fileno() for listener in listeners])
        answer = control.recv(len(READY))
    except OSError as error:
        raise Failure(f"the host does not take the ports: {error.strerror or error}") from error
    if answer != READY:
        raise Failure("the host refused the ports")
    for listener in listeners:
        listener.close()


def execute(command: list[str]) -> NoReturn:
    """Become the command, with the signals and the environment that this program was started with.

    Python ignores two signals and may add ``LC_CTYPE``; its own descriptors are closed by the execution itself.
    """
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        with open("/proc/self/environ", "rb") as file:
            given = {entry.partition(b"=")[0] for entry in file.read().split(b"\0")}
        if b"LC_CTYPE" not in given:
            os.environ.pop("LC_CTYPE", None)
        os.execvp(command[0], command)
    except (OSError, ValueError) as error:
        raise Failure(f"cannot execute {command[0]}: {getattr(error, 'strerror', None) or error}") from error


if __name__ == "__main__":
    main(sys.argv[1:])
