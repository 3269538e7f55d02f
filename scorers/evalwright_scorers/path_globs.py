"""Path patterns whose ``*`` stops at a slash."""

from __future__ import annotations

from fnmatch import fnmatch, fnmatchcase
from typing import Literal

__all__ = ["Globs", "matches", "normalized"]

Globs = Literal["segments", "fnmatch"]


def matches(pattern: str, path: str, globs: Globs = "segments") -> bool:
    """Tell whether a path of a tree fits a pattern.

    ``segments``: ``*``, ``?`` and ``[...]`` stop at ``/``; a part ``**`` stands for any number of parts (at the end: at
    least one), and ``a/b/`` for everything below ``a/b``. ``fnmatch``: Python's function, whose ``*`` crosses slashes.
    """
    if globs == "fnmatch":
        return fnmatch(path, pattern)
    return _segments_match(normalized(pattern), path)


def normalized(pattern: str) -> str:
    """Return the pattern without ``.`` parts and doubled slashes; a slash at the end stays."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    return "/".join(parts) + ("/" if parts and pattern.endswith("/") else "")


def _segments_match(pattern: str, path: str) -> bool:
    parts = path.split("/")
    pieces = (pattern + "**" if pattern.endswith("/") else pattern).split("/")
    reached: set[int] = {0}
    for index, piece in enumerate(pieces):
        if piece == "**":
            least = min(reached, default=len(parts) + 1) + (index == len(pieces) - 1)
            reached = set(range(least, len(parts) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(parts) and fnmatchcase(parts[at], piece)}
    return len(parts) in reached
