"""A runner that follows a script instead of an agent."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict

from evalwright.interfaces import Host, Runner, RunnerContext
from evalwright.model import Completed, RunnerResult, TrialView

__all__ = ["ScriptedConfig", "ScriptedRunner"]

TICK_SECONDS = 0.01


class ScriptedConfig(BaseModel):
    """What the agent does: ``answer`` (``None`` repeats the task), files it writes, its exit status; or it hangs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    answer: str | None = None
    writes: dict[str, str] = {}
    exit_code: int = 0
    hangs: bool = False


class ScriptedRunner(Runner[ScriptedConfig]):
    """Starts no process. ``asked`` lists every trial; ``act`` replaces the script."""

    api = "runner/1.0"
    Config = ScriptedConfig

    def __init__(
        self,
        config: ScriptedConfig | None = None,
        host: Host | None = None,
        *,
        act: Callable[[TrialView, RunnerContext], RunnerResult] | None = None,
    ) -> None:
        super().__init__(config or ScriptedConfig(), host)  # type: ignore[arg-type]  # it never asks its host
        self.asked: list[TrialView] = []
        self._act = act

    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        """Follow the script."""
        self.asked.append(trial)
        if self._act:
            return self._act(trial, context)
        if self.config.hangs:
            return RunnerResult(completed=_wait(context))
        for path, text in self.config.writes.items():
            session = context.session()
            session.put(text.encode(), session.workspace / path)
        answer = trial.task if self.config.answer is None else self.config.answer
        details: dict[str, Any] = {"scripted": True}
        return RunnerResult(completed=Completed(exit_code=self.config.exit_code), output=answer, details=details)


def _wait(context: RunnerContext) -> Completed:
    pause = threading.Event()
    while not context.deadline.expired:
        if context.canceled():
            return Completed(canceled=True)
        pause.wait(TICK_SECONDS)
    return Completed(timed_out=True)
