"""What is left of ended runs and dead processes in a repository, and how it is removed: never a record, never a branch."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from evalwright.errors import EvalwrightError
from evalwright_plugins.workflow.commands.importing import IMPORTING
from evalwright_plugins.workflow.drive.runs import Run, Runs
from evalwright_plugins.workflow.sites import RunFiles
from evalwright_plugins.workflow.workspace import hold, owner_of

__all__ = ["Leftover", "leftovers", "remove"]

Kind = Literal["worktree", "steps", "unbegun", "import"]
WORDS: dict[Kind, str] = {
    "worktree": "the worktree of an ended run",
    "steps": "the private files of an ended run's steps",
    "unbegun": "what a start that was cut off has made",
    "import": "what an import that was cut off has made",
}
LISTED = b"worktree "


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftover:
    """Something that nobody needs any more. ``run`` is empty where it belongs to none."""

    kind: Kind
    path: Path
    run: str
    size_bytes: int

    @property
    def what(self) -> str:
        """Return what it is, in words."""
        return WORDS[self.kind]

    def as_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {"kind": self.kind, "path": str(self.path), "run": self.run or None, "size_bytes": self.size_bytes}


def leftovers(runs: Runs) -> list[Leftover]:
    """Return everything that can be removed. A run whose ledger is damaged is left alone."""
    return [Leftover(kind=kind, path=path, run=run, size_bytes=_size(path)) for kind, path, run in _found(runs)]


def remove(runs: Runs, leftover: Leftover) -> None:
    """Remove a leftover, under the lock of whoever could need it. Raises ``RunBusy``, ``OSError``."""
    state = runs.repository.state
    if leftover.kind == "unbegun":
        with hold(state / "repository.lock"):
            if not RunFiles(leftover.path).ledger.is_file():
                _delete(leftover.path, inside=runs.path)
        return
    if leftover.kind == "import":
        _delete(leftover.path, inside=state)
        return
    run = Run(RunFiles(runs.path / leftover.run))
    with hold(run.files.driver) if run.files.ledger.is_file() else contextlib.nullcontext():
        if leftover.kind == "worktree":
            runs.repository.release(leftover.run)
        else:
            _delete(leftover.path, inside=run.files.path)


def _found(runs: Runs) -> Iterator[tuple[Kind, Path, str]]:
    state, over = runs.repository.state, set[str]()
    known = set(os.listdir(runs.path)) if runs.path.is_dir() else set[str]()
    for name in sorted(known):
        run = Run(RunFiles(runs.path / name))
        if not run.files.ledger.is_file():
            if run.files.path.is_dir() and owner_of(state / "repository.lock") is None:
                yield "unbegun", run.files.path, name
            continue
        if _is_over(run):
            over.add(name)
            steps = run.files.path / "steps"
            if steps.is_dir():
                yield "steps", steps, name
    for name in sorted(_trees(runs)):
        if name in over or name not in known:
            yield "worktree", state / "worktrees" / name, name
    for path in sorted(state.glob(f"{IMPORTING}*")):
        yield "import", path, ""


def _is_over(run: Run) -> bool:
    """Tell whether a run has ended, and nobody is just finishing it."""
    with contextlib.suppress(EvalwrightError, OSError):
        return run.state().status.terminal and owner_of(run.files.driver) is None
    return False


def _trees(runs: Runs) -> set[str]:
    """Return the names of worktrees of runs: those on disk, and those that git remembers."""
    place = os.fsencode(runs.repository.state / "worktrees") + b"/"
    listed = runs.repository.git.run("worktree", "list", "--porcelain", "-z").split(b"\0")
    paths = [entry.removeprefix(LISTED) for entry in listed if entry.startswith(LISTED)]
    return {*runs.repository.worktrees(), *(os.fsdecode(path.removeprefix(place)) for path in paths if path.startswith(place))}


def _size(path: Path) -> int:
    """Return the bytes of the files below a directory; what cannot be read does not count."""
    total = 0
    for directory, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(directory, name)).st_size
    return total


def _delete(path: Path, *, inside: Path) -> None:
    """Delete a directory tree that an agent may have closed; never one that lies elsewhere."""
    if path.parent != inside or path.is_symlink():
        raise EvalwrightError(f"{path} does not lie in {inside}", hint="look what leads there, and remove it by hand")
    path.chmod(0o700)
    for directory, names, _ in os.walk(path):
        for name in names:
            below = os.path.join(directory, name)
            if not os.path.islink(below):
                os.chmod(below, 0o700)
    shutil.rmtree(path)
