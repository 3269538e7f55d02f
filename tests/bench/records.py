"""The last full measuring of each row, kept in the user's cache as JSON: what the page is made from."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tests.bench.lines import Row

__all__ = ["keep", "kept"]


def keep(path: Path, row: Row) -> None:
    """Put a row beside those that are kept already, in place of an older one of the same id."""
    newest = {one.id: one for one in (*kept(path), row)}
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".new")
    aside.write_text(json.dumps([one.as_json() for one in newest.values()], indent=1), encoding="utf-8")
    os.replace(aside, path)


def kept(path: Path) -> list[Row]:
    """Return the rows that are kept; none where there is no file. Raises ``ValueError`` for a file of another shape."""
    try:
        documents = json.loads(path.read_bytes())
    except FileNotFoundError:
        return []
    try:
        return [Row.from_json(document) for document in documents]
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path} holds no rows of the bench; remove it and measure again") from error
