"""What the tests of shipped plugins look at from outside: live processes, what files hold, and runs that are cut."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalwright.processes.identity import ProcessIdentity, identity_of, parent_of


def command_line(pid: int) -> list[bytes]:
    """Return the words that a process was started with, none for one that is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:-1]
    return []


def everyone() -> list[int]:
    """List all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def descendants(root: int) -> list[int]:
    """List a process and everything below it."""
    parents = {pid: parent_of(pid) for pid in everyone()}
    found = [root]
    for pid in found:
        found += [child for child, parent in parents.items() if parent == pid]
    return found


def identities(pids: list[int]) -> list[ProcessIdentity]:
    """Return the identities of those processes that live."""
    return [identity for pid in pids if (identity := identity_of(pid))]


def mentioning(path: Path) -> list[int]:
    """List the processes whose command line or environment names a path."""
    wanted, found = os.fsencode(path), list[int]()
    for pid in everyone():
        with contextlib.suppress(OSError):
            if wanted in Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes():
                found.append(pid)
    return [pid for pid in found if pid != os.getpid()]


def holding(directory: Path, text: str) -> list[Path]:
    """List the files below a directory whose content or name holds a text; a file that vanishes meanwhile is left out."""
    found: list[Path] = []
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):
            if text in path.name or (path.is_file() and text.encode() in path.read_bytes()):
                found.append(path)
    return found


@pytest.fixture
def undertaker(tmp_path: Path) -> Iterator[None]:
    """Kill what still names the test's directory after it."""
    yield
    for pid in mentioning(tmp_path):
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
