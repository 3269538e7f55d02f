"""The judge that is a program: the question on its stdin, the reply on its stdout."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from evalwright.errors import JudgeError, JudgeRefused, JudgeUnavailable, JudgeUnreadable
from evalwright.interfaces import BoundedOutput, Command, Deadline, Host, Judge, JudgeReply, JudgeRequest, Problem
from evalwright.model import Completed
from evalwright.processes import Supervisor

__all__ = ["CommandJudge", "CommandJudgeConfig"]

TEMPORARY = 75
PATH = "/usr/local/bin:/usr/bin:/bin"
SHOWN = 200
SHORTEST = 0.01


class CommandJudgeConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The program. ``reply`` says what its stdout is: the model's own text, or JSON with ``text`` and more."""

    argv: Annotated[list[str], Field(min_length=1)]
    model: str | None = None
    reply: Literal["text", "json"] = "text"
    env_allowlist: list[str] = []
    call_timeout_seconds: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 120.0
    max_output_bytes: Annotated[int, Field(gt=0)] = 4 * 1024 * 1024


class CommandJudge(Judge[CommandJudgeConfig]):
    """Runs the program once a question. It ends with status 0; with 75 (EX_TEMPFAIL) when another try may work."""

    api = "judge/1.0"
    Config = CommandJudgeConfig

    def __init__(self, config: CommandJudgeConfig, host: Host) -> None:
        super().__init__(config, host)
        self._supervisor = Supervisor()

    @property
    def model(self) -> str | None:
        """Name the model, where the table says so."""
        return self.config.model

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Say when there is no such program, or a variable that it shall have is not set."""
        program = self.config.argv[0]
        problems = [
            Problem(message=f"{name} is not set", hint=f"set {name}, or take it from env_allowlist")
            for name in self.config.env_allowlist
            if name not in os.environ
        ]
        if shutil.which(program, path=self._environment()["PATH"]) is None:
            problems.append(Problem(message=f"there is no program {program}", hint="give its whole path in argv"))
        return problems

    def ask(self, request: JudgeRequest, deadline: Deadline) -> JudgeReply:
        """Run the program."""
        question = {
            "messages": [dict(message) for message in request.messages],
            "options": dict(request.options),
            "sample": request.sample,
            "repeat": request.repeat,
        }
        command = Command(
            argv=self.config.argv,
            cwd="/",
            env=self._environment(),
            stdin=json.dumps(question).encode("ascii"),
            timeout=max(SHORTEST, min(self.config.call_timeout_seconds, deadline.remaining)),
            capture=lambda: BoundedOutput(self.config.max_output_bytes),
        )
        return self._reply(self._supervisor.run(command))

    def close(self, deadline: Deadline) -> None:
        """End what still runs."""
        self._supervisor.close()

    def _environment(self) -> dict[str, str]:
        names = self.config.env_allowlist
        given = {name: os.environ[name] for name in names if name in os.environ}
        return {"LANG": "C.UTF-8", "PATH": PATH, **given}

    def _reply(self, done: Completed) -> JudgeReply:
        program = self.config.argv[0]
        if done.timed_out or done.canceled:
            raise JudgeUnavailable(f"{program} gave no answer in time", hint="raise the timeouts", kind="judge_timeout")
        if done.spawn_error is not None:
            raise JudgeError(f"{program} cannot be started: {done.spawn_error}", hint="correct argv")
        if done.exit_code == TEMPORARY:
            raise JudgeUnavailable(f"{program} ended with {TEMPORARY}: try again", hint="look at its stderr")
        if done.exit_code != 0:
            raise JudgeError(f"{program} ended with {done.exit_code}", hint="look at its stderr; 75 asks for another try")
        if done.stdout.truncated:
            raise JudgeUnreadable(f"{program} wrote more than {self.config.max_output_bytes} bytes", hint="shorten its output")
        if self.config.reply == "json":
            return self._from_json(done.stdout.head)
        if not done.stdout.text.strip():
            raise JudgeUnreadable(f"{program} wrote nothing", hint="write the reply to stdout")
        return JudgeReply(text=done.stdout.text, model=self.config.model)

    def _from_json(self, data: bytes) -> JudgeReply:
        try:
            record: Any = json.loads(data.decode("utf-8"))
            reply = JudgeReply.from_json(record)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise JudgeUnreadable(
                "the program's output is no JSON object with a text", hint="see the docs of this judge"
            ) from error
        return _checked(reply, record)


def _checked(reply: JudgeReply, record: Mapping[str, Any]) -> JudgeReply:
    cost, finish = reply.cost, record.get("finish")
    if cost is not None and (isinstance(cost, bool) or not isinstance(cost, (int, float)) or not 0 <= cost < float("inf")):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise JudgeUnreadable("cost is no number of dollars", hint="see the docs of this judge")
    if finish not in ("refusal", "length"):
        return reply
    error: JudgeError = (
        JudgeRefused("the model declined to answer", hint="change the rubric, or ask another model")
        if finish == "refusal"
        else JudgeUnreadable("the reply was cut", hint="allow more tokens", kind="judge_truncated")
    )
    error.cost = cost
    raise error
