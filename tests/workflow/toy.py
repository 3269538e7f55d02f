"""A toy repository whose runs are driven in this process, and workers for it: shell scripts."""

from __future__ import annotations

import atexit
import functools
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.zygote import Zygote

from evalwright.ledger import read_events
from evalwright.processes import Supervisor
from evalwright_plugins.workflow.approvals.orders import Order
from evalwright_plugins.workflow.drive.runs import Run, Runs
from evalwright_plugins.workflow.drive.turn import Turn
from evalwright_plugins.workflow.model.loading import Plan, plan_of, preset
from evalwright_plugins.workflow.record import Request, State
from evalwright_plugins.workflow.sites.repository import executor
from evalwright_plugins.workflow.workspace import Repository

GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "HOME": "/nonexistent",
    "PATH": os.environ["PATH"],
    **{f"GIT_{who}_{what}": "toy" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
COMMIT = "git add -A && git commit -qm change"
BUILD = f"echo built >> made.txt && {COMMIT}"
VERIFY = "grep -q fixed made.txt"
REVIEW = """
grep -q documented made.txt && exit 0
echo '{"findings": [{"severity": "P1", "summary": "no documentation", "file": "made.txt"}]}' > "$EVALWRIGHT_OUTPUT_FILE"
"""
FIX = f"if grep -q fixed made.txt; then echo documented >> made.txt; else echo fixed >> made.txt; fi && {COMMIT}"
Answer = Callable[[Turn, Request, str], Order | None]


def shell(line: str) -> dict[str, Any]:
    """Return a worker's table."""
    return {"shell": True, "command": line}


WORKERS = {"builder": shell(BUILD), "verifier": shell(VERIFY), "reviewer": shell(REVIEW), "fixer": shell(FIX)}


def waits(_turn: Turn, _request: Request, _refused: str) -> None:
    """Answer nothing."""


def says(action: Any) -> Answer:
    """Return what always answers the same."""
    return lambda _turn, request, _refused: Order(action=action, by="ada", request=request.seq)


@functools.cache
def template() -> Path:
    """Make the repository that all others are copies of."""
    path = Path(tempfile.mkdtemp(prefix="evalwright-toy-"))
    path.chmod(0o755)
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    (path / "made.txt").write_text("begun\n")
    (path / ".gitignore").write_text("*.tmp\n")
    for words in ("init --quiet --initial-branch=main --template=", "add -A", "commit --quiet --message=begun"):
        subprocess.run(["git", *words.split()], cwd=path, env=GIT, check=True)
    return path


class Toy:
    """A repository with one commit, and its runs."""

    def __init__(self, path: Path, zygote: Zygote | None = None) -> None:
        self.path = path
        self.zygote = zygote
        shutil.copytree(template(), path, dirs_exist_ok=True)
        self._open()

    @classmethod
    def reopened(cls, path: Path) -> Toy:
        """Return the toy of a repository that exists, for another process."""
        toy = cls.__new__(cls)
        toy.path, toy.zygote = path, None
        toy._open()
        return toy

    def _open(self) -> None:
        self.supervisor = Supervisor()
        self.runs = Runs(Repository.find(self.path, executor(self.supervisor)))

    def git(self, *words: str, cwd: Path | None = None) -> str:
        """Run git in the main checkout."""
        done = subprocess.run(["git", *words], cwd=cwd or self.path, env=GIT, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def plan(self, **keys: Any) -> Plan:
        """Return a plan of the preset software-delivery, or of ``workflow``; ``worker_NAME`` replaces a worker's line."""
        workers = dict(WORKERS)
        for key in [key for key in keys if key.startswith("worker_")]:
            line = keys.pop(key)
            name = key.removeprefix("worker_")
            workers.pop(name, None)
            workers |= {name: shell(line)} if line is not None else {}
        document = {"work": "W", "workflow": preset("software-delivery"), "workers": workers, "prompt": "make it", **keys}
        return plan_of(document, "toy")

    def start(self, plan: Plan | None = None, answer: Answer = waits, run_id: str | None = None, **keys: Any) -> State:
        """Start a run and drive it."""
        return self.runs.start(plan or self.plan(**keys), run_id, answer, lambda: False)[1]

    def resume(self, run: str = "W-1", answer: Answer = waits) -> State:
        """Drive a run on."""
        return self.runs.resume(self.run(run), answer, lambda: False)

    def run(self, run: str = "W-1") -> Run:
        """Return a run."""
        return self.runs.find(run)

    def events(self, run: str = "W-1") -> list[dict[str, Any]]:
        """Return the events of a run."""
        return read_events(self.run(run).files.ledger)

    def types(self, run: str = "W-1") -> list[str]:
        """Return the types of the events of a run."""
        return [event["type"] for event in self.events(run)]

    def data(self, type: str, run: str = "W-1") -> list[Mapping[str, Any]]:
        """Return the data of all events of a type."""
        return [event["data"] for event in self.events(run) if event["type"] == type]

    @property
    def worktree(self) -> Path:
        """Return the worktree of the first run."""
        return self.path / ".git" / "evalwright" / "worktrees" / "W-1"

    def config(self, **keys: Any) -> Path:
        """Write a configuration and return its path."""
        path = self.path.parent / "run.json"
        path.write_text(
            json.dumps({"work": "W", "workflow": "software-delivery", "workers": WORKERS, "prompt": "make it"} | keys)
        )
        return path
