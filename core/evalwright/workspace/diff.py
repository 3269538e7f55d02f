"""The real unified text diff of a trial's changes, in the form that ``patch`` and ``git apply`` read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence

from evalwright.model import Change

__all__ = ["unified_diff"]

MAX_FILE_BYTES = 4 << 20
MAX_LINE_PRODUCT = 25_000_000
HEADERS = {"added": "new file mode 100644\n", "deleted": "deleted file mode 100644\n"}
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
NO_NEWLINE = "\\ No newline at end of file\n"

Reader = Callable[[str], bytes | None]


def unified_diff(changes: Iterable[Change], before: Reader, after: Reader) -> bytes:
    """Return the diff of all changed files; binary and very large ones are named only.

    ``before`` and ``after`` return a file's bytes by its path as the file system has it (``os.fsdecode``), or ``None`` for
    what is no regular file or too large. What was deleted comes first, so that a file can take a directory's place.
    """
    files = [status for change in changes if (status := _file_status(change))]
    files.sort(key=lambda pair: pair[1] != "deleted")
    parts = [_file_diff(os.fsdecode(change.raw_path), status, before, after) for change, status in files]
    return "".join(parts).encode("utf-8", "surrogateescape")


def _file_status(change: Change) -> tuple[Change, str] | None:
    """Return what happened to the file of that name: one that became a directory was deleted, and the reverse."""
    if change.status != "modified":
        return (change, change.status) if change.kind != "directory" else None
    if change.kind == "directory":
        return change, "deleted"
    return change, "added" if change.kind_before == "directory" else "modified"


def _file_diff(path: str, status: str, before: Reader, after: Reader) -> str:
    old = b"" if status == "added" else before(path)
    new = b"" if status == "deleted" else after(path)
    source = "/dev/null" if status == "added" else _name(f"a/{path}")
    target = "/dev/null" if status == "deleted" else _name(f"b/{path}")
    header = f"diff --git {_name(f'a/{path}')} {_name(f'b/{path}')}\n{HEADERS.get(status, '')}"
    if old is None or new is None or _binary(old) or _binary(new):
        return f"{header}Binary files {source} and {target} differ\n"
    hunks = "".join(_hunks(_lines(old), _lines(new)))
    return f"{header}--- {source}\n+++ {target}\n{hunks}" if hunks else header


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    if len(old) * len(new) > MAX_LINE_PRODUCT:
        yield from _replacement(old, new)
        return
    import difflib

    lines = difflib.unified_diff(old, new)
    for number, line in enumerate(lines):
        if number >= 2:
            yield line if line.endswith("\n") else f"{line}\n{NO_NEWLINE}"


def _replacement(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Replace everything: exact, and linear where the best diff would take too long."""
    yield f"@@ -{1 if old else 0},{len(old)} +{1 if new else 0},{len(new)} @@\n"
    for sign, lines in (("-", old), ("+", new)):
        for line in lines:
            yield f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n{NO_NEWLINE}"


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8", "surrogateescape")
    lines = [line + "\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _binary(data: bytes) -> bool:
    return b"\0" in data[:8192] or len(data) > MAX_FILE_BYTES


def _name(path: str) -> str:
    """Quote a path the way git does where it holds a quote, a backslash or a control character."""
    if not any(character in '"\\' or character < " " for character in path):
        return path
    quoted = "".join(ESCAPES.get(c, c if c >= " " else f"\\{ord(c):03o}") for c in path)
    return f'"{quoted}"'
