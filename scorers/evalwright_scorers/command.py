"""The scorer that asks a command of the suite's author."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from evalwright.errors import TrialError
from evalwright.interfaces import BoundedOutput, Command, ScoreContext, Scorer, Session
from evalwright.model import Completed, Score, ScoredTrial
from evalwright_scorers.commands import keep_output, render, seconds
from evalwright_scorers.verdict import read_verdict

__all__ = ["CommandConfig", "CommandScorer"]


class CommandConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The command: ``argv``, or ``command`` with ``shell`` true.

    ``cwd`` is an empty directory, or a private clone of the final workspace.
    """

    argv: Annotated[list[str], Field(min_length=1)] | None = None
    command: Annotated[str, Field(min_length=1)] | None = None
    shell: bool = False
    timeout_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 30
    max_output_bytes: Annotated[int, Field(gt=0)] = 5 * 1024 * 1024
    cwd: Literal["workspace", "empty"] = "empty"

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if self.shell and (self.command is None or self.argv is not None):
            raise ValueError("shell: true takes command, and no argv")
        if not self.shell and (self.argv is None or self.command is not None):
            raise ValueError("without shell: true a command scorer takes argv, and no command")
        return self


class CommandScorer(Scorer[CommandConfig]):
    """Runs a command and takes its stdout as the verdict: ``{"ok": true, "score": 1.0, "findings": []}``.

    The trial comes by environment (``EVALWRIGHT_CASE_FILE``, ``EVALWRIGHT_OUTPUT_FILE``, ...); its variables are also
    replaced in ``argv``. A command that fails, or prints anything else, makes the trial an error.
    """

    api = "scorer/1.0"
    Config = CommandConfig
    Expect = MappingProxyType({})

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Run the command on a fresh clone of the final workspace."""
        with context.session(workspace="final") as session:
            completed = session.execute(self._command(session, context))
        keep_output(context, completed)
        why = self._failure(completed)
        return Score.broken(why) if why else read_verdict(completed.stdout.text)

    def _command(self, session: Session, context: ScoreContext) -> Command:
        env = dict(context.environment(session))
        cwd = session.exchange / "empty"
        if self.config.cwd == "workspace":
            cwd = session.workspace
            env["PYTHONSAFEPATH"] = "1"
        config = self.config
        argv = ["/bin/sh", "-c", config.command or ""] if config.shell else render(config.argv or (), env)
        return Command(
            argv=argv,
            cwd=str(cwd),
            env=env,
            timeout=config.timeout_seconds,
            capture=lambda: BoundedOutput(config.max_output_bytes),
        )

    def _failure(self, completed: Completed) -> str | None:
        if completed.canceled:
            raise TrialError("canceled", "the command scorer was canceled")
        if completed.spawn_error is not None:
            return f"command scorer spawn failed: {completed.spawn_error}"
        if completed.timed_out:
            return f"command scorer timed out after {seconds(self.config.timeout_seconds)}"
        if completed.limit is not None:
            return f"command scorer reached the limit {completed.limit}"
        if completed.exit_code != 0:
            return f"command scorer exited {completed.exit_code}"
        if completed.stdout.truncated:
            return f"command scorer output truncated at {self.config.max_output_bytes} bytes"
        return None
