"""Collect everything that is wrong with a suite, each with file and line, and raise it at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from evalwright.errors import SuiteError

__all__ = ["Problems", "line_of"]


class Problems:
    """The problems of one suite."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []

    def add(self, file: Path, message: str, *, code: str, hint: str = "", line: int | None = None, **details: Any) -> None:
        """Note one problem."""
        place = f"{file}:{line}" if line else str(file)
        record: dict[str, Any] = {
            "code": code,
            "message": f"{place}: {message}",
            "hint": hint or f"edit {place}",
            "file": str(file),
        }
        record |= {"line": line} if line else {}
        self.records.append(record | {key: value for key, value in details.items() if value is not None})

    def extend(self, file: Path, records: Iterable[Mapping[str, Any]], *, code: str, line: int | None = None) -> None:
        """Note problems that a validator returned as ``{message, hint, ...}``."""
        for record in records:
            rest = {key: value for key, value in record.items() if key not in {"message", "hint", "file", "line"}}
            self.add(file, record["message"], hint=record["hint"], line=line, **({"code": code} | rest))

    def raise_all(self) -> None:
        """Raise ``SuiteError`` with every problem, or do nothing when there is none."""
        if self.records:
            self.fail()

    def fail(self) -> NoReturn:
        """Raise ``SuiteError`` with every problem."""
        files = len({record["file"] for record in self.records})
        count = len(self.records)
        summary = f"{count} problem{'s' if count > 1 else ''} in {files} file{'s' if files > 1 else ''}. Nothing was run."
        raise SuiteError(summary, problems=self.records)


def line_of(text: str, key: str) -> int | None:
    """Return the line in which a dotted key stands in a JSON or TOML document, as far as its own text tells."""
    at = 0
    found = False
    for part in key.split("."):
        if part.isdigit():
            continue
        match = re.compile(rf'"{re.escape(part)}"\s*:|^\s*\[*{re.escape(part)}\s*[=\].]', re.MULTILINE).search(text, at)
        if match is None:
            break
        found = True
        at = match.start() + (len(match[0]) - len(match[0].lstrip()))
    return text.count("\n", 0, at) + 1 if found else None
