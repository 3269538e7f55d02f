"""Runs any program as the agent: argv or a shell line, in the trial's session."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, model_validator

from evalwright.interfaces import Command, Runner, RunnerContext
from evalwright.model import RunnerResult, TrialView

__all__ = ["CommandConfig", "CommandRunner"]

VARIABLE = re.compile(r"\$(?:\{((?:EVALWRIGHT|EVALCTL)_\w+)\}|((?:EVALWRIGHT|EVALCTL)_\w+))", re.ASCII)
SHELL = "/bin/sh"


class CommandConfig(BaseModel):
    """``argv``, or ``command`` with ``shell: true``; ``cwd`` defaults to the workspace."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    argv: list[str] | None = None
    command: str | None = None
    shell: bool = False
    cwd: str | None = None
    stdin: Literal["task"] | None = None

    @model_validator(mode="after")
    def _one_form(self) -> CommandConfig:
        if self.shell and (not self.command or self.argv):
            raise ValueError("shell: true needs command, and no argv")
        if not self.shell and (not self.argv or not self.argv[0] or self.command):
            raise ValueError("give argv, or command with shell: true")
        if any("\0" in word for word in self.argv or [self.command or ""]):
            raise ValueError("an argument cannot hold a NUL")
        return self


class CommandRunner(Runner[CommandConfig]):
    """Starts the command with the trial's environment and waits for its end."""

    api = "runner/1.0"
    Config = CommandConfig

    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        """Run the command once. ``$NAME`` of the trial's variables is rendered in ``argv`` and ``cwd`` by whole word.

        A shell gets them by environment only, so that no path of theirs is ever read as shell text.
        """
        session = context.session()
        environment = context.environment()
        config = self.config
        argv = [SHELL, "-c", config.command or ""] if config.shell else [rendered(w, environment) for w in config.argv or []]
        command = Command(
            argv=argv,
            cwd=rendered(config.cwd, environment) if config.cwd else None,
            env=environment,
            stdin=trial.task.encode() if config.stdin == "task" else None,
            timeout=context.deadline.remaining,
            canceled=context.canceled,
        )
        return RunnerResult(completed=session.execute(command))


def rendered(text: str, variables: Mapping[str, str]) -> str:
    """Return ``text`` with ``$NAME`` and ``${NAME}`` of the trial's variables replaced; other dollars stay."""
    return VARIABLE.sub(lambda match: variables.get(match[1] or match[2], match[0]), text)
