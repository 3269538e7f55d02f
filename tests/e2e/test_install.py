"""What a newcomer gets: an installation that is small, and a demonstration that ends with a report."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.conftest import clean_environment

ROOT = Path(__file__).parent.parent.parent
MAX_ADDED_BYTES = 40_000_000


def size_of(directory: Path) -> int:
    """Return the bytes of all files but compiled ones."""
    return sum(path.lstat().st_size for path in directory.rglob("*") if path.is_file() and path.suffix != ".pyc")


@pytest.mark.acceptance
def test_installation_adds_less_than_forty_megabytes(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    before = size_of(venv)

    pip = [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", str(ROOT)]
    subprocess.run(pip, check=True)

    assert size_of(venv) - before < MAX_ADDED_BYTES
    done = subprocess.run([str(venv / "bin" / "evalwright"), "--version"], capture_output=True, check=True)
    assert done.stdout.strip()


@pytest.mark.acceptance
def test_demonstration_ends_with_an_answer_and_with_commands_that_can_be_typed_next(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    environment = clean_environment() | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    done = subprocess.run(
        ["sh", str(tmp_path / "examples" / "demo.sh")], env=environment, capture_output=True, timeout=600, check=False
    )

    assert done.returncode == 0, done.stderr.decode()
    shown, _, following = done.stdout.decode().partition("What next?")
    assert "28 cases, 2 repeats, 112 of 112 trials scored, 0 harness errors" in shown
    assert "large is better than small: +" in shown
    report = next(line.split()[:3] for line in following.splitlines() if "evalwright report" in line)
    told = subprocess.run([*report, "--json"], env=environment, cwd=tmp_path / "demo", capture_output=True, check=True)
    assert json.loads(told.stdout)["data"]["totals"]["attempted"] == 112
