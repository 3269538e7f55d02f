"""The last resort when a supervisor and its fork server were both killed: find what is left of a command."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from pathlib import Path

from evalwright.processes.identity import parent_of, session_of

__all__ = ["become_subreaper", "end_orphans"]

PR_SET_CHILD_SUBREAPER = 36
PASSES = 50
PAUSE_SECONDS = 0.01


def become_subreaper() -> None:
    """Make orphaned descendants children of this process rather than of init, so that they can still be found."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_orphans(leader: int | None) -> None:
    """Kill the session that ``leader`` began, and every child of this process in a session of its own with its tree.

    Children in this process's own session were started by the host program and are left alone, as are fork servers.
    """
    for _ in range(PASSES):
        found = _orphans(leader)
        if not found:
            return
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)
        for pid in found:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)


def _orphans(leader: int | None) -> list[int]:
    ours = os.getsid(0)
    parents: dict[int, int] = {}
    found: list[int] = []
    for name in os.listdir("/proc"):
        if name.isdigit() and (parent := parent_of(int(name))) is not None:
            parents[int(name)] = parent
    for pid in parents:
        session = session_of(pid)
        adopted = parents[pid] == os.getpid() and session not in (None, ours) and not _is_server(pid)
        if (leader is not None and session == leader) or adopted:
            found.append(pid)
    return found + [pid for pid in parents if _below(pid, parents, set(found))]


def _is_server(pid: int) -> bool:
    try:
        return b"_server.py\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def _below(pid: int, parents: dict[int, int], roots: set[int]) -> bool:
    """Tell whether a process descends from one of ``roots``."""
    seen: set[int] = set()
    while (pid := parents.get(pid, 0)) and pid not in seen:
        if pid in roots:
            return True
        seen.add(pid)
    return False
