"""What runs on this machine, read from ``/proc`` alone: who descends from whom, and who names a directory or a marker."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Seen", "descendants", "living", "marked", "table"]

GONE = (b"Z", b"X")


@dataclass(frozen=True)
class Seen:
    """A process at one moment; its pid and start time together name it for good."""

    pid: int
    parent: int
    start: int
    argv: tuple[str, ...]

    def __str__(self) -> str:
        """Return the pid and the start of the command line."""
        return f"{self.pid} ({' '.join(self.argv)[:120]})"

    @property
    def is_server(self) -> bool:
        """Tell whether it runs the fork server's program: a server, one of its supervisors, or a command not yet executed."""
        return any(word.endswith("/_server.py") for word in self.argv[:6])

    @property
    def is_worker(self) -> bool:
        """Tell whether it is ``evalwright worker`` itself, not one who starts it."""
        return self.argv[1:4] == ("-m", "evalwright", "worker")


def table() -> dict[int, Seen]:
    """Return every process that lives; zombies do not."""
    found = (_seen(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {seen.pid: seen for seen in found if seen}


def descendants(root: int, processes: Mapping[int, Seen]) -> list[Seen]:
    """Return all that descends from a process, without itself."""
    children: dict[int, list[Seen]] = {}
    for seen in processes.values():
        children.setdefault(seen.parent, []).append(seen)
    found: list[Seen] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [seen.pid for seen in below]
    return found


def living(processes: Iterable[Seen]) -> list[Seen]:
    """Return those that still live."""
    found: list[Seen] = []
    for former in processes:
        now = _seen(former.pid)
        if now and now.start == former.start:
            found.append(now)
    return found


def marked(marks: Iterable[str]) -> list[Seen]:
    """Return the processes whose environment or working directory holds one of these texts; ours and our parents never."""
    wanted = [mark.encode() for mark in marks]
    processes = table()
    spared = _lineage(processes)
    return [seen for pid, seen in processes.items() if pid not in spared and any(mark in _known(pid) for mark in wanted)]


def _known(pid: int) -> bytes:
    known = b""
    with contextlib.suppress(OSError):
        known += os.fsencode(os.readlink(f"/proc/{pid}/cwd")) + b"\0"
    with contextlib.suppress(OSError):
        known += Path(f"/proc/{pid}/environ").read_bytes()
    return known


def _lineage(processes: Mapping[int, Seen]) -> set[int]:
    found: set[int] = set()
    pid = os.getpid()
    while pid in processes and pid not in found:
        found.add(pid)
        pid = processes[pid].parent
    return found


def _seen(pid: int) -> Seen | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        argv = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return None
    if len(fields) < 20 or fields[0] in GONE:
        return None
    words = tuple(word.decode(errors="replace") for word in argv.split(b"\0")[:-1])
    return Seen(pid=pid, parent=int(fields[1]), start=int(fields[19]), argv=words)
