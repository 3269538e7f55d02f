"""Packages whose names are imported when they are asked for: what a type checker reads of them is what runs."""

from __future__ import annotations

import ast
import importlib
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest

import evalwright
from evalwright.lazy import lazy

ROOT = Path(evalwright.__file__).parent
PACKAGES = sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if "lazy(" in path.read_text(encoding="utf-8"))


def test_there_are_lazy_packages() -> None:
    assert {"coordinate", "interfaces", "model", "report", "rundir", "workspace"} <= set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_names_for_type_checkers_are_those_that_are_found(package: str) -> None:
    """The two tables of a package agree with each other and with ``__all__``."""
    tree = ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    read = {alias.name: node.module for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    table = next(node for node in ast.walk(checked.orelse[0]) if isinstance(node, ast.Dict))
    homes: dict[str, str] = ast.literal_eval(table)
    run = {name: resolve_name(home, f"evalwright.{package}") for home, names in homes.items() for name in names.split()}
    assert run == read
    assert sorted(run) == sorted(importlib.import_module(f"evalwright.{package}").__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_found_and_hides_no_module(package: str) -> None:
    module = importlib.import_module(f"evalwright.{package}")
    modules = {path.stem for path in (ROOT / package).iterdir()}
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name not in modules, f"importing evalwright.{package}.{name} would hide it"


def test_unknown_name_is_refused_as_by_any_module() -> None:
    with pytest.raises(ImportError, match="nosuch"):
        exec("from evalwright.model import nosuch")
    with pytest.raises(AttributeError, match=r"module 'evalwright\.model' has no attribute 'nosuch'"):
        _ = importlib.import_module("evalwright.model").nosuch


def test_name_is_imported_when_it_is_first_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "late"
    package.mkdir()
    text = "from evalwright.lazy import lazy\n__getattr__ = lazy(__name__, {'.one': 'first', '.two': 'second'})\n"
    (package / "__init__.py").write_text(text)
    (package / "one.py").write_text("first = object()\n")
    (package / "two.py").write_text("raise RuntimeError\n")
    monkeypatch.syspath_prepend(tmp_path)

    late = importlib.import_module("late")
    assert "late.one" not in sys.modules
    assert late.first is sys.modules["late.one"].first
    assert vars(late)["first"] is late.first
    assert "late.two" not in sys.modules


def test_package_is_named_where_a_name_is_missing() -> None:
    with pytest.raises(AttributeError, match=r"module 'somewhere' has no attribute 'there'"):
        lazy("somewhere", {})("there")
