"""What the drive asks of the place where steps happen, and the files that a run keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from evalwright.model import Completed, Usage
from evalwright_plugins.workflow.model.workflow import Step
from evalwright_plugins.workflow.workspace import Proof, Workspace

__all__ = ["RunFiles", "Site", "StepCall", "StepResult"]


@dataclass(frozen=True, slots=True)
class RunFiles:
    """The directory of one run, on this host."""

    path: Path

    @property
    def ledger(self) -> Path:
        """Return the ledger."""
        return self.path / "ledger.jsonl"

    @property
    def plan(self) -> Path:
        """Return the pinned plan."""
        return self.path / "plan.json"

    @property
    def processes(self) -> Path:
        """Return the names of processes that steps have started."""
        return self.path / "processes.jsonl"

    @property
    def driver(self) -> Path:
        """Return the lock of whoever drives the run."""
        return self.path / "driver.lock"

    @property
    def foreign(self) -> Path:
        """Return the mark of a run that was imported: where it came from."""
        return self.path / "foreign.json"

    @property
    def inbox(self) -> Path:
        """Return where decisions wait for the driver."""
        return self.path / "inbox"

    def log(self, step: str, attempt: int) -> Path:
        """Return where the output of an attempt is written while it runs."""
        return self.path / "logs" / f"{step}-{attempt}.log"

    def output(self, step: str, attempt: int) -> Path:
        """Return where the envelope of an attempt is kept."""
        return self.path / "outputs" / f"{step}-{attempt}.json"

    def reference(self, path: Path) -> str:
        """Return a file of the run as the ledger names it."""
        return path.relative_to(self.path).as_posix()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepCall:
    """One attempt of a step, as the site carries it out. ``timeout`` in seconds; output goes to ``log`` while it runs."""

    step: Step
    attempt: int
    table: Mapping[str, Any]
    input: Mapping[str, Any]
    prompt: str
    timeout: float
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """How an attempt ended. ``output`` is the envelope as the worker wrote it, ``None`` when it wrote none.

    ``log`` is what the record says of a log that is not whole.
    """

    exit_code: int | None
    seconds: float
    command: str
    timed_out: bool = False
    canceled: bool = False
    lost: str | None = None
    output: bytes | None = None
    usage: Usage | None = None
    completed: Completed = field(default_factory=Completed)
    log: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Site(Protocol):
    """Where steps happen."""

    @property
    def tree(self) -> Workspace:
        """Return the work tree."""
        ...

    def proof(self) -> Proof:
        """Return what a read-only step must leave as it is."""
        ...

    def bind(self) -> Mapping[str, Any]:
        """Make sure that the work tree is there, however far an earlier call came; return the data of WORKSPACE_BOUND."""
        ...

    def adopt(self, commit: str) -> str:
        """Check out a commit on the run's branch and return its full name. Raises ``EvalwrightError`` when that would lose
        changes, or there is no such commit.
        """
        ...

    def run(self, call: StepCall, canceled: Callable[[], bool]) -> StepResult:
        """Carry out an attempt; ``lost`` of the result says why that could not be done."""
        ...

    def digests(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return the digests of files of the work tree, those that do not exist left out."""
        ...
