"""A suite of evalctl's users gets the same verdicts and the same report hash, and each reads the other's run directory."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Project, clean_environment

EXACT = [{"name": "exact", "required": True}]
SAY = 'printf "%s" "{}" > "$EVALCTL_OUTPUT_FILE"'
JUDGE = 'grep -q fine "$EVALCTL_OUTPUT_FILE" && echo \'{"ok": true, "score": 0.5, "findings": ["good enough"]}\''
SUITES: Mapping[str, dict[str, Any]] = {
    "answers": {"line": SAY.format("yes"), "scorers": EXACT, "expect": [{"exact": "yes"}, {"exact": "yes "}, {"exact": ""}]},
    "builtins": {
        "line": "echo one; mkdir new; echo x > new/f; rm a.txt; exit 3",
        "scorers": [],
        "expect": [
            {"text_contains": ["one", "two"], "exit_code": 0},
            {"text_regex": ["^on", "[0-9]"], "files_exist": ["new/f", "a.txt"]},
            {"files_changed": ["new/*", "b*"], "files_forbidden": ["a.txt", "*"], "exit_code": 3},
            {"json_schema": {"type": "object"}},
        ],
    },
    "numbers": {
        "line": """printf '{"m": {"score": 0.5}}'""",
        "scorers": [{"name": "numeric-threshold"}],
        "expect": [
            {"numeric_threshold": {"path": "m.score", "gte": 0.5}},
            {"numeric_threshold": {"path": "m.score", "lte": 0.1}},
        ],
    },
    "faults": {
        "line": "kill -9 $$",
        "scorers": [{"name": "exit-code"}, {"name": "exact", "required": False}],
        "expect": [{"exit_code": -9, "exact": "x"}, {"exit_code": 0}],
    },
    "slow": {"line": "sleep 20", "timeout": 1, "scorers": [{"name": "exit-code"}], "expect": [{"exit_code": 0}]},
    "external": {
        "line": SAY.format("fine"),
        "scorers": [
            {"name": "command", "id": "judge", "argv": ["/bin/sh", "-c", JUDGE]},
            {"name": "command", "id": "crash", "argv": ["/bin/sh", "-c", "exit 7"], "required": False},
        ],
        "expect": [{}, {}],
    },
}


@pytest.fixture(scope="session")
def evalctl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install evalctl 0.3.0 into an environment of its own and return its program."""
    venv = tmp_path_factory.mktemp("peer") / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    pip = [str(venv / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", "evalctl==0.3.0"]
    subprocess.run(pip, check=True)
    return venv / "bin" / "evalctl"


def peer(program: Path, project: Project, *words: str) -> dict[str, Any]:
    """Call evalctl and return its data."""
    done = subprocess.run(
        [str(program), *words, "--json"], cwd=project.path, env=clean_environment(), capture_output=True, check=False
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert answer["ok"], answer
    return answer["data"]


@pytest.mark.parametrize("name", SUITES)
def test_both_tools_give_the_same_report_and_read_each_other(name: str, project: Project, evalctl: Path) -> None:
    spec = SUITES[name]
    runner = {"shell": True, "command": spec["line"], "argv": None, "env_allowlist": ["PATH"]}
    project.suite(
        name,
        native=False,
        runner=runner | {"timeout_seconds": spec.get("timeout", 20)},
        cases=[{"id": f"c{number}", "expect": expect} for number, expect in enumerate(spec["expect"])],
        scorers=spec["scorers"],
        acknowledged_unsandboxed_runner=True,
    )

    theirs = peer(evalctl, project, "run", name, "--run-id", "theirs")
    ours = project.call("run", name, "--run-id", "ours").data
    their_report = peer(evalctl, project, "report", "theirs", "--format", "json")
    our_report = project.call("report", "ours").data

    assert ours["report_hash"] == theirs["report_hash"]
    assert {key: our_report[key] for key in ("run", "failures", "cases")} == {
        key: their_report[key] for key in ("run", "failures", "cases")
    }
    assert peer(evalctl, project, "report", "ours", "--format", "json")["report_hash"] == ours["report_hash"]
    assert project.call("report", "theirs").data["report_hash"] == theirs["report_hash"]


def test_sample_suite_has_the_peer_s_report_hash(project: Project) -> None:
    project.call("init")

    report_hash = project.call("run", "code-review").data["report_hash"]

    assert report_hash.startswith("sha256:89f6dee9ee25")
    assert report_hash.endswith("bac88e")
