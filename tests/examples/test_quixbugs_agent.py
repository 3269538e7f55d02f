"""The repair agent of the QuixBugs example."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "quixbugs"
NAMES = sorted(path.name for path in (EXAMPLE / "fixtures").iterdir())
BUDGET = json.loads((EXAMPLE / "suite.json").read_text())["runner"]["argv"][-1]


def _run(argv: list[str], place: Path, variables: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.defpath, "LANG": "C.UTF-8", **variables}
    return subprocess.run(argv, cwd=place, env=environment, capture_output=True, text=True, timeout=60, check=False)


def _repair(name: str, place: Path, budget: str = BUDGET) -> str:
    """Run the agent on a copy of the fixture and return what it prints."""
    shutil.copytree(EXAMPLE / "fixtures" / name, place)
    run = _run(["python3", str(EXAMPLE / "agent.py"), "--budget", budget], place, {"EVALWRIGHT_WORKSPACE": str(place)})
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def _is_right(name: str, place: Path) -> bool:
    """Run the hidden tests over the agent's workspace."""
    shutil.copytree(EXAMPLE / "hidden" / name, place, dirs_exist_ok=True)
    report = place.parent / f"{name}.report"
    run = _run(["python3", "-I", "-S", "evalwright_check.py"], place, {"EVALWRIGHT_REPORT_FILE": str(report)})
    return run.returncode == 0 and "not ok" not in report.read_text()


@pytest.mark.parametrize("name", ["flatten", "gcd", "sieve"])
def test_agent_repairs_a_program_and_leaves_the_rest_of_its_text(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    said = _repair(name, place)
    before = (EXAMPLE / "fixtures" / name / f"{name}.py").read_text().splitlines()
    after = (place / f"{name}.py").read_text().splitlines()
    assert sum(old != new for old, new in zip(before, after, strict=True)) == 1
    assert said.count("\n") == 1
    assert "tries: " in said
    assert _is_right(name, place)


def test_agent_without_budget_leaves_the_program_as_it_is(tmp_path: Path) -> None:
    said = _repair("gcd", tmp_path / "gcd", budget="0")
    assert "changed nothing" in said
    assert "tries: 0" in said
    assert (tmp_path / "gcd" / "gcd.py").read_bytes() == (EXAMPLE / "fixtures" / "gcd" / "gcd.py").read_bytes()


def test_agent_survives_changes_that_never_end(tmp_path: Path) -> None:
    assert "n &= n - 1" in _repair("bitcount", tmp_path / "bitcount")


def test_agent_is_the_only_file_given_to_the_runner() -> None:
    runner = json.loads((EXAMPLE / "suite.json").read_text())["runner"]
    assert runner["files"] == ["agent.py"]
    assert runner["argv"][1] == "$EVALWRIGHT_AGENT/agent.py"


@pytest.mark.acceptance
def test_agent_repairs_most_programs_but_not_all(tmp_path: Path) -> None:
    for name in NAMES:
        _repair(name, tmp_path / name)
    right = [name for name in NAMES if _is_right(name, tmp_path / name)]
    assert len(NAMES) == 28
    assert 18 <= len(right) <= 24
