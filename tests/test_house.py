"""The house rules that a reader relies on: short files, short functions, every public name documented."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("core", "plugins", "adapters", "scorers")
SOURCES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def test_the_house_has_sources() -> None:
    assert len(SOURCES) > 100


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_file_is_short_and_every_public_name_is_documented(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)

    assert text.count("\n") <= 400
    assert [where for where, node in functions(tree) if node.end_lineno and node.end_lineno - node.lineno >= 45] == []
    assert ast.get_docstring(tree), "the module's docstring says what it is for"
    assert list(undocumented(tree)) == []


def functions(tree: ast.Module) -> Iterator[tuple[str, Definition]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield f"{node.name}:{node.lineno}", node


def undocumented(node: ast.Module | ast.ClassDef) -> Iterator[str]:
    """Yield the public definitions of a module or a public class that have no docstring."""
    for child in node.body:
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and not child.name.startswith("_"):
            if not ast.get_docstring(child):
                yield f"{child.name}:{child.lineno}"
            if isinstance(child, ast.ClassDef):
                yield from undocumented(child)
