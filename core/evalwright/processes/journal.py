"""The processes that a run started, on file, so that another process can end what a dead one left."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from evalwright.canonical import is_object
from evalwright.processes.identity import ProcessIdentity, identity_of
from evalwright.processes.orphans import end_trees, living_trees

__all__ = ["ProcessJournal", "end_strays", "living_strays"]


class ProcessJournal:
    """Appends one line per command: which processes carry it, and where its trial lives. Many processes may write one file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, place: Path, pids: Sequence[int]) -> None:
        """Record live processes of this host and the trial's private directory, in one write. Raises ``OSError``."""
        identities = [identity.as_json() for pid in pids if (identity := identity_of(pid))]
        line = b"\n" + json.dumps({"place": str(place), "processes": identities}).encode() + b"\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        finally:
            os.close(descriptor)


def end_strays(path: Path) -> int:
    """Kill whatever still lives of the commands that a journal names, and return how many processes that were.

    A process counts as theirs when it is one that was recorded (pid, start time and boot agree), belongs to its session,
    descends from it, or works in a recorded trial's directory. Processes of another boot or host are gone or out of reach.
    """
    identities, places = _read(path)
    return end_trees(identities, places) if places else 0


def living_strays(path: Path) -> int:
    """Return how many processes :func:`end_strays` would kill."""
    identities, places = _read(path)
    return len(living_trees(identities, places)) if places else 0


def _read(path: Path) -> tuple[list[ProcessIdentity], list[Path]]:
    entries = list(_entries(path))
    return [identity for _, found in entries for identity in found], [place for place, _ in entries]


def _entries(path: Path) -> Iterator[tuple[Path, list[ProcessIdentity]]]:
    """Read a journal; a line that a crash cut is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            record = json.loads(line)
            if is_object(record):
                yield Path(record["place"]), [ProcessIdentity.from_json(item) for item in record["processes"]]
