"""A finished run of two passes and one failure, made once per worker and copied for each test that damages it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalwright.coordinate import RunRequest, Stop, run_suite
from evalwright.hooks import Observers
from evalwright.rundir import Layout, RunDirectory
from evalwright.settings import Settings
from evalwright.suite import add_cases, add_suite, load_suite
from evalwright.suite.author import add_scorer

JUDGE = 'printf \'{"ok": true, "score": 1, "findings": []}\''
LINES = (
    '{"id": "a", "task": "ok", "workspace": "fixtures/w", "expect": {"exact": "ok"}}',
    '{"id": "b", "task": "ok", "workspace": "fixtures/w", "expect": {"exact": "ok"}}',
    '{"id": "c", "task": "no", "workspace": "fixtures/w", "expect": {"exact": "ok"}}',
)


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the project of the run ``r``; nobody changes it."""
    root = tmp_path_factory.mktemp("finished")
    layout = Layout(root / "evals", root / "evals" / "runs")
    runner = {"shell": True, "command": 'printf %s "$(cat "$EVALWRIGHT_TASK_FILE")"', "env_allowlist": ["PATH"]}
    add_suite(layout.suites, "demo", runner, native=True)
    directory = layout.suites / "demo"
    (directory / "fixtures" / "w").mkdir()
    (directory / "fixtures" / "w" / "a.txt").write_text("a\n")
    add_scorer(directory, {"name": "exact"})
    add_scorer(directory, {"name": "command", "id": "judge", "shell": True, "command": JUDGE, "required": False})
    assert add_cases(directory, iter(enumerate(LINES, 1)))["counts"]["added"] == 3
    request = RunRequest(
        checked=load_suite(directory), layout=layout, settings=Settings(evals=layout.evals, jobs=1), run_id="r"
    )
    run_suite(request, stop=Stop(), observers=lambda complain: Observers([], complain), warn=_ignore)
    return root


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> RunDirectory:
    """Return a private copy of the run directory."""
    place = tmp_path / "r"
    shutil.copytree(finished / "evals" / "runs" / "r", place, symlinks=True)
    return RunDirectory(place)


def _ignore(code: str, message: str) -> None:
    """Take a warning and do nothing."""
