"""What the files of a directory held when they were last read, so that those that cannot have changed are not read again."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalwright.canonical import digest_bytes
from evalwright.model import Entry, Manifest
from evalwright.workspace.scan import Stamped, scan
from evalwright.workspace.stamps import notes_writes, tick_ago

__all__ = ["StatCache"]

FEW_FILES = 200
FEW_BYTES = 1 << 20


class StatCache:
    """Keeps one file below ``directory`` for each large tree that was read; losing them costs time and nothing else.

    ``clock`` says before which time in ns a file must have changed last, to be told from its status.
    """

    def __init__(self, directory: Path, *, clock: Callable[[], int] = tick_ago) -> None:
        self._directory = directory
        self._clock = clock

    def scan(self, root: Path) -> Manifest:
        """Return what :func:`evalwright.workspace.scan` returns, reading only files that may have changed since last time."""
        begun = self._clock()
        place = self._directory / digest_bytes(os.fsencode(root.resolve()))[7:]
        known = _read(place)
        found: Stamped = {}
        manifest = scan(root, known=known, stamps=found)
        kept = {path: pair for path, pair in found.items() if pair[0][4] < begun}
        large = len(found) >= FEW_FILES or manifest.total_bytes >= FEW_BYTES
        if large and kept != known and notes_writes(root):
            self._write(place, kept)
        return manifest

    def _write(self, place: Path, stamps: Stamped) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        rows = [[*stamp, entry.as_json()] for stamp, entry in stamps.values()]
        descriptor, aside = tempfile.mkstemp(dir=self._directory, prefix=".")
        try:
            with open(descriptor, "w", encoding="utf-8", newline="") as file:
                json.dump(rows, file)
            os.replace(aside, place)
        except BaseException:
            os.unlink(aside)
            raise


def _read(place: Path) -> Stamped:
    """Return what is known; a file that is absent, cut or of another form says nothing."""
    try:
        rows: list[Any] = json.loads(place.read_bytes())
        entries = [((row[0], row[1], row[2], row[3], row[4]), Entry.from_json(row[5])) for row in rows]
        return {entry.raw_path: (stamp, entry) for stamp, entry in entries if entry.kind == "file" and entry.sha256}
    except (OSError, ValueError, TypeError, LookupError, AttributeError):
        return {}
