"""Evidence by reuse key, on disk: one small file a key, replaced as a whole."""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Mapping
from io import BufferedReader
from pathlib import Path
from typing import Any

from evalwright.canonical import canonical_json, is_object

__all__ = ["EvidenceIndex"]

MAX_BYTES = 1 << 20
_KEY = re.compile("sha256:[0-9a-f]{64}")


class EvidenceIndex:
    """The evidence that steps may reuse. Threads and processes may use one directory at the same time.

    A record is the data of an ``EVIDENCE_RECORDED`` event: ``status``, ``digest`` and ``evidenceRef``, the path of its log
    relative to ``root``, which is the directory's parent unless it is given.
    """

    def __init__(self, directory: Path, *, root: Path | None = None) -> None:
        self.directory = directory
        self.root = root or directory.parent

    def find(self, key: str) -> dict[str, Any] | None:
        """Return the record of a key if it passed and its log is still there, byte for byte.

        A file that cannot be read counts as none. Raises ``ValueError`` for what is no key.
        """
        place = self._place(key)
        try:
            with _opened(place) as file:
                document = json.loads(file.read(MAX_BYTES))
        except (OSError, ValueError, RecursionError):
            return None
        record = document.get("record") if is_object(document) and document.get("key") == key else None
        return record if is_object(record) and record.get("status") == "passed" and self._is_whole(record) else None

    def keep(self, key: str, record: Mapping[str, Any]) -> None:
        """Put a record in the place of the key's last one; a failed one makes the step run again.

        Raises ``ValueError`` for what is no key or no record, ``OSError`` when it cannot be written.
        """
        if missing := [name for name in ("status", "digest", "evidenceRef") if not isinstance(record.get(name), str)]:
            raise ValueError(f"evidence without {missing[0]} cannot be kept")
        place = self._place(key)
        self.directory.mkdir(parents=True, exist_ok=True)
        descriptor, aside = tempfile.mkstemp(dir=self.directory, prefix=".", suffix=".tmp")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(canonical_json({"key": key, "record": record}).encode())
            os.replace(aside, place)
        except BaseException:
            os.unlink(aside)
            raise

    def _place(self, key: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError(f"{key!r} is no reuse key; it is sha256: and 64 hex digits")
        return self.directory / f"{key.removeprefix('sha256:')}.json"

    def _is_whole(self, record: Mapping[str, Any]) -> bool:
        try:
            digest: str = record["digest"]
            log = (self.root / record["evidenceRef"]).resolve(strict=True)
            if not log.is_relative_to(self.root.resolve()):
                return False
            with _opened(log) as file:
                return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}" == digest
        except (OSError, ValueError, KeyError, TypeError, RuntimeError):
            return False


def _opened(path: Path) -> BufferedReader:
    """Open a regular file for reading, and nothing else. Raises ``OSError``."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(f"{path} is no regular file")
    return os.fdopen(descriptor, "rb")
