"""Runners: how an agent is asked to do one task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from evalwright.interfaces.plugin import Deadline, Plugin
from evalwright.interfaces.sandbox import Session
from evalwright.model import RunnerResult, TrialView

__all__ = ["Runner", "RunnerContext"]

C = TypeVar("C")


class RunnerContext(Protocol):
    """What a runner may use while it drives one trial."""

    deadline: Deadline

    def session(self) -> Session:
        """Return the trial's session; it is opened on first use, so that an HTTP agent boots nothing."""
        ...

    def environment(self) -> Mapping[str, str]:
        """Return the environment for the agent's commands: base, allow-list, ``runner.env``, and the trial's paths.

        The paths (``WORKSPACE``, ``CASE_FILE``, ``TASK_FILE``, ``DIFF_FILE``, ``OUTPUT_FILE``, ``USAGE_FILE``,
        ``TRANSCRIPT_FILE``) stand under the prefixes
        ``EVALWRIGHT_`` and ``EVALCTL_`` as commands in the session see them.
        """
        ...

    def child(self, *, readonly: bool = False, network: str | None = None) -> AbstractContextManager[RunnerContext]:
        """Return a context for one step of a workflow, with a session of its own on the same workspace."""
        ...

    def workspace(self) -> Path | None:
        """Return where the workspace of the trial's session lies on this host, seen and changed at once.

        ``None`` where the sandbox keeps it elsewhere. While commands run it is theirs: look at it between them.
        """
        return None

    def canceled(self) -> bool:
        """Tell whether the run was stopped; a runner that waits on its own asks this."""
        ...

    def emit(self, type: str, data: Mapping[str, Any]) -> None:
        """Record a progress or transcript event in ``events.jsonl`` of the trial, redacted."""
        ...

    def artifact(self, name: str, source: Path | bytes) -> None:
        """Keep a file with the trial's evidence under ``artifacts/``, redacted when it is text."""
        ...


class Runner(Plugin[C]):
    """Asks an agent to do one task.

    One that ``needs_workspace`` works with the workspace on this host, beside its commands: a sandbox that keeps it elsewhere
    is refused before the first trial.
    """

    needs_workspace: ClassVar[bool] = False

    @abstractmethod
    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        """Drive the agent through one trial. An agent's failure is a result; ``TrialError`` is a harness failure."""
