"""A suite with hidden tests, and agents that leave files in its workspace before the tests run."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.coordinate import RunRequest, Stop, run_suite
from evalwright.hooks import Observers
from evalwright.report import Projection
from evalwright.rundir import Layout
from evalwright.settings import Settings
from evalwright.suite import load_suite

if TYPE_CHECKING:
    from tests.conftest import Project

HIDDEN = "from f import f\n\ndef test_a():\n    assert f() == 42\n\ndef test_b():\n    assert f() > 0\n"
FORGED = """
import os, sys
xml = ('<testsuites><testsuite name="pytest" tests="2" failures="0" errors="0" skipped="0">'
       '<testcase classname="test_f" name="test_a"/><testcase classname="test_f" name="test_b"/></testsuite></testsuites>')
for word in sys.argv:
    if word.startswith("--junitxml="):
        with open(word.partition("=")[2], "w") as file:
            file.write(xml)
print("test_f.py::test_a PASSED\\ntest_f.py::test_b PASSED\\n2 passed")
sys.stdout.flush()
os._exit(0)
"""
TESTS = {
    "use": "tests",
    "argv": [sys.executable, "-m", "pytest", "-q", "test_f.py"],
    "format": "pytest",
    "fail_to_pass": ["test_f.py::test_a"],
    "pass_to_pass": ["test_f.py::test_b"],
}
CASE = {"id": "a", "hidden": "hidden/a"}


def carry_out(project: Project, suite: Path, warnings: list[Mapping[str, str]] | None = None, **settings: Any) -> Projection:
    """Run a suite in this process, and collect its trials' warnings."""
    evals = project.path / "evals"
    request = RunRequest(
        checked=load_suite(suite),
        layout=Layout(evals, evals / "runs"),
        settings=Settings(evals=evals, jobs=4, **settings),
        run_id="r",
    )
    told = [] if warnings is None else warnings

    def warn(code: str, message: str) -> None:
        told.append({"code": code, "message": message})

    return run_suite(request, stop=Stop(), observers=lambda complain: Observers((), complain), warn=warn).report


@dataclass(frozen=True)
class Attempt:
    """How one trial ended: its status and what its scorers said."""

    status: str
    scores: tuple[Mapping[str, Any], ...]
    warnings: tuple[Mapping[str, str], ...] = ()

    @property
    def findings(self) -> list[Mapping[str, Any]]:
        """Return all findings of all scorers."""
        return [finding for score in self.scores for finding in score["findings"]]

    @property
    def rules(self) -> set[str]:
        """Return the rules that were broken."""
        return {finding["rule"] for finding in self.findings if "rule" in finding}


def attempted(
    project: Project,
    planted: Mapping[str, str | bytes],
    answer: int,
    *,
    hidden: Mapping[str, str] | None = None,
    fixture: Mapping[str, str] | None = None,
    case: Mapping[str, Any] | None = None,
    scorer: Mapping[str, Any] = TESTS,
    also: Sequence[Mapping[str, Any]] = (),
    then: str = "true",
    **settings: Any,
) -> Attempt:
    """Run an agent that leaves ``f`` returning ``answer``, plants files, and runs a command."""
    loot = {"f.py": f"def f():\n    return {answer}\n"} | dict(planted)
    files: dict[str, str | bytes] = {f"loot/{name}": content for name, content in loot.items()}
    files |= {f"hidden/a/{name}": text for name, text in (hidden or {"test_f.py": HIDDEN}).items()}
    files |= {f"fixtures/w/{name}": text for name, text in (fixture or {}).items()}
    runner = {"shell": True, "command": f'cp -r "$EVALWRIGHT_AGENT/loot/." . && {{ {then}; }}', "files": ["loot"]}
    whole = {key: value for key, value in {**CASE, **(case or {})}.items() if value is not None}
    suite = project.suite(runner=runner, scorers=[scorer, *also], cases=[whole], files=files)
    warnings: list[Mapping[str, str]] = []
    reported = carry_out(project, suite, warnings, **settings).cases[0]
    return Attempt(reported.status, tuple(reported.scores), tuple(warnings))
