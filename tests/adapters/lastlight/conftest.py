"""Imports what lies in ``tests/data/lastlight`` into a project of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalwright.coordinate import write_import
from evalwright.interfaces import Imported
from evalwright.rundir import Layout
from evalwright.testing import FakeHost
from evalwright_adapters.lastlight import LastlightImporter
from evalwright_adapters.lastlight.config import LastlightConfig

DATA = Path(__file__).parents[2] / "data" / "lastlight"
CODE_FIX = DATA / "results" / "code-fix" / "2026-06-30_075413-6c791c8"
PR_REVIEW = DATA / "results" / "pr-review" / "2026-07-05_095214-f2cc826"
TRIAGE = DATA / "results" / "triage" / "2026-06-29_160025-74bc10e"

Describe = Callable[..., list[Imported]]
Import = Callable[..., dict[str, Any]]


@pytest.fixture
def describe() -> Describe:
    """Return what lists all that the importer says of a source."""

    def items(source: Path | None, **options: Any) -> list[Imported]:
        with FakeHost() as host:
            return list(LastlightImporter(LastlightConfig(**options), host).read(source))

    return items


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return the directories of an empty project."""
    return Layout(tmp_path / "evals", tmp_path / "evals" / "runs")


@pytest.fixture
def bring(describe: Describe, layout: Layout) -> Import:
    """Return what imports a source and gives the answer."""

    def write(source: Path, out: str | None = None, **options: Any) -> dict[str, Any]:
        items = iter(describe(source, **options))
        return write_import(items, out=out, layout=layout, provenance={"tool": "test", "plugins": []})

    return write


@pytest.fixture
def tier(tmp_path: Path) -> Callable[[str], Path]:
    """Return what writes a tier's files out and gives the directory."""

    def unpack(name: str) -> Path:
        directory = tmp_path / "tiers" / name
        for path, text in json.loads((DATA / "tiers" / f"{name}.json").read_text())["files"].items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(text)
        return directory

    return unpack
