"""Hostile programs. Each prints what it got; whether it reached its aim is judged on the host where that can be seen."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from tests.isolation.world import Attempt, died

from evalwright_plugins.sandboxes._seccomp import ABIS

Judge = Callable[[Attempt], bool]


@dataclass(frozen=True)
class Program:
    """``name`` says what it tries; ``reached`` whether it did."""

    name: str
    argv: Sequence[str]
    reached: Judge
    cpu_seconds: int = 10


def said_secret(attempt: Attempt) -> bool:
    """Tell whether the program printed the secret."""
    return attempt.world.secret in attempt.said


def said(word: str) -> Judge:
    """Judge by a word that the program prints when it has got through."""
    return lambda attempt: word in attempt.said.split()


def sh(name: str, script: str, reached: Judge = said_secret) -> Program:
    """Return a program of the shell."""
    return Program(name, ("/bin/sh", "-c", script), reached)


def python(name: str, script: str, reached: Judge) -> Program:
    """Return a program of Python."""
    return Program(name, ("python3", "-c", script), reached)


def _wrote_outside(attempt: Attempt) -> bool:
    return any(attempt.world.outside.iterdir())


def _followed(attempt: Attempt) -> bool:
    with contextlib.suppress(OSError):
        name = attempt.session.workspace / "answer"
        return attempt.world.secret in attempt.session.get(PurePosixPath(name), max_bytes=1000).decode()
    return False


def _wrote_much(attempt: Attempt) -> bool:
    return sum(path.stat().st_size for path in attempt.request.workspace.iterdir()) > 256 << 20


def _unbounded(limit: str) -> Judge:
    return lambda attempt: attempt.completed.limit != limit


SEARCH = 'import glob, os\nwanted = "".join(os.environ["SECRET"].split()).encode()\n'
PROC = SEARCH + (
    "for path in glob.glob('/proc/[0-9]*/{0}'):\n"
    "    try: data = open(path, 'rb').read()\n"
    "    except OSError: continue\n"
    "    if wanted in data: print(wanted.decode()); break\n"
)
CONNECT = "import os, socket\ntry:\n    {0}\n    print('REACHED')\nexcept OSError as error:\n    print(error)\n"
PTRACE = (
    "import ctypes, os\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "if libc.ptrace(0x4206, int(os.environ['VICTIM']), 0, 0) == 0: print('REACHED')\n"
)
SOCKETS = (
    "import socket\n"
    "for family in {*range(64)} - {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}:\n"
    "    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):\n"
    "        try: socket.socket(family, kind)\n"
    "        except OSError: continue\n"
    "        print('REACHED')\n"
)
CALLS = (
    "import ctypes, errno, platform\n"
    f"calls = { ({name: list(abi.denied.values()) for name, abi in ABIS.items()}) }[platform.machine()]\n"
    "libc = ctypes.CDLL(None, use_errno=True)\n"
    "for number in calls:\n"
    "    done = libc.syscall(number, 0, 0, 0, 0, 0, 0)\n"
    "    if done >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS, errno.EACCES): print('REACHED')\n"
)
PROGRAMS: Sequence[Program] = (
    sh("read `/etc/shadow`", "grep -q '^root:[^:]*:[0-9]' /etc/shadow && echo REACHED", said("REACHED")),
    sh("read the suite and its gold", 'cat "$PLACE/evals/suites/demo/cases.jsonl"'),
    sh("read the evidence of an earlier run", 'cat "$PLACE/evals/runs/r/cases/c/score.json"'),
    sh("read another trial's workspace", 'cat "$PLACE/other/w/answer.txt"'),
    sh("read credentials in the user's home", 'cat "$PLACE/home/.netrc"'),
    sh("read the host's shared memory", 'cat "$SHARED"'),
    python("read the environment of another process", PROC.format("environ"), said_secret),
    python("read the command line of another process", PROC.format("cmdline"), said_secret),
    python(
        "read files of another process through `/proc/PID/root`",
        SEARCH
        + (
            "for path in glob.glob('/proc/[0-9]*/root' + os.environ['PLACE'] + '/home/.netrc'):\n"
            "    try: print(open(path).read())\n"
            "    except OSError: pass\n"
        ),
        said_secret,
    ),
    python(
        "find an open descriptor that leads out",
        SEARCH
        + (
            "for number in range(3, 256):\n"
            "    try: os.stat(number)\n"
            "    except OSError: continue\n"
            "    print('REACHED', os.readlink(f'/proc/self/fd/{number}')) if number != 3 else None\n"
        ),
        said("REACHED"),
    ),
    sh("write outside the workspace", 'echo x > "$PLACE/outside/x"', _wrote_outside),
    sh(
        "change a program of the system",
        "t=/usr/local/bin/evalwright-hostile; touch $t && rm $t && echo REACHED",
        said("REACHED"),
    ),
    sh("escape by a symbolic link that the harness reads", 'ln -s "$PLACE/home/.netrc" answer', _followed),
    sh("escape by a linked directory that the harness reads", 'ln -s "$PLACE/home" d && ln -s d/.netrc answer', _followed),
    sh("escape by a hard link", 'ln "$PLACE/home/.netrc" answer && cat answer'),
    sh("kill a neighbour", 'kill -9 "$VICTIM"; sleep 0.1', lambda attempt: died(attempt.world.victim)),
    python("trace a neighbour with ptrace", PTRACE, said("REACHED")),
    sh(
        "leave a daemon behind",
        (
            "(setsid sh -c '(trap \"\" TERM HUP; while :; do echo x >> late; sleep 0.05; done) &' > /dev/null 2>&1 &)\n"
            "until [ -s late ]; do :; done"
        ),
        lambda attempt: _grows(attempt),
    ),
    sh("fork without end", "f() { f | f & }; f; sleep 0.5; exit 1", _unbounded("pids_limit")),
    python("take all memory", "x = []\nwhile True: x.append(bytearray(16 << 20))", _unbounded("oom_killed")),
    sh("write a file without end", "cat /dev/zero > big", _unbounded("file_size_limit")),
    sh(
        "fill the disk with many files",
        "for i in 1 2 3 4 5 6 7 8 9; do for j in 1 2 3 4; do head -c 8000000 /dev/zero > f$i$j || exit 1; done; done",
        _wrote_much,
    ),
    Program("compute without end", ("/bin/sh", "-c", "while :; do :; done"), _unbounded("cpu_limit"), cpu_seconds=1),
    python(
        "connect to a service of the host",
        CONNECT.format("socket.create_connection(('127.0.0.1', int(os.environ['PORT'])), 3)"),
        said("REACHED"),
    ),
    python(
        "send a datagram, as to resolve a name",
        CONNECT.format(
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'?', ('127.0.0.1', int(os.environ['UDP_PORT'])))"
        ),
        lambda attempt: attempt.world.received(),
    ),
    python(
        "connect to an abstract Unix socket",
        CONNECT.format("socket.socket(socket.AF_UNIX).connect('\\0' + os.environ['ABSTRACT'])"),
        said("REACHED"),
    ),
    python("open a socket of a seldom family, such as VSOCK", SOCKETS, said("REACHED")),
    python("call keyrings, BPF, performance counters or io_uring", CALLS, said("REACHED")),
    sh("mount a file system", "unshare -rm mount -t tmpfs none /tmp && echo REACHED", said("REACHED")),
    sh(
        "set a parameter of the kernel",
        ("read v < /proc/sys/kernel/core_pattern && printf '%s\\n' \"$v\" > /proc/sys/kernel/core_pattern && echo REACHED"),
        said("REACHED"),
    ),
    sh("run as root", "id -u", said("0")),
)


def _grows(attempt: Attempt) -> bool:
    """Tell whether somebody still writes, after every process should be dead."""
    import time

    late = attempt.request.workspace / "late"
    before = late.stat().st_size
    time.sleep(0.3)
    return late.stat().st_size > before
