"""Where everything lies: ids, run directories, their files, and finding them again."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evalwright.errors import RunCorrupt, RunNotFound, UsageError

__all__ = ["OUR_FORMAT", "Layout", "RunDirectory", "abandoned", "check_id", "find_run", "is_experiment", "runs_in"]

OUR_FORMAT = "evalwright/1"
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)
MAX_ID = 200
BUILDING = (".new-", ".old-")
ABANDONED_SECONDS = 60.0


def check_id(value: str, what: str = "run id") -> str:
    """Return a safe id, or raise ``UsageError``: whatever its origin, an id is never a path."""
    if len(value) > MAX_ID or ".." in value or not RUN_ID.fullmatch(value):
        raise UsageError(
            f"{what} {value!r}: use letters, digits, dot, underscore, dash; start with a letter or digit",
            hint=f"choose another {what}",
            key=what.replace(" ", "_"),
        )
    return value


class RunDirectory:
    """The files of one run.

    ``cases`` is the parent of all bundles; in ``attempts`` lie those of which none counts yet, and it is gone when the run is
    finished.
    """

    __slots__ = ("attempts", "cases", "path")

    def __init__(self, path: Path) -> None:
        self.path = path
        self.cases = path / "cases"
        self.attempts = path / ".attempts"

    @property
    def run_json(self) -> Path:
        """Return the record that is written once, before execution."""
        return self.path / "run.json"

    @property
    def manifest(self) -> Path:
        """Return the record that makes a run complete."""
        return self.path / "manifest.json"

    @property
    def ledger(self) -> Path:
        """Return the event log."""
        return self.path / "ledger.jsonl"

    @property
    def reservation(self) -> Path:
        """Return who works on the run now."""
        return self.path / ".reservation.json"

    @property
    def report(self) -> Path:
        """Return the report for people."""
        return self.path / "report.md"

    @property
    def profile(self) -> Path:
        """Return the measured spans of its trials; nothing vouches for them."""
        return self.path / "profile.jsonl"

    @property
    def snapshot(self) -> Path:
        """Return the suite as it was."""
        return self.path / "suite-snapshot"

    @property
    def queue(self) -> Path:
        """Return the queue's own directory; gone when the run is finished."""
        return self.path / ".queue"

    @property
    def journal(self) -> Path:
        """Return the names of all processes that were started for the run; gone when it is finished."""
        return self.path / ".processes.jsonl"

    def case(self, case_id: str) -> Path:
        """Return the bundle of one case; the id is checked, since it may come from a file somebody edited."""
        return _inside(self.cases, case_id)

    def attempt(self, case_id: str, attempt: int) -> Path:
        """Return where one attempt writes its bundle."""
        return _inside(self.attempts, f"{case_id}.{attempt}")


class Layout:
    """The directories of one project."""

    __slots__ = ("evals", "runs")

    def __init__(self, evals: Path, runs: Path) -> None:
        self.evals = evals
        self.runs = runs

    @property
    def suites(self) -> Path:
        """Return where suites lie."""
        return self.evals / "suites"

    @property
    def store(self) -> Path:
        """Return the content store."""
        return self.evals / "store"

    @property
    def experiments(self) -> Path:
        """Return where experiment records lie."""
        return self.evals / "experiments"

    @property
    def leak_tests(self) -> Path:
        """Return where leak tests make their private projects: gone when nobody makes one."""
        return self.evals / ".leak-test"

    @property
    def index(self) -> Path:
        """Return the summaries of all runs; rebuildable, never trusted over a manifest."""
        return self.runs / ".index.jsonl"

    def within(self, directory: Path) -> frozenset[bytes]:
        """Return the paths, relative to ``directory``, of the results that lie in it: they are no part of a suite there."""
        top = directory.resolve()
        places = (self.evals, self.runs, self.store, self.experiments, self.leak_tests)
        return frozenset(
            os.fsencode(place.relative_to(top).as_posix())
            for place in (place.resolve() for place in places)
            if top in place.parents
        )

    def run(self, run_id: str) -> RunDirectory:
        """Return a run's directory. Raises ``UsageError`` for an unsafe id."""
        return RunDirectory(self.runs / check_id(run_id))

    def experiment(self, experiment_id: str) -> Path:
        """Return an experiment's directory. Raises ``UsageError`` for an unsafe id."""
        return self.experiments / check_id(experiment_id, "experiment id")


def find_run(layout: Layout, run_id: str | None, run_dir: str | None) -> RunDirectory:
    """Return the run that an id or a directory names. Raises ``RunNotFound`` or ``UsageError``."""
    if (run_id is None) == (run_dir is None):
        raise UsageError("name one run: its id, or its directory with --run-dir", hint="list them: evalwright jobs list")
    run = RunDirectory(Path(run_dir)) if run_dir is not None else layout.run(run_id or "")
    if not run.run_json.is_file() and not run.manifest.is_file():
        raise RunNotFound(f"run not found: {run_dir or run_id}", hint="list them: evalwright jobs list")
    return run


def is_experiment(layout: Layout, name: str) -> bool:
    """Tell whether an experiment has that id."""
    return RUN_ID.fullmatch(name) is not None and (layout.experiments / name / "experiment.json").is_file()


def runs_in(layout: Layout) -> Iterator[RunDirectory]:
    """Yield every run, by name. Names that start with a dot, links, and directories without a record are no runs."""
    if not layout.runs.is_dir():
        return
    for path in sorted(layout.runs.iterdir()):
        run = RunDirectory(path)
        if RUN_ID.fullmatch(path.name) and not path.is_symlink() and (run.run_json.is_file() or run.manifest.is_file()):
            yield run


def abandoned(layout: Layout) -> list[RunDirectory]:
    """Return directories of runs that were never put in place, or were being replaced, and have been left for a minute.

    Whoever is at work on one holds its lock.
    """
    if not layout.runs.is_dir():
        return []
    old = time.time() - ABANDONED_SECONDS
    found = [path for path in sorted(layout.runs.iterdir()) if path.name.startswith(BUILDING) and not path.is_symlink()]
    return [RunDirectory(path) for path in found if path.is_dir() and path.stat().st_mtime < old]


def _inside(parent: Path, name: Any) -> Path:
    """Return a child of ``parent``; a name that is a path or climbs is refused."""
    if not isinstance(name, str) or not name or "/" in name or "\0" in name or ".." in name or name == ".":
        raise RunCorrupt(f"case id {name!r} is not a safe name", hint="restore the record that holds it")
    return parent / name
