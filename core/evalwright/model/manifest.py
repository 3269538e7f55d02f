"""What a directory tree holds: one entry per path, and the changes between two trees."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

__all__ = ["Change", "Entry", "Manifest", "changes_between", "paths_of"]

Kind = Literal["directory", "file", "symlink", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One path of a tree, relative to its root, with ``/`` between parts.

    ``path`` is text for records: a byte that is not UTF-8 stands as ``\\xNN``, and ``path_b64`` then holds the exact
    bytes. ``sha256`` is ``sha256:hex`` of a file's content or of a link's target; ``mode`` the permission bits of a file or
    directory.
    """

    path: str
    kind: Kind
    sha256: str | None = None
    size: int | None = None
    mode: int | None = None
    target: str | None = None
    broken: bool | None = None
    subtype: str | None = None
    path_b64: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the record of ``workspace-before.json`` and ``workspace-after.json``."""
        record: dict[str, Any] = {"path": self.path, "kind": self.kind}
        for name in ("sha256", "size", "mode", "target", "broken", "subtype", "path_b64"):
            value = getattr(self, name)
            if value is not None and (name != "mode" or self.kind == "file"):
                record[name] = value
        return record

    @property
    def raw_path(self) -> bytes:
        """Return the exact bytes of the path."""
        return base64.b64decode(self.path_b64) if self.path_b64 else self.path.encode()

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Entry:
        """Read a record back; keys that this version does not know are left out."""
        known = {name: record[name] for name in Entry.__slots__ if name in record}
        return Entry(**known)


@dataclass(frozen=True, slots=True)
class Manifest:
    """All entries of one tree, sorted by path bytes."""

    entries: tuple[Entry, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the document ``{root, entries}``."""
        return {"root": ".", "entries": [entry.as_json() for entry in self.entries]}

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> Manifest:
        """Read a document written by :meth:`as_json` or by evalctl."""
        return Manifest(tuple(Entry.from_json(record) for record in document["entries"]))

    @property
    def total_bytes(self) -> int:
        """Return the sum of all file sizes."""
        return sum(entry.size or 0 for entry in self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One path that differs between two trees. Modes never make a change.

    ``kind`` is that of what is there now, or was there when it is gone; ``kind_before`` that of what was there.
    """

    path: str
    status: Literal["added", "deleted", "modified"]
    kind: Kind
    sha256_before: str | None
    sha256_after: str | None
    kind_before: Kind | None = None
    path_b64: str | None = None

    @property
    def raw_path(self) -> bytes:
        """Return the exact bytes of the path."""
        return base64.b64decode(self.path_b64) if self.path_b64 else self.path.encode()

    def as_json(self) -> dict[str, Any]:
        """Return the record of ``workspace-diff.json``."""
        return {name: getattr(self, name) for name in ("path", "status", "kind", "sha256_before", "sha256_after")}


def changes_between(before: Manifest, after: Manifest) -> tuple[Change, ...]:
    """Return what differs in content or kind, sorted by path; what is the same object in both is not looked at."""
    if before is after:
        return ()
    same = {*map(id, before.entries)}.intersection(map(id, after.entries))
    old, new = ({entry.raw_path: entry for entry in manifest.entries if id(entry) not in same} for manifest in (before, after))
    found = (_change(old.get(path), new.get(path)) for path in sorted(old.keys() | new.keys()))
    return tuple(change for change in found if change is not None)


def _change(old: Entry | None, new: Entry | None) -> Change | None:
    if old and new and (old.kind, old.sha256) == (new.kind, new.sha256):
        return None
    present = new or old
    assert present is not None
    return Change(
        path=present.path,
        status="added" if old is None else "deleted" if new is None else "modified",
        kind=present.kind,
        sha256_before=old.sha256 if old else None,
        sha256_after=new.sha256 if new else None,
        kind_before=old.kind if old else None,
        path_b64=present.path_b64,
    )


def paths_of(changes: Sequence[Change]) -> list[str]:
    """Return the paths alone."""
    return [change.path for change in changes]
