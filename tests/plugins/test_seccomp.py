"""The filter on system calls of ``bubblewrap``: what it says of each call, and what programs meet."""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.plugins.bubbles import ENV, Open, opening

from evalwright.interfaces import Command
from evalwright_plugins.sandboxes._seccomp import ABIS, FAMILIES, call_filter

ALLOWED, KILLED, FAILED = 0x7FFF0000, 0x80000000, 0x00050000
I386, X32 = 0x40000003, 0x40000000
READ_NUMBERS = {"x86_64": 0, "aarch64": 63}
OPEN_EACH = """
import socket
for family in range(64):
    for make in (socket.socket, socket.socketpair):
        try: made = make(family, socket.SOCK_DGRAM)
        except OSError as error: print(family, make.__name__, error.errno)
        else: print(family, make.__name__, 0)
"""
CALL_EACH = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for word in sys.argv[1:]:
    ctypes.set_errno(0)
    print(word, libc.syscall(int(word), 0, 0, 0, 0, 0, 0), ctypes.get_errno())
"""


def judged(program: bytes, architecture: int, number: int, argument: int = 0) -> int:
    """Carry out a filter as the kernel does, on one call; instructions are those of ``linux/filter.h``."""
    data = struct.pack("=IIQ6Q", number, architecture, 0, argument, *[0] * 5)
    instructions = list(struct.iter_unpack("=HBBI", program))
    at, loaded = 0, 0
    while True:
        code, yes, no, operand = instructions[at]
        at += 1
        match code:
            case 0x20:
                loaded = struct.unpack_from("=I", data, operand)[0]
            case 0x15:
                at += yes if loaded == operand else no
            case 0x35:
                at += yes if loaded >= operand else no
            case 0x06:
                return int(operand)
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")


@pytest.mark.parametrize("machine", ABIS)
def test_a_filter_denies_what_is_listed_and_nothing_else(machine: str) -> None:
    abi, program = ABIS[machine], call_filter(machine)
    denied = {number for number in range(600) if judged(program, abi.architecture, number) == FAILED | errno.EPERM}
    assert denied == set(abi.denied.values())
    others = set(range(600)) - denied - set(abi.sockets)
    assert READ_NUMBERS[machine] in others
    assert {judged(program, abi.architecture, number) for number in others} == {ALLOWED}


@pytest.mark.parametrize("machine", ABIS)
def test_a_filter_lets_sockets_be_of_few_families(machine: str) -> None:
    abi, program = ABIS[machine], call_filter(machine)
    for number in abi.sockets:
        allowed = {family for family in range(256) if judged(program, abi.architecture, number, family) == ALLOWED}
        assert allowed == set(FAMILIES)
        assert judged(program, abi.architecture, number, 40) == FAILED | errno.EAFNOSUPPORT


def test_the_upper_half_of_a_family_is_not_looked_at_as_the_kernel_does_not() -> None:
    abi = ABIS["x86_64"]
    assert judged(call_filter("x86_64"), abi.architecture, abi.sockets[0], 1 << 32 | 40) == FAILED | errno.EAFNOSUPPORT


@pytest.mark.parametrize("machine", ABIS)
def test_calls_of_another_abi_are_not_taken_for_ones_of_this(machine: str) -> None:
    program = call_filter(machine)
    assert judged(program, I386, READ_NUMBERS[machine]) == KILLED
    assert judged(program, ABIS[machine].architecture, X32 | READ_NUMBERS[machine]) == KILLED


def test_on_a_machine_that_is_not_known_everything_passes() -> None:
    assert judged(call_filter("riscv64"), 0xC00000F3, 198, 40) == ALLOWED


@pytest.fixture
def opened(require: Callable[[str], None]) -> Iterator[Open]:
    require("bwrap")
    with opening() as opened:
        yield opened


known = pytest.mark.skipif(platform.machine() not in ABIS, reason="this machine's calls are not known")


@known
@pytest.mark.parametrize("network", ["none", "host"])
def test_a_command_opens_no_socket_that_a_network_namespace_does_not_keep_apart(opened: Open, network: str) -> None:
    done = opened({"network": network}).execute(Command(argv=["python3", "-c", OPEN_EACH], env=ENV, timeout=20))
    said = [tuple(map(str, line.split())) for line in done.stdout.text.splitlines()]
    assert len(said) == 128, done.stderr.text
    assert {int(family) for family, _, number in said if number != str(errno.EAFNOSUPPORT)} <= set(FAMILIES)
    assert ("1", "socketpair", "0") in said
    assert {(str(int(family)), "socket", "0") for family in FAMILIES[:3]} <= set(said)


@known
@pytest.mark.parametrize("nested", [False, True])
def test_a_command_reaches_no_keyring_no_bpf_and_no_io_uring(opened: Open, nested: bool) -> None:
    numbers = list(map(str, ABIS[platform.machine()].denied.values()))
    prefix = ["unshare", "-rn"] if nested else []
    session = opened({"user_namespaces": nested})
    done = session.execute(Command(argv=[*prefix, "python3", "-c", CALL_EACH, *numbers], env=ENV, timeout=20))
    assert done.stdout.text == "".join(f"{number} -1 {errno.EPERM}\n" for number in numbers), done.stderr.text


PROGRAMS = {
    "node": (
        "node",
        "-e",
        (
            "require('net').createServer().listen(0, () => "
            "require('fs').promises.readFile('/etc/passwd').then(() => process.exit(0), () => process.exit(1)))"
        ),
    ),
    "git": ("git", "init", "-q", "repository"),
    "python3": ("python3", "-c", "import asyncio, multiprocessing; multiprocessing.Lock(); asyncio.run(asyncio.sleep(0))"),
}


@pytest.mark.parametrize("argv", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_work_under_the_filter(opened: Open, argv: tuple[str, ...]) -> None:
    place = Path(ENV["PATH"].split(":")[1])
    if not (place / argv[0]).exists():
        pytest.skip(f"{argv[0]} is not installed in {place}")
    done = opened().execute(Command(argv=argv, env=ENV | {"HOME": "/home/agent"}, timeout=25))
    assert done.exit_code == 0, done.stderr.text


def test_a_traced_child_can_still_be_followed(opened: Open) -> None:
    trace = "import ctypes, os\nif os.fork() == 0: os._exit(0 if ctypes.CDLL(None).ptrace(0, 0, 0, 0) == 0 else 1)\n"
    trace += "import sys; sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))"
    assert opened().execute(Command(argv=["python3", "-c", trace], env=ENV, timeout=20)).exit_code == 0


def test_the_filter_s_descriptor_is_not_left_to_the_command(opened: Open) -> None:
    done = opened().execute(Command(argv=["/bin/ls", "/proc/self/fd"], env=ENV, timeout=20))
    assert done.stdout.text.split() == ["0", "1", "2", "3"]
