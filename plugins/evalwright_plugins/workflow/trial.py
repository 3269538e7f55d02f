"""One run of a workflow as one trial: from the workspace as the case gives it to the candidate, and what is kept of it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from evalwright.errors import Interrupted, TrialError
from evalwright.interfaces import Command, Runner, RunnerContext
from evalwright.ledger import read_events
from evalwright.model import Completed, RunnerResult
from evalwright.processes import Supervisor
from evalwright_plugins.runners.command import rendered
from evalwright_plugins.workflow.drive.attempt import UNAVAILABLE
from evalwright_plugins.workflow.drive.creation import creation
from evalwright_plugins.workflow.drive.drive import Drive
from evalwright_plugins.workflow.drive.gates import gate_of
from evalwright_plugins.workflow.drive.turn import Turn
from evalwright_plugins.workflow.drive.unattended import Unattended
from evalwright_plugins.workflow.evidence import EvidenceIndex
from evalwright_plugins.workflow.findings.book import Book
from evalwright_plugins.workflow.metrics import metrics_of
from evalwright_plugins.workflow.model.loading import Plan
from evalwright_plugins.workflow.record import Journal, State, Status
from evalwright_plugins.workflow.sites import RunFiles
from evalwright_plugins.workflow.sites.checkout import Checkout, RepositoryBroken
from evalwright_plugins.workflow.sites.repository import executor
from evalwright_plugins.workflow.sites.trial import TrialSite
from evalwright_plugins.workflow.workspace import GitError

__all__ = ["ENDED", "Evaluation"]

FAILED = 20
ENDED = "workflow"
"""The type of the event that tells the metrics of a run."""


class Evaluation:
    """One trial. ``place`` is a private directory for the run's own files; git is run on this host by ``supervisor``."""

    def __init__(
        self,
        plan: Plan,
        context: RunnerContext,
        worker: Callable[[str, Mapping[str, Any]], Runner[Any]],
        supervisor: Supervisor,
        place: Path,
    ) -> None:
        self._plan = plan
        self._context = context
        self._worker = worker
        self._execute = executor(supervisor)
        self._place = place
        self._files = RunFiles(place / f"{plan.config.work}-1")

    def run(self, workspace: Path) -> RunnerResult:
        """Drive the run to its end, and leave its candidate in the workspace.

        Raises ``TrialError`` where the environment of a step was not there: that is nobody's failure.
        """
        self._files.path.mkdir()
        checkout = Checkout(workspace, self._files.path.name, self._execute)
        site = TrialSite(checkout, self._context, self._worker)
        with self._journal() as journal:
            journal.write("RUN_CREATED", creation(self._plan, checkout.base, workspace, {}))
            book = Book(self._place / "findings.jsonl", self._plan.config.work)
            turn = Turn(self._plan, self._files, journal, site, book)
            gate = Unattended(gate_of(turn, partial(self._ask, checkout)), fixed=isinstance(self._plan.config.on_gate, str))
            broken = self._drive(turn, gate)
            broken = _settled(checkout, turn.state.candidate) or broken
        metrics = metrics_of(read_events(self._files.ledger), turn.state)
        self._context.emit(ENDED, {"status": str(turn.state.status), "metrics": metrics})
        if gate.infrastructure and (reason := _harness(site, gate.infrastructure)):
            raise TrialError("infrastructure", reason, transient=True)
        details = self._details(turn.state, broken) | {"metrics": metrics}
        return RunnerResult(completed=self._completed(turn.state, site, broken), usage=site.usage, details=details)

    def _drive(self, turn: Turn, gate: Unattended) -> str | None:
        """Go on until the run has ended or its time is over; return what made it impossible to go on."""
        drive = Drive(
            turn=turn,
            index=EvidenceIndex(self._place / "evidence"),
            gate=gate,
            canceled=self._over,
            notify=lambda _event, _kind: None,
        )
        try:
            drive.run()
        except Interrupted:
            return None
        except (GitError, RepositoryBroken) as error:
            turn.journal.write("RUN_TERMINAL", {"status": "FAILED", "reason": error.message})
            return error.message
        return None

    def _over(self) -> bool:
        return self._context.canceled() or self._context.deadline.expired

    def _ask(self, checkout: Checkout, command: Command) -> Completed:
        """Run the gate's program in the trial's sandbox, beside the workspace: no file there is taken for its own."""
        session, variables = self._context.session(), self._context.environment()
        words = [rendered(word, variables) for word in command.argv]
        timeout = min(command.timeout or 0.0, self._context.deadline.remaining)
        done = session.execute(replace(command, argv=words, env=variables, cwd=str(session.exchange), timeout=timeout))
        checkout.guard()
        return done

    @contextlib.contextmanager
    def _journal(self) -> Generator[Journal]:
        """Give the run's record; whatever happens, it is kept with the trial, and so is what the steps have said."""
        files = self._files
        try:
            with Journal(files.ledger, run=files.path.name, work=self._plan.config.work) as journal:
                yield journal
        finally:
            kept = {"workflow.jsonl": files.ledger, "workflow.head.json": files.ledger.with_name("ledger.head.json")}
            kept["findings.jsonl"] = self._place / "findings.jsonl"
            kept |= {path.name: path for path in sorted((files.path / "logs").glob("*.log"))}
            kept |= {f"{path.stem}.output.json": path for path in sorted((files.path / "outputs").glob("*.json"))}
            for name, path in kept.items():
                if path.is_file():
                    self._context.artifact(name, path)

    def _details(self, state: State, broken: str | None) -> dict[str, Any]:
        reason = broken or (state.ended["reason"] if state.ended else "its time was over")
        return {"run": state.run, "status": str(state.status), "reason": reason, "candidate": state.candidate}

    def _completed(self, state: State, site: TrialSite, broken: str | None) -> Completed:
        """Return how the trial ended: as the run did, with what the last worker said."""
        last = replace(site.last, exit_code=None, signal=None, spawn_error=None, leaked_processes=site.leaked)
        last = replace(last, timed_out=False, canceled=False, duration=state.spent.get("wall", 0.0))
        if state.status is Status.SUCCEEDED and not broken:
            return replace(last, exit_code=0, limit=None)
        if state.status.terminal or broken:
            return replace(last, exit_code=FAILED)
        canceled = self._context.canceled()
        return replace(last, canceled=canceled, timed_out=not canceled)


def _settled(checkout: Checkout, candidate: str) -> str | None:
    """Leave the candidate in the workspace; return why that could not be done."""
    try:
        checkout.settle(candidate)
    except (GitError, RepositoryBroken) as error:
        return error.message
    return None


def _harness(site: TrialSite, reason: str) -> str | None:
    """Return the reason where the environment of a step was lost, or was said not to be there.

    A worker that hangs, crashes or writes what nobody can read is a part of what is measured: no arm may gain by that.
    """
    return reason if site.lost is not None or site.last.exit_code == UNAVAILABLE else None
