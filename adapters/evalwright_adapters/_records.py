"""Reads a data set that is one JSON object a line, and checks every line against a model."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from evalwright.errors import SourceMissing, UsageError

__all__ = ["find_file", "read_records"]

M = TypeVar("M", bound=BaseModel)

_LIMIT_BYTES = 64 * 1024 * 1024


def find_file(source: Path, *names: str) -> Path:
    """Return ``source`` if it is a file, else the first of ``names`` that lies in it."""
    for path in (source, *(source / name for name in names)):
        if path.is_file():
            return path
    raise SourceMissing(f"nothing to import at {source}", hint=f"Name a file, or a directory that holds {names[0]}.")


def read_records(path: Path, model: type[M]) -> list[M]:
    """Return the validated records of a ``.jsonl`` or ``.jsonl.gz`` file; raise ``UsageError`` with the wrong line."""
    lines = enumerate(_read(path).split(b"\n"), start=1)
    return [_record(path, number, line, model) for number, line in lines if line.strip()]


def _record(path: Path, number: int, line: bytes, model: type[M]) -> M:
    try:
        return model.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"{path.name}, line {number}: {where + ': ' if where else ''}{first['msg']}"
        hint = f"Give an unchanged {path.name}, or mend this line."
        raise UsageError(message, hint=hint, file=str(path), line=number) from None


def _read(path: Path) -> bytes:
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(_LIMIT_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise UsageError(f"cannot read {path}: {error}", hint="Give a readable file.", file=str(path)) from error
    if len(content) > _LIMIT_BYTES:
        message = f"{path} holds more than {_LIMIT_BYTES >> 20} MiB"
        raise UsageError(message, hint="Is it the right file?", file=str(path))
    return content
