"""The command line called in the test's own process, for what needs no process of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.cli import main

if TYPE_CHECKING:
    from tests.conftest import Project

Call = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def here(project: Project, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Return what calls the command line in the project's directory and gives exit status and envelope."""
    monkeypatch.chdir(project.path)

    def call(*words: str) -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main([*words, "--json"])
        document: dict[str, Any] = json.loads(capsys.readouterr().out)
        return code, document

    return call


@pytest.fixture
def ran(project: Project) -> Project:
    """Return a project with the finished run ``r`` of the suite ``demo``: two passes, one failure."""
    runner = {"shell": True, "command": 'printf %s "$(cat "$EVALWRIGHT_TASK_FILE")"'}
    cases = [{"id": name, "task": task, "expect": {"exact": "ok"}} for name, task in (("a", "ok"), ("b", "ok"), ("c", "no"))]
    project.suite(cases=cases, runner=runner, scorers=[{"use": "exact"}])
    assert project.call("run", "demo", "--run-id", "r").exit_code == 0
    return project
