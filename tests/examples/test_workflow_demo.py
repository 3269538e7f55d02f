"""`make demo-workflow`: four agents and somebody who says yes, through a pipe."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import clean_environment

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.acceptance
def test_demo_ends_with_a_reviewed_commit_on_a_branch_of_its_own(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

    done = subprocess.run(
        ["sh", str(tmp_path / "examples" / "demo-workflow.sh")],
        env=clean_environment() | {"PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "bucketsort-1 · bucketsort · SUCCEEDED" in done.stdout
    assert "does not say that it sorts only whole numbers" in done.stdout
    project = tmp_path / "demo" / "workflow" / "project"
    log = ["git", "log", "--format=%s", "run/bucketsort-1"]
    messages = subprocess.run(log, cwd=project, capture_output=True, text=True, check=True).stdout.splitlines()
    assert messages == ["Say what bucketsort sorts", "Repair bucketsort, with patience", "A program with a defect"]
