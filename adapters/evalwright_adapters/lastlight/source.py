"""What lies at a source: a tier of cases, the results of runs, or a leaderboard."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from evalwright.errors import SourceMissing, UsageError

__all__ = ["LEADERBOARD", "LeaderboardFile", "Results", "Source", "TierFiles", "find_source", "read_bytes", "validated"]

M = TypeVar("M")
LEADERBOARD = "martian-leaderboard.json"
LIMIT_BYTES = 64 * 1024 * 1024
HINT = (
    "Give a tier (a directory with instances.json, or its one-file JSON form), a results directory with scorecard.json, "
    f"a directory of such directories, or a {LEADERBOARD}."
)


@dataclass(frozen=True, slots=True)
class TierFiles:
    """The files of a tier by their path in it; ``place`` is where it lies."""

    place: Path
    files: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Results:
    """The scorecards of one or more runs, oldest first."""

    place: Path
    scorecards: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class LeaderboardFile:
    """A file of other tools' scores."""

    path: Path


Source = TierFiles | Results | LeaderboardFile


def find_source(source: Path | None) -> Source:
    """Return what lies at ``source``. Raises ``SourceMissing`` when it is nothing of this format."""
    if source is None:
        raise SourceMissing("lastlight has no installed data set", hint=HINT)
    if source.is_dir():
        return _directory(source)
    if source.is_file():
        return _file(source)
    raise SourceMissing(f"nothing to import at {source}", hint=HINT)


def read_bytes(path: Path) -> bytes:
    """Return a file's content. Raises ``UsageError`` when it cannot be read or is larger than 64 MiB."""
    try:
        with path.open("rb") as file:
            content = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}", hint="Give a readable file.", file=str(path)) from error
    if len(content) > LIMIT_BYTES:
        raise UsageError(f"{path} holds more than {LIMIT_BYTES >> 20} MiB", hint="Is it the right file?", file=str(path))
    return content


def validated(model: type[M], content: bytes, path: Path | str) -> M:
    """Return the JSON of a file as ``model``. Raises ``UsageError`` that names the file and the first wrong key."""
    try:
        return TypeAdapter(model).validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"{path}: {where + ': ' if where else ''}{first['msg']}"
        raise UsageError(message, hint="Give the file unchanged, or mend this place.", file=str(path)) from None


class _TierFile(BaseModel):
    tier: str
    files: dict[str, str]


def _directory(directory: Path) -> Source:
    if (directory / "instances.json").is_file() or (directory / "tier.json").is_file():
        files = {path.relative_to(directory).as_posix(): read_bytes(path) for path in _walk(directory)}
        return TierFiles(directory, files)
    if (directory / "scorecard.json").is_file():
        return Results(directory, (directory / "scorecard.json",))
    cards = sorted(path / "scorecard.json" for path in directory.iterdir() if (path / "scorecard.json").is_file())
    if cards:
        return Results(directory, tuple(cards))
    if (directory / LEADERBOARD).is_file():
        return LeaderboardFile(directory / LEADERBOARD)
    near = sorted(path.name for path in directory.iterdir() if _is_near(path))[:10]
    hint = f"Name one of {', '.join(near)} in it." if near else HINT
    raise SourceMissing(f"{directory} holds neither a tier nor results", hint=hint)


def _is_near(path: Path) -> bool:
    """Tell whether something below a directory looks like a source."""
    patterns = ("instances.json", "scorecard.json", "*/scorecard.json")
    return path.suffix == ".json" or (path.is_dir() and any(True for pattern in patterns for _ in path.glob(pattern)))


def _walk(directory: Path) -> Iterator[Path]:
    """Yield the regular files of a tree by name; links lead out of it and are left."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield path


def _file(path: Path) -> Source:
    content = read_bytes(path)
    keys = set(validated(dict[str, Any], content, path))
    if {"tier", "files"} <= keys:
        tier = validated(_TierFile, content, path)
        return TierFiles(path, {"tier.json": json.dumps({"name": tier.tier}).encode()} | _encoded(tier.files, path))
    if {"results", "meta"} <= keys:
        return Results(path.parent, (path,))
    if {"instances", "source"} <= keys:
        return LeaderboardFile(path)
    raise UsageError(f"{path} is neither a tier, a scorecard nor a leaderboard", hint=HINT, file=str(path))


def _encoded(files: Mapping[str, str], place: Path) -> dict[str, bytes]:
    unsafe = [path for path in files if path.startswith("/") or ".." in path.split("/")]
    if unsafe:
        raise UsageError(f"{place}: the path {unsafe[0]} leads out of the tier", hint=HINT, file=str(place))
    return {path: text.encode("utf-8", "replace") for path, text in files.items()}
