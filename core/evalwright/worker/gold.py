"""The full cases of a gold tree: where each stands in the cases file, read when it is asked for."""

from __future__ import annotations

import json
from typing import Any

from evalwright.canonical import digest_json
from evalwright.model import Manifest
from evalwright.store import DirectoryStore
from evalwright.suite.read import case_places

__all__ = ["GoldCases"]


class GoldCases:
    """The cases of the file ``name`` in a tree of a store. Thread-safe.

    Of each case an id and a place are held, since a suite may have many thousands.
    """

    def __init__(self, store: DirectoryStore, tree: Manifest, name: str) -> None:
        self._store = store
        self._digest = next(entry.sha256 for entry in tree.entries if entry.path == name) or ""
        data = store.verified(self._digest).read_bytes()
        self._places = {_record(data[start:end])["id"]: start for _, start, end in case_places(data)}

    def case(self, case_id: str) -> dict[str, Any]:
        """Return a case, with its id. Raises ``KeyError`` for one that is not there, ``StoreError`` for a changed file."""
        with self._store.verified(self._digest).open("rb") as file:
            file.seek(self._places[case_id])
            return _record(file.readline())


def _record(line: bytes) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(line)
    record["id"] = record.get("id") or digest_json(record)[7:19]
    return record
