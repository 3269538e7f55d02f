"""A worker is a runner: what it gets to see of a step, and what is taken from it."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from evalwright.errors import SandboxError, TrialError
from evalwright.interfaces import Command, Deadline, ForwardingSession, Runner, RunnerContext, Session
from evalwright.model import Completed, RunnerResult, TrialView, Usage, usage_from
from evalwright.redaction import Redactor
from evalwright_plugins.workflow.sites.log import StepLog
from evalwright_plugins.workflow.sites.site import StepCall, StepResult

__all__ = ["StepContext", "carry_out"]

MAX_ENVELOPE_BYTES = 1 << 20
MAX_USAGE_BYTES = (1 << 16) + 1
IDENTITY = ("AUTHOR", "COMMITTER")


class _StepSession(ForwardingSession):
    """A sandbox's session, with the output of every command written to the step's log while it runs."""

    def __init__(self, inner: Session, context: StepContext) -> None:
        super().__init__(inner)
        self._context = context

    def execute(self, command: Command) -> Completed:
        streams = {name: self._context.log.stream() for name in ("stdout", "stderr")}

        def write(stream: Literal["stdout", "stderr"], data: bytes) -> None:
            streams[stream].feed(data)
            if command.on_output:
                command.on_output(stream, data)

        try:
            return self._inner.execute(
                replace(
                    command,
                    on_output=write,
                    canceled=command.canceled or self._context.canceled,
                    on_start=command.on_start or self._context.started,
                )
            )
        finally:
            for stream in streams.values():
                stream.finish()


@dataclass(slots=True)
class StepContext:
    """What the runner of a step may use: see :class:`evalwright.interfaces.RunnerContext`.

    ``mark`` is in the names of the step's files, so that no other step of the same exchange directory knows them before.
    """

    inner: Session
    variables: Mapping[str, str]
    deadline: Deadline
    log: StepLog
    canceled: Callable[[], bool]
    started: Callable[[Sequence[int]], None] | None = None
    keep: Callable[[str, Path | bytes], None] | None = None
    mark: str = field(default_factory=lambda: secrets.token_hex(8))

    def file(self, name: str) -> PurePosixPath:
        """Return the path of one of the step's own files, as its commands see it."""
        return self.inner.exchange / f"step-{self.mark}-{name}"

    def usage(self) -> Usage | None:
        """Return what the worker's usage file says now, ``None`` where it says nothing that can be read."""
        try:
            return usage_from(self.inner.get(self.file("usage.json"), max_bytes=MAX_USAGE_BYTES))
        except (OSError, ValueError, SandboxError):
            return None

    def session(self) -> Session:
        """Return the step's session."""
        return _StepSession(self.inner, self)

    def environment(self) -> Mapping[str, str]:
        """Return the environment of the worker's commands."""
        return self.variables

    def child(self, *, readonly: bool = False, network: str | None = None) -> AbstractContextManager[RunnerContext]:
        """Give the context itself: a step has one session."""
        del readonly, network
        return self._same()

    @contextlib.contextmanager
    def _same(self) -> Generator[RunnerContext]:
        yield self

    def workspace(self) -> Path | None:
        """Return where the work tree lies on this host: that is not the worker's business."""
        return None

    def emit(self, type: str, data: Mapping[str, Any]) -> None:
        """Write an event to the step's log."""
        self.log.emit(type, data)

    def artifact(self, name: str, source: Path | bytes) -> None:
        """Keep a file, where the site keeps any."""
        if self.keep:
            self.keep(name, source)


def carry_out(call: StepCall, runner: Runner[Any], context: StepContext) -> StepResult:
    """Have a runner do a step, and return how it ended.

    Input, prompt, output and usage are files beside the workspace, named by ``EVALWRIGHT_INPUT_FILE``,
    ``EVALWRIGHT_PROMPT_FILE``, ``EVALWRIGHT_OUTPUT_FILE`` and ``EVALWRIGHT_USAGE_FILE``, so that no size of theirs is too
    large for an environment.
    """
    session = context.inner
    files = {name: context.file(name) for name in ("input.json", "prompt.txt", "output.json", "usage.json")}
    session.put(json.dumps(call.input, ensure_ascii=False).encode("utf-8", "surrogatepass"), files["input.json"])
    session.put(call.prompt.encode("utf-8", "replace"), files["prompt.txt"])
    context.variables = {
        **{f"GIT_{who}_NAME": call.step.table for who in IDENTITY},
        **{f"GIT_{who}_EMAIL": f"{call.step.table}@workflow.invalid" for who in IDENTITY},
        **context.variables,
        "EVALWRIGHT_INPUT_FILE": str(files["input.json"]),
        "EVALWRIGHT_PROMPT_FILE": str(files["prompt.txt"]),
        "EVALWRIGHT_OUTPUT_FILE": str(files["output.json"]),
        "EVALWRIGHT_USAGE_FILE": str(files["usage.json"]),
        "EVALWRIGHT_RUN": str(call.input["run"]),
        "EVALWRIGHT_WORK": str(call.input["work"]),
        "EVALWRIGHT_STEP": call.step.id,
        "EVALWRIGHT_ATTEMPT": str(call.attempt),
    }
    begun = time.monotonic()
    lost = None
    result = RunnerResult()
    try:
        result = runner.run(TrialView(id=f"{call.step.id}-{call.attempt}", task=call.prompt), context)
    except (TrialError, SandboxError) as error:
        lost = str(error) or type(error).__name__
    completed = result.completed
    return StepResult(
        exit_code=-completed.signal if completed.signal else completed.exit_code,
        seconds=time.monotonic() - begun,
        command=_shown(call.table),
        timed_out=completed.timed_out,
        canceled=completed.canceled or (lost is not None and context.canceled()),
        lost=context.log.redactor.text(lost or completed.spawn_error or "") or None,
        output=_output(session, files["output.json"], context.log.redactor),
        usage=result.usage or context.usage(),
        completed=completed,
        log=context.log.account(),
    )


def _output(session: Session, path: PurePosixPath, redactor: Redactor) -> bytes | None:
    """Return what the worker wrote, without secrets; one byte more than allowed tells that it was too much."""
    try:
        return redactor.bytes(session.get(path, max_bytes=MAX_ENVELOPE_BYTES + 1))
    except FileNotFoundError:
        return None
    except (OSError, SandboxError):
        return b"\0"


def _shown(table: Mapping[str, Any]) -> str:
    """Return a worker's command in one line, for fingerprints and people."""
    if "command" in table:
        return str(table["command"])
    words = table.get("argv") or [table.get("use", "command")]
    return " ".join(str(word) for word in words)
