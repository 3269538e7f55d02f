"""Write the suite that an importer describes: aside, checked, then renamed into place."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evalwright.canonical import stable_json
from evalwright.errors import PluginInvalid, RunConflict
from evalwright.interfaces import Imported, ImportedCase, ImportedFile, ImportedSuite
from evalwright.registry import Registry
from evalwright.suite.author import render
from evalwright.suite.load import load_suite
from evalwright.workspace import remove_tree

__all__ = ["write_imported"]


def write_imported(items: Iterable[Imported], out: Path | None, suites: Path) -> dict[str, Any]:
    """Write a suite and return ``{out, suite, case_count, unsupported[]}``; without ``out`` it goes below ``suites``.

    Raises ``RunConflict`` when the directory exists, ``PluginInvalid`` for a description that is no suite, and whatever the
    importer raises; then nothing is left behind.
    """
    parent = out.parent if out else suites
    if out is not None and out.exists():
        raise RunConflict(f"{out} exists already", hint="choose another --out")
    parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(dir=parent, prefix=".import-"))
    try:
        document, count, unsupported = _write(items, aside)
        load_suite(aside, Registry(aside))
        target = out or suites / str(document["name"])
        if target.exists():
            raise RunConflict(f"{target} exists already", hint="choose another place with --out")
        aside.chmod(0o755)
        os.rename(aside, target)
    finally:
        if aside.exists():
            remove_tree(aside, inside=parent)
    return {"out": str(target), "suite": document["name"], "case_count": count, "unsupported": unsupported}


def _write(items: Iterable[Imported], directory: Path) -> tuple[dict[str, Any], int, list[dict[str, str]]]:
    document: dict[str, Any] | None = None
    lines: list[str] = []
    unsupported: list[dict[str, str]] = []
    for item in items:
        if isinstance(item, ImportedSuite):
            document = dict(item.document)
        elif isinstance(item, ImportedCase):
            lines.append(stable_json(dict(item.record)) + "\n")
        elif isinstance(item, ImportedFile):
            _write_file(item, directory)
        else:
            unsupported.append({"what": item.what, "why": item.why})
    if document is None:
        raise PluginInvalid("the importer described no suite", hint="it must yield an ImportedSuite")
    (directory / "suite.json").write_text(render(document), encoding="utf-8", newline="")
    (directory / str(document.get("cases", "cases.jsonl"))).write_text("".join(lines), encoding="utf-8", newline="")
    return document, len(lines), unsupported


def _write_file(item: ImportedFile, directory: Path) -> None:
    path = item.path
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise PluginInvalid(f"the importer gave the unsafe path {path}", hint="paths lie inside the suite")
    place = directory / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(item.content)
    place.chmod(item.mode)
