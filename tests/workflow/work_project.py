"""A project that is a git repository, on which workflows are driven by the verb `work`."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.conftest import Answer, Project

BUILD = "sed -i 's/a - b/a + b/' calc.txt; git commit -qam build || true"
VERIFY = "echo checked; grep -q 'a + b' calc.txt"
REVIEW = """printf '%s' "$FINDINGS" > "$EVALWRIGHT_OUTPUT_FILE" """
STEPS = [{"id": "build"}, {"id": "verify"}]


class WorkProject(Project):
    """A project that is a git repository with one commit."""

    @property
    def state(self) -> Path:
        """Return the directory of all runs' state."""
        return self.path / ".git" / "evalwright"

    def run_files(self, run: str) -> Path:
        """Return the directory of one run."""
        return self.state / "runs" / run

    def config(self, work: str = "w", workers: Mapping[str, str] | None = None, **more: Any) -> str:
        """Write a configuration of a run, its workers shell lines by step, and return its name."""
        lines = {"build": BUILD, "verify": VERIFY} | dict(workers or {})
        steps = more.pop("steps", STEPS)
        used = {step.get("worker", step["id"]) for step in steps}
        document = {
            "work": work,
            "workflow": {"name": "toy", "steps": steps, "terminal": ["end"]} | more.pop("workflow", {}),
            "workers": {name: {"shell": True, "command": line} for name, line in lines.items() if name in used},
        }
        path = self.path / f"{work}.json"
        path.write_text(json.dumps(document | more))
        return path.name

    def work(self, *words: str, **more: Any) -> Answer:
        """Call ``evalwright work``."""
        return self.call("work", *words, **more)

    def text(self, *words: str) -> str:
        """Return what ``evalwright work`` tells a person."""
        return self.work(*words, "--format", "text").stdout

    def driven(self, work: str = "w", **more: Any) -> Answer:
        """Start a run and drive it until it ends or waits."""
        return self.work("start", "--config", self.config(work, **more))

    def waiting(self, work: str = "w") -> Answer:
        """Start a run that waits before its first step."""
        return self.driven(work, stop_at=["build"])

    def git(self, *words: str) -> str:
        """Run git in the repository."""
        done = subprocess.run(["git", *words], cwd=self.path, check=True, capture_output=True, text=True, timeout=60)
        return done.stdout.strip()


def work_project(path: Path, zygote: Any) -> WorkProject:
    """Make the repository."""
    made = WorkProject(path, zygote)
    made.git("init", "--quiet", "--initial-branch=main")
    made.git("config", "user.name", "t")
    made.git("config", "user.email", "t@example.invalid")
    (path / "calc.txt").write_text("a - b\n")
    made.git("add", "calc.txt")
    made.git("commit", "--quiet", "--message=one")
    return made
