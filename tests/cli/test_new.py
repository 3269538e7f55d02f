"""``evalwright new``: every skeleton passes the contract of its kind as it is written."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import shortened

KINDS = ["scorer", "sandbox", "runner", "judge", "queue", "importer", "exporter", "service", "transcript"]


@pytest.mark.parametrize("kind", shortened(KINDS, ["scorer", "sandbox", "queue"]))
def test_skeleton_passes_its_own_contract_test(kind: str, project: Any) -> None:
    answer = project.call("new", kind, "acme-thing", "--json")
    assert answer.exit_code == 0, answer.stderr
    package = project.path / "acme-thing"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"],
        cwd=package,
        env={**os.environ, "PYTHONPATH": str(package / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout.decode()[-3000:]
    assert b" passed" in done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_entry_point_of_the_skeleton_names_its_class(kind: str, project: Any) -> None:
    assert project.call("new", kind, "acme-thing").exit_code == 0
    package = project.path / "acme-thing"
    ((group, points),) = tomllib.loads((package / "pyproject.toml").read_text())["project"]["entry-points"].items()
    module, _, cls = points["acme-thing"].partition(":")
    assert group == ("evalwright.sandboxes" if kind == "sandbox" else f"evalwright.{kind}s")
    assert f"class {cls}(" in (package / "src" / module / "__init__.py").read_text()


def test_answer_lists_what_was_written(project: Any) -> None:
    data = project.call("new", "scorer", "acme", "--out", "deep/place", "--json").data
    assert (data["kind"], data["name"], data["directory"]) == ("scorer", "acme", "deep/place")
    written = [path for path in (project.path / "deep" / "place").rglob("*") if path.is_file()]
    assert data["files"] == sorted(path.relative_to(project.path / "deep" / "place").as_posix() for path in written)


def test_existing_directory_is_refused_and_left_alone(project: Any) -> None:
    (project.path / "acme").mkdir()
    (project.path / "acme" / "mine").write_text("mine")
    answer = project.call("new", "scorer", "acme", "--json")
    assert (answer.exit_code, answer.error_codes) == (5, ["E_RUN_CONFLICT"])
    assert [path.name for path in project.path.iterdir()] == ["acme"]
    assert [path.name for path in (project.path / "acme").iterdir()] == ["mine"]


def test_unknown_kind_is_refused_with_the_nearest_one(project: Any) -> None:
    answer = project.call("new", "scorrer", "acme", "--json")
    assert answer.exit_code == 1
    (error,) = answer.envelope["errors"]
    assert error["did_you_mean"] == "scorer"
    assert sorted(error["valid_values"]) == sorted(KINDS)


@pytest.mark.parametrize("name", ["", "../x", "Acme", "1st", "a/b", "a--b", "-a", "a b", "class", "x" * 200, "evalwright"])
def test_bad_name_is_refused_and_nothing_is_written(name: str, project: Any) -> None:
    answer = project.call("new", "scorer", "--json", "--", name)
    assert answer.exit_code == 1
    assert list(Path(project.path).iterdir()) == []
