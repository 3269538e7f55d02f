"""The filter on system calls (seccomp BPF) that closes the kernel's doors which namespaces leave open."""

from __future__ import annotations

import errno
import platform
import socket
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = ["ABIS", "FAMILIES", "Abi", "call_filter"]

LOAD, EQUAL, AT_LEAST, RETURN = 0x20, 0x15, 0x35, 0x06
NUMBER, ARCHITECTURE, FIRST_ARGUMENT = 0, 4, 16
"""Offsets in ``struct seccomp_data``; of an argument the lower half, as both machines are little-endian."""
ALLOW, FAIL, KILL = 0x7FFF0000, 0x00050000, 0x80000000
OTHER_ABI = 0x40000000
"""Numbers from here on are those of x32; no other machine has so many."""
FAMILIES = (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK)
"""What sockets may be: those that a network namespace keeps apart."""


@dataclass(frozen=True, slots=True)
class Abi:
    """A machine's way of calling: its ``AUDIT_ARCH`` and its numbers of the calls that are looked at."""

    architecture: int
    sockets: Sequence[int]
    denied: Mapping[str, int]


ABIS: Mapping[str, Abi] = {
    "x86_64": Abi(
        architecture=0xC000003E,
        sockets=(41, 53),
        denied={
            "add_key": 248,
            "request_key": 249,
            "keyctl": 250,
            "perf_event_open": 298,
            "bpf": 321,
            "userfaultfd": 323,
            "io_uring_setup": 425,
            "io_uring_enter": 426,
            "io_uring_register": 427,
        },
    ),
    "aarch64": Abi(
        architecture=0xC00000B7,
        sockets=(198, 199),
        denied={
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "perf_event_open": 241,
            "bpf": 280,
            "userfaultfd": 282,
            "io_uring_setup": 425,
            "io_uring_enter": 426,
            "io_uring_register": 427,
        },
    ),
}
"""``sockets`` are ``socket`` and ``socketpair``. Numbers: the kernel's ``syscall_64.tbl`` and ``asm-generic/unistd.h``."""


def call_filter(machine: str | None = None) -> bytes:
    """Return the filter for a machine (default: this one) as ``bwrap --seccomp`` reads it; on an unknown one all may pass.

    Sockets of other families than :data:`FAMILIES` fail with EAFNOSUPPORT, the calls in ``denied`` with EPERM. A program
    of another ABI, such as one of 32 bits, is killed with SIGSYS: its numbers mean other calls.
    """
    abi = ABIS.get(machine or platform.machine())
    if abi is None:
        return b"".join(_instruction(RETURN, ALLOW))
    looked_at = [
        *_instruction(LOAD, FIRST_ARGUMENT),
        *(word for family in FAMILIES for word in _when(family, _instruction(RETURN, ALLOW))),
        *_instruction(RETURN, FAIL | errno.EAFNOSUPPORT),
    ]
    native = [
        *_instruction(LOAD, NUMBER),
        *_when(OTHER_ABI, _instruction(RETURN, KILL), test=AT_LEAST),
        *(word for number in abi.denied.values() for word in _when(number, _instruction(RETURN, FAIL | errno.EPERM))),
        *(word for number in abi.sockets for word in _when(number, looked_at)),
        *_instruction(RETURN, ALLOW),
    ]
    return b"".join([*_instruction(LOAD, ARCHITECTURE), *_when(abi.architecture, native), *_instruction(RETURN, KILL)])


def _when(value: int, then: Sequence[bytes], *, test: int = EQUAL) -> list[bytes]:
    """Return instructions that are carried out only if what was loaded last passes a test."""
    return [struct.pack("=HBBI", test, 0, len(then), value), *then]


def _instruction(code: int, operand: int) -> list[bytes]:
    return [struct.pack("=HBBI", code, 0, 0, operand)]
