"""JSON documents and text files: read with a clear error, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from evalwright.canonical import is_object
from evalwright.errors import DiskFull, RunCorrupt

__all__ = [
    "disk_errors",
    "not_json",
    "read_document",
    "read_object",
    "render",
    "render_compact",
    "render_rows",
    "unreadable",
    "write_document",
    "write_pieces",
    "write_text",
]

_INDENTED = json.JSONEncoder(indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False)
_COMPACT = json.JSONEncoder(sort_keys=True, ensure_ascii=False, allow_nan=False).encode
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG}


def render(value: Any) -> str:
    """Return a document as it lies on disk: sorted keys, two spaces, a final newline."""
    return _INDENTED.encode(value) + "\n"


def render_rows(document: Mapping[str, Any], key: str) -> Iterator[str]:
    """Yield the pieces of a document as :func:`render` has it, but each item of the long list ``key`` on one line.

    That may be any iterable: only one item of it is held at a time.
    """
    head, tail = render({**document, key: []}).split(f'\n  "{key}": []', 1)
    yield f'{head}\n  "{key}": [\n    '
    glue = ""
    for item in document[key]:
        yield glue + _COMPACT(item)
        glue = ",\n    "
    yield f"\n  ]{tail}"


def render_compact(value: Any) -> str:
    """Return a document on one line, for the many small ones of a trial: the encoder that indents is ten times slower."""
    return _COMPACT(value) + "\n"


def read_document(path: Path) -> Any:
    """Return a JSON document. Raises ``RunCorrupt`` naming the file when it is absent, unreadable or not JSON."""
    try:
        with open(path, "rb", buffering=0) as file:
            return json.loads(file.read())
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise not_json(path, error) from error


def unreadable(path: Path, error: OSError) -> RunCorrupt:
    """Return the error for a file that cannot be read."""
    hint = "restore the file, or run the suite again"
    return RunCorrupt(f"{path}: {error.strerror or error}", hint=hint, file=str(path))


def not_json(path: Path, why: object) -> RunCorrupt:
    """Return the error for a file that holds something else."""
    return RunCorrupt(f"{path} is not valid JSON: {why}", hint="restore the file", file=str(path))


def read_object(path: Path) -> dict[str, Any]:
    """Return a JSON object. Raises ``RunCorrupt`` as :func:`read_document` does, and for any other value."""
    value = read_document(path)
    if not is_object(value):
        raise RunCorrupt(f"{path} must hold a JSON object", hint="restore the file", file=str(path))
    return value


def write_document(path: Path, value: Any) -> None:
    """Write a JSON document whole or not at all; its text is never in memory as a whole."""
    write_pieces(path, itertools.chain(_INDENTED.iterencode(value), "\n"))


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 file whole or not at all, newlines as they are. Raises ``DiskFull`` when there is no room."""
    write_pieces(path, (text,))


def write_pieces(path: Path, pieces: Iterable[str]) -> None:
    """Write a UTF-8 file that is given in pieces, as :func:`write_text` does."""
    import tempfile

    with disk_errors(path):
        descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                file.writelines(pieces)
            os.chmod(aside, 0o644)
            os.replace(aside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            raise


class disk_errors:
    """Turn a full, broken or read-only disk into ``DiskFull`` while the block runs."""

    __slots__ = ("_path",)

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Raise ``DiskFull`` for an error that says so."""
        if not isinstance(error, OSError) or error.errno not in FULL:
            return
        cure = "make it writable" if error.errno == errno.EROFS else "free space"
        raise DiskFull(
            f"cannot write {self._path}: {error.strerror}", hint=f"{cure}; what was written is kept, and the run can be resumed"
        ) from error
