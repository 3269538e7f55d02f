"""The last resort when a supervisor and its fork server were both killed: find what is left of a command."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from evalwright.processes.identity import ProcessIdentity, parent_of, session_of

__all__ = ["become_subreaper", "end_orphans", "end_trees", "living_trees"]

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
    ours = os.getsid(0)

    def orphan(pid: int, parent: int) -> bool:
        session = session_of(pid)
        adopted = parent == os.getpid() and session not in (None, ours) and not _is_server(pid)
        return (leader is not None and session == leader) or adopted

    _end(orphan)


def end_trees(identities: Sequence[ProcessIdentity], places: Sequence[Path]) -> int:
    """Kill what :func:`living_trees` finds until nothing is left, and return how many processes that were."""
    return _end(_strays(identities, places))


def living_trees(identities: Sequence[ProcessIdentity], places: Sequence[Path]) -> list[int]:
    """Return recorded processes that still live, their sessions and descendants, and whatever works in one of ``places``.

    This process and its ancestors are never among them.
    """
    return _matching(_strays(identities, places))


def _strays(identities: Sequence[ProcessIdentity], places: Sequence[Path]) -> Callable[[int, int], bool]:
    leaders = {identity.pid for identity in identities if identity.alive}
    sessions = leaders | {identity.pid for identity in identities if identity.ended}
    marks = [os.fsencode(place) for place in places]
    homes = {os.path.dirname(mark) for mark in marks}
    spared = _lineage()

    def stray(pid: int, _parent: int) -> bool:
        return pid not in spared and (pid in leaders or session_of(pid) in sessions or _works_in(pid, homes, marks))

    return stray


def _end(wanted: Callable[[int, int], bool]) -> int:
    """Kill every process that ``wanted`` says yes to, and its tree, until none is left; return how many there were."""
    killed: set[int] = set()
    for _ in range(PASSES):
        found = _matching(wanted)
        if not found:
            break
        killed.update(found)
        for pid in found:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(PAUSE_SECONDS)
        for pid in found:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
    return len(killed)


def _matching(wanted: Callable[[int, int], bool]) -> list[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (parent := parent_of(int(name))) is not None:
            parents[int(name)] = parent
    found = {pid for pid, parent in parents.items() if wanted(pid, parent)}
    return [*found, *(pid for pid in parents if pid not in found and _below(pid, parents, found))]


def _works_in(pid: int, homes: Collection[bytes], marks: Sequence[bytes]) -> bool:
    """Tell whether a process's working directory lies in one of these directories, or a variable of it names a path in one.

    ``homes`` are the few directories that hold them all: most processes have nothing to do with those.
    """
    cwd = environment = b""
    with contextlib.suppress(OSError):
        cwd = os.fsencode(os.readlink(f"/proc/{pid}/cwd")) + b"/"
    with contextlib.suppress(OSError):
        environment = Path(f"/proc/{pid}/environ").read_bytes()
    if not any(home in cwd or home in environment for home in homes):
        return False
    return any(cwd.startswith(mark + b"/") or b"=" + mark + b"/" in environment for mark in marks)


def _lineage() -> set[int]:
    """Return this process and its ancestors."""
    found: set[int] = set()
    pid: int | None = os.getpid()
    while pid and pid not in found:
        found.add(pid)
        pid = parent_of(pid)
    return found


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
