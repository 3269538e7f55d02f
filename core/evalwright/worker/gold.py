"""The full cases of a gold tree: where each stands in the cases file, read when it is asked for."""

from __future__ import annotations

import json
from array import array
from typing import Any

from evalwright.canonical import digest_json
from evalwright.errors import StoreError
from evalwright.model import Manifest
from evalwright.store import DirectoryStore
from evalwright.suite.read import case_places

__all__ = ["GoldCases"]


class GoldCases:
    """The cases of the file ``name`` in a tree of a store. Thread-safe.

    A suite may have many thousands: of each line no more is held than where it starts.
    """

    def __init__(self, store: DirectoryStore, tree: Manifest, name: str) -> None:
        self._store = store
        self._digest = next(entry.sha256 for entry in tree.entries if entry.path == name) or ""
        self._starts = array("Q", [0])
        with store.verified(self._digest).open("rb") as file:
            for number, start, _ in case_places(file):
                self._starts.extend([start] * (number + 1 - len(self._starts)))

    def case(self, case_id: str, line: int) -> dict[str, Any]:
        """Return a case, with its id; ``line`` is where it should stand. Raises ``StoreError`` where there is no such case."""
        with self._store.verified(self._digest).open("rb") as file:
            if 0 < line < len(self._starts):
                file.seek(self._starts[line])
                record = _record(file.readline())
                if record["id"] == case_id:
                    return record
                file.seek(0)
            for record in (_record(text) for _, _, text in case_places(file)):
                if record["id"] == case_id:
                    return record
        raise StoreError(f"the cases in the content store lack {case_id}", hint="start the run again")


def _record(line: bytes) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(line)
    record["id"] = record.get("id") or digest_json(record)[7:19]
    return record
