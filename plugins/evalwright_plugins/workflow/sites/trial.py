"""Steps in a trial: in its workspace, each in a session of the trial's own sandbox."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.errors import SandboxError, UsageError
from evalwright.interfaces import Deadline, Runner, RunnerContext
from evalwright.model import Completed, Usage
from evalwright.redaction import Redactor
from evalwright_plugins.workflow.findings import EnvelopeError, read_envelope
from evalwright_plugins.workflow.sites.checkout import Checkout
from evalwright_plugins.workflow.sites.log import StepLog
from evalwright_plugins.workflow.sites.repository import digests_below
from evalwright_plugins.workflow.sites.site import StepCall, StepResult
from evalwright_plugins.workflow.sites.worker import StepContext, carry_out
from evalwright_plugins.workflow.workspace import Proof

__all__ = ["TrialSite"]

Workers = Callable[[str, Mapping[str, Any]], Runner[Any]]
USAGE_FILE = "usage.json"
ANSWER_FILE = "output.txt"
TELL_SECONDS = 0.25
OF_THE_TRIAL = ("OUTPUT_FILE", "USAGE_FILE", "TRANSCRIPT_FILE")
"""What every step has of its own instead; under evalctl's prefix it would lead to the trial's."""


class TrialSite:
    """The site of one run inside a trial. ``last`` is the last command that a worker has run, ``lost`` why it had
    no end, ``spent`` each step's usage.

    What the steps use is summed up while they run in the trial's own usage file, so that its limits hold for all of them.
    """

    def __init__(self, checkout: Checkout, context: RunnerContext, workers: Workers) -> None:
        self.last = Completed()
        self.lost: str | None = None
        self.leaked = 0
        self.spent: list[Usage] = []
        self._checkout = checkout
        self._context = context
        self._workers = workers
        self._told: Usage | None = None
        self._tell_at = 0.0

    @property
    def tree(self) -> Checkout:
        """Return the workspace."""
        return self._checkout

    @property
    def usage(self) -> Usage | None:
        """Return the sum over all steps that told theirs, ``None`` when none did."""
        return Usage.total_of(self.spent) if self.spent else None

    def proof(self) -> Proof:
        """Return the proof of the workspace."""
        return self._checkout.proof()

    def bind(self) -> Mapping[str, Any]:
        """Return the data of WORKSPACE_BOUND: the workspace is there from the start."""
        tree = self._checkout
        return {
            "workspaceId": tree.place.run,
            "repo": ".",
            "branch": tree.branch.removeprefix("refs/heads/"),
            "worktreePath": ".",
            "base": tree.base,
        }

    def adopt(self, commit: str) -> str:
        """Refuse: in a trial nobody has a commit of their own."""
        raise UsageError(f"{commit} cannot be adopted in a trial", hint="approve or reject")

    def digests(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return the digests of files of the workspace."""
        return digests_below(self._checkout.place.root, names)

    def run(self, call: StepCall, canceled: Callable[[], bool]) -> StepResult:
        """Carry out an attempt in a session of its own, within the trial's time."""
        runner = self._workers(call.step.table, call.table)
        with self._context.child(readonly=call.step.readonly) as child, StepLog(call.log, Redactor()) as log:
            context = StepContext(
                inner=child.session(),
                variables=_variables(child),
                deadline=Deadline.after(min(call.timeout, self._context.deadline.remaining)),
                log=log,
                canceled=lambda: self._tell(context) or canceled(),
                keep=lambda name, source: self._keep(f"{call.step.id}-{call.attempt}.{name}", source),
            )
            result = carry_out(call, runner, context)
        self._checkout.guard()
        self.last, self.lost = result.completed, result.lost
        self.leaked += result.completed.leaked_processes
        usage = _usage_in(result.output) or result.usage
        if usage:
            self.spent.append(usage)
            self._write(self.usage)
        return replace(result, usage=usage)

    def _tell(self, context: StepContext) -> bool:
        """Bring the trial's usage file up to date, a few times a second; return false."""
        if time.monotonic() >= self._tell_at:
            now = context.usage()
            self._write(Usage.total_of([*self.spent, now]) if now else self.usage)
            self._tell_at = time.monotonic() + TELL_SECONDS
        return False

    def _write(self, usage: Usage | None) -> None:
        if usage is not None and usage != self._told:
            known = {name: value for name, value in usage.as_json().items() if value is not None}
            known = {name: value for name, value in known.items() if name not in ("cost_source", "cost_computed")}
            session = self._context.session()
            with contextlib.suppress(OSError, SandboxError):  # an agent may have put something else there
                session.put(json.dumps(known).encode(), session.exchange / USAGE_FILE)
            self._told = usage

    def _keep(self, name: str, source: Path | bytes) -> None:
        self._context.artifact(name, source)


def _variables(child: RunnerContext) -> dict[str, str]:
    """Return the environment of a step's commands; the answer of the whole trial is a file of another name here."""
    found = {name: value for name, value in child.environment().items() if not name.endswith(OF_THE_TRIAL)}
    return found | {"EVALWRIGHT_ANSWER_FILE": str(child.session().exchange / ANSWER_FILE)}


def _usage_in(output: bytes | None) -> Usage | None:
    try:
        return read_envelope(output).usage if output is not None else None
    except EnvelopeError:
        return None
