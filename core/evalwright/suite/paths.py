"""Paths in a suite: relative, POSIX, inside the suite's directory, and never gold inside what the runner sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

__all__ = ["overlaps", "path_objection"]

MAX_PATH = 1024


def path_objection(directory: Path, raw: str, kind: str) -> str | None:
    """Return what is wrong with a path of the suite, or ``None``. ``kind`` is ``file``, ``directory`` or ``any``."""
    pure = PurePosixPath(raw)
    if len(raw) > MAX_PATH:
        return f"{raw[:40]!r}... is longer than {MAX_PATH} characters"
    if not raw or "\\" in raw or "\0" in raw or pure.is_absolute() or ".." in pure.parts or pure == PurePosixPath("."):
        return f"{raw!r} must be a relative path with forward slashes that stays inside the suite"
    place = directory / pure
    if not place.exists():
        return f"{raw} does not exist"
    if not place.resolve().is_relative_to(directory.resolve()):
        return f"{raw} leads out of the suite through a link"
    if kind == "directory" and not place.is_dir():
        return f"{raw} is not a directory"
    if kind == "file" and not place.is_file():
        return f"{raw} is not a file"
    return None


def overlaps(directory: Path, seen: Iterable[str], secret: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return ``(name, secret path, seen path)`` for each secret that lies inside a place the runner sees, or around it.

    Places are compared where their links lead.
    """
    open_places = {path: place for path in sorted(set(seen)) if (place := _resolved(directory, path))}
    found: list[tuple[str, str, str]] = []
    for path, name in secret.items():
        hidden = _resolved(directory, path)
        for shown, reached in open_places.items():
            if hidden and (hidden == reached or reached in hidden.parents or hidden in reached.parents):
                found.append((name, path, shown))
    return found


def _resolved(directory: Path, path: str) -> Path | None:
    """Return where a path leads, or ``None`` for one that no file can have; that is objected to elsewhere."""
    try:
        return (directory / path).resolve()
    except (ValueError, OSError):
        return None
