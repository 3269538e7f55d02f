"""The processes that a run started, on file, so that another process can end what a dead one left."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from evalwright.canonical import is_object
from evalwright.processes.cgroups import cgroup_of, end_cgroup
from evalwright.processes.identity import ProcessIdentity, boot_id, current_process, identity_of
from evalwright.processes.orphans import end_trees, living_trees

__all__ = ["ProcessJournal", "end_strays", "living_strays"]


PLACE = re.compile(r".*/evalwright-\d+/\d+-\d+-\d+/[0-9a-f]{16}")
CGROUP = re.compile(r"/(.*/)?evalwright-\d+-\d+-[0-9a-f]{8}/\d+")


class ProcessJournal:
    """Appends one line per command: which processes carry it, its cgroup, and where its trial lives.

    The coordinator makes the file, many processes may write it. Where it is gone, the run is over and nothing is noted.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def make(self) -> None:
        """Make the file. Raises ``OSError``."""
        os.close(os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def note(self, place: Path, pids: Sequence[int]) -> None:
        """Record live processes of this host and the trial's private directory, in one write. Raises ``OSError``."""
        identities = [identity.as_json() for pid in pids if (identity := identity_of(pid))]
        record: dict[str, Any] = {"by": current_process().as_json(), "place": str(place), "processes": identities}
        record["cgroup"] = cgroup_of(pids[-1]) if pids else None
        line = b"\n" + json.dumps(record).encode() + b"\n"
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            if os.write(descriptor, line) != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
        finally:
            os.close(descriptor)


def end_strays(path: Path) -> int:
    """Kill whatever still lives of the commands that a journal names, and return how many processes that were.

    A process counts as theirs when it is one that was recorded (pid, start time and boot agree), is in its cgroup, belongs to
    its session, descends from it, or works in a recorded trial's directory. Lines of another boot or host mean nothing here,
    nor do directories and cgroups that are not of the kind that trials get.
    """
    identities, places, cgroups = _read(path)
    count = end_trees(identities, places) if identities or places else 0
    return count + sum(end_cgroup(cgroup) for cgroup in cgroups)


def living_strays(path: Path) -> int:
    """Return how many processes :func:`end_strays` would kill, those of cgroups left out that nothing else tells of."""
    identities, places, _ = _read(path)
    return len(living_trees(identities, places)) if identities or places else 0


def _read(path: Path) -> tuple[list[ProcessIdentity], list[Path], list[str]]:
    identities: list[ProcessIdentity] = []
    places: list[Path] = []
    cgroups: list[str] = []
    for record in _records(path):
        by = ProcessIdentity.from_json(record["by"])
        if not by.local or by.boot_id != boot_id():
            continue
        identities += [ProcessIdentity.from_json(item) for item in record["processes"]]
        if PLACE.fullmatch(str(record["place"])):
            places.append(Path(record["place"]))
        if CGROUP.fullmatch(str(record.get("cgroup"))):
            cgroups.append(record["cgroup"])
    return identities, places, cgroups


def _records(path: Path) -> Iterator[dict[str, Any]]:
    """Read a journal; a line that a crash cut is left out."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError:
        return
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            record = json.loads(line)
            if is_object(record):
                for item in (record["by"], *record["processes"]):
                    ProcessIdentity.from_json(item)
                yield record
