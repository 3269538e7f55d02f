"""Hostile programs that aim at the grader: they leave something in the workspace for the hidden tests to fall for."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.conftest import Project
from tests.isolation.world import SECONDS

__all__ = ["GRADED", "passes"]

HIDDEN = {
    "t_hidden.py": "import unittest\n\n\nclass Hidden(unittest.TestCase):\n    def test(self):\n        self.fail()\n",
    "t.sh": 'python3 -m unittest t_hidden && printf "1..1\\nok 1 - works\\n" > "$EVALWRIGHT_REPORT_FILE"\n',
}
TESTS = {"argv": ["sh", "./t.sh"], "format": "tap", "fail_to_pass": ["works"]}
REPORT = "1..1\\nok 1 - works\\n"
PLANTED = ("sitecustomize.py", "usercustomize.py", "unittest.py", "conftest.py", "t_hidden.py", "python3", "sh")
GRADED: Mapping[str, str] = {
    "forge the report of hidden tests": (
        f'for d in . /workspace /exchange /tmp "$HOME" "${{EVALWRIGHT_OUTPUT_FILE%/*}}"; do printf \'{REPORT}\' > $d/report; '
        "printf '" + REPORT + "' > $d/report.txt; done 2>/dev/null; true"
    ),
    "leave a process that rewrites the report": (
        '(setsid sh -c \'while :; do for f in "${EVALWRIGHT_OUTPUT_FILE%/*}"/report*; do printf "'
        + REPORT.replace("\\", "\\\\")
        + '" > "$f"; done; done\' > /dev/null 2>&1 &); true'
    ),
    "plant the configuration of a test runner": (
        f"for f in {' '.join(PLANTED)}; do printf 'import os\\nos._exit(0)\\n' > $f; chmod +x $f; done; "
        "printf '[pytest]\\naddopts = --collect-only\\n' > pytest.ini; "
        "mkdir unittest; cp sitecustomize.py unittest/__init__.py; "
        'printf \'{"scripts": {"test": "true"}}\' > package.json'
    ),
}


def passes(sandbox: str, table: Mapping[str, str], script: str, ground: Path) -> bool:
    """Run a trial in a sandbox whose agent is the script and whose hidden tests must fail; tell whether it passed."""
    place = Path(tempfile.mkdtemp(dir=ground))
    place.chmod(0o711)
    project = Project(place)
    project.suite(
        runner={"shell": True, "command": script, "timeout_seconds": SECONDS},
        cases=[{"id": "a", "hidden": "hidden", "expect": {"tests": TESTS}}],
        scorers=[{"use": "tests"}],
        files={f"hidden/{name}": text for name, text in HIDDEN.items()},
        sandbox={"use": sandbox, **table},
    )
    answer = project.call("run", "demo", "--run-id", "r", "--json", env={"EVALWRIGHT_WORKSPACES": str(place)}, timeout=120)
    counts = answer.data["run"]["status_counts"]
    assert counts["pass"] + counts["fail"] == 1, json.dumps(answer.envelope)
    return counts["pass"] == 1
