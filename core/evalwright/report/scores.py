"""The sealed scores of a run: each file is read once, to be digested and parsed, and equal scores are parsed and held once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.canonical import digest_bytes, is_object

__all__ = ["SCORE", "SealedScores"]

SCORE = "score.json"
MAX_SHARED = 1000
READ_BYTES = 1 << 16


class SealedScores:
    """Reads scores, and holds those that many cases have in common once."""

    def __init__(self) -> None:
        self._read: dict[bytes, Mapping[str, Any]] = {}
        self._known: dict[str, Sequence[Mapping[str, Any]]] = {}

    def read(self, place: str, case_id: str, digest: str | None) -> Mapping[str, Any] | None:
        """Return what a case's ``score.json`` says; its ``case_id`` may be that of another case with the same scores.

        ``None`` when the file in ``place`` does not have this digest, and when it is too large or too odd to tell here.
        """
        content = _start_of(f"{place}/{SCORE}")
        if digest_bytes(content) != digest:
            return None
        own = content.removeprefix(b'{"case_id": "%b", ' % case_id.encode("utf-8", "replace"))
        found = self._read.get(own)
        if found is None:
            found = _object(content)
            if found and own != content and len(self._read) < MAX_SHARED and not _has_findings(found["scores"]):
                self._read[own] = found
        return found

    def shared(self, scores: Sequence[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Return equal scores; the same object each time if they have no findings and are no rarity."""
        if _has_findings(scores):
            return scores
        key = repr(scores)
        return self._known.setdefault(key, scores) if len(self._known) < MAX_SHARED else self._known.get(key, scores)


def _has_findings(scores: Sequence[Mapping[str, Any]]) -> bool:
    return any(score["findings"] for score in scores)


def _start_of(path: str) -> bytes:
    """Return a file's first bytes, nothing where it cannot be read: no digest but that of the whole file will do anyway."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            return os.read(descriptor, READ_BYTES)
        finally:
            os.close(descriptor)
    except OSError:
        return b""


def _object(content: bytes) -> Mapping[str, Any] | None:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return value if is_object(value) else None
