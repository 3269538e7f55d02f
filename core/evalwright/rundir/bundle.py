"""The sealed evidence of one trial: its files, and ``bundle.json`` with their digests, written last."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from evalwright.canonical import digest_bytes, finite, is_object
from evalwright.rundir.documents import disk_errors, read_object, render_compact
from evalwright.rundir.shared import SharedFile, write_new
from evalwright.workspace import digest_file

__all__ = ["DETERMINISTIC", "BundleWriter", "changed_artifacts", "is_deterministic", "sealed_digests"]

SEAL = "bundle.json"
DETERMINISTIC = (
    "input.json",
    "task.txt",
    "input.diff",
    "output.txt",
    "workspace-before.json",
    "workspace-after.json",
    "workspace-diff.json",
    "workspace.diff",
    "score.json",
)


class BundleWriter:
    """Writes a trial's files into a directory that nobody else writes, and keeps the digest of each.

    Files with the same content, such as empty streams, are one file with several names where the file system can do that.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.digests: dict[str, str] = {}
        self._held: dict[str, str] = {}
        with disk_errors(directory):
            directory.mkdir(parents=True, exist_ok=True)

    def write_bytes(self, name: str, data: bytes | SharedFile) -> None:
        """Write one file; ``name`` may hold subdirectories. Raises ``ValueError`` for one that leads out of the bundle."""
        if name.startswith("/") or ".." in name.split("/"):
            raise ValueError(f"{name!r} leads out of the bundle")
        path = f"{self.directory}/{name}"
        digest = data.digest if isinstance(data, SharedFile) else digest_bytes(data)
        with disk_errors(self.directory):
            if "/" in name:
                os.makedirs(os.path.dirname(path), exist_ok=True)
            if not _linked(self._held.setdefault(digest, path), path):
                _write(path, data)
        self.digests[name] = digest

    def write_text(self, name: str, text: str) -> None:
        """Write one UTF-8 file, newlines as they are."""
        self.write_bytes(name, finite(text).encode())

    def write_document(self, name: str, value: Any) -> None:
        """Write one JSON document."""
        self.write_bytes(name, render_compact(value).encode("utf-8", "replace"))

    def seal(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Write ``bundle.json`` with every digest and these facts; return its content."""
        document = {"schema_version": 1, "digests": dict(sorted(self.digests.items())), **facts}
        self.write_document(SEAL, document)
        return document


def _linked(known: str, path: str) -> bool:
    """Give a file that is written already another name; tell whether that can be done here."""
    if known == path:
        return False
    try:
        os.link(known, path)
    except OSError:
        return False
    return True


def _write(path: str, data: bytes | SharedFile) -> None:
    if isinstance(data, SharedFile):
        data.put(path)
    else:
        os.close(write_new(path, data))


def is_deterministic(name: str) -> bool:
    """Tell whether an artifact holds no durations or process facts, so that two equal trials give equal bytes."""
    return name in DETERMINISTIC or (name.startswith("scorers/") and name.endswith(".json"))


def sealed_digests(directory: Path) -> Mapping[str, str] | None:
    """Return the digests that a bundle's seal names, or ``None`` for an unsealed one."""
    path = directory / SEAL
    if not path.is_file():
        return None
    digests = read_object(path).get("digests")
    return digests if is_object(digests) else {}


def changed_artifacts(directory: Path, digests: Mapping[str, str], names: Iterable[str] | None = None) -> list[str]:
    """Return those files, of ``names`` or of all that were sealed, that are absent or have another content now.

    A file with several names is read once.
    """
    place = str(directory)
    whole: dict[str | None, str] = {}
    changed: list[str] = []
    for name in digests if names is None else names:
        path, digest = f"{place}/{name}", digests.get(name)
        if digest in whole and _is_one(whole[digest], path):
            continue
        if digest != _digest(path):
            changed.append(name)
        else:
            whole[digest] = path
    return changed


def _is_one(known: str, path: str) -> bool:
    try:
        return os.path.samestat(os.lstat(known), os.lstat(path))
    except OSError:
        return False


def _digest(path: str) -> str | None:
    try:
        return digest_file(path)
    except OSError:
        return None
