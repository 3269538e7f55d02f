"""The loop: take up decisions, check, do a step, check, move on, until the run has ended or waits for a human."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from evalwright.errors import Interrupted
from evalwright_plugins.workflow.approvals.orders import Inbox, Order
from evalwright_plugins.workflow.drive import attempt, desk
from evalwright_plugins.workflow.drive.after import JUDGE, SETTLE
from evalwright_plugins.workflow.drive.ask import Ask, End, Stop
from evalwright_plugins.workflow.drive.before import BEFORE
from evalwright_plugins.workflow.drive.turn import Turn, first
from evalwright_plugins.workflow.evidence import EvidenceIndex
from evalwright_plugins.workflow.record import Request, State, Status

__all__ = ["Drive", "Gate"]

TICK_SECONDS = 0.05
Gate = Callable[[Turn, Request, str], Order | None]
"""Answers a request, or nobody does. The text says why the answer before it was refused, where one was."""


@dataclass(slots=True, kw_only=True)
class Drive:
    """Drives one run. ``gate`` answers requests where something is there that can; ``canceled`` says that this process shall
    end; ``notify`` hears of requests and ends.
    """

    turn: Turn
    index: EvidenceIndex
    gate: Gate
    canceled: Callable[[], bool]
    notify: Callable[[str, str], None]

    def run(self) -> State:
        """Go on until the run has ended or waits. Raises ``Interrupted`` when canceled; the run can then be resumed."""
        self._bind()
        self._recover()
        while not self.turn.state.status.terminal:
            if self.canceled():
                raise Interrupted("the run was interrupted", hint=f"resume it: evalwright work resume {self.turn.state.run}")
            if self._ordered():
                continue
            if self.turn.state.status is Status.WAITING_HUMAN:
                if not self._decided():
                    break
            else:
                self._advance()
        if self.turn.state.status.terminal:
            self.notify("ended", str(self.turn.state.status))
        return self.turn.state

    def _bind(self) -> None:
        state, journal = self.turn.state, self.turn.journal
        if state.status.terminal:
            return
        bound = self.turn.site.bind()
        if state.workspace is None:
            journal.write("WORKSPACE_BOUND", bound)
        if state.status is Status.CREATED:
            journal.write("RUN_STARTED", {})

    def _recover(self) -> None:
        """A step that was under way when its driver died has ended: as its evidence tells, or half-way."""
        state, outcome = self.turn.state, self.turn.state.outcome
        if state.status is not Status.RUNNING or outcome is None or outcome.finished is not None:
            return
        if outcome.evidence is not None:
            attempt.finish(self.turn)
            return
        self._lost("the driver was lost")

    def _ordered(self) -> bool:
        """Carry out what people have ordered meanwhile; tell whether something was."""
        inbox, found = Inbox(self.turn.files.inbox), False
        for name, order in inbox.waiting():
            found = True
            inbox.settle(name, desk.answer(self.turn, order))
        return found

    def _decided(self) -> bool:
        """Act upon a decision, asking the gate for one if there is none; tell whether there was one."""
        state, refused = self.turn.state, ""
        while state.decision is None and state.request is not None:
            order = self.gate(self.turn, state.request, refused)
            if order is None:
                return self._ordered()
            answer = desk.answer(self.turn, order)
            refused = "" if answer.ok else answer.message
        if state.decision is not None:
            desk.take_up(self.turn)
        return True

    def _advance(self) -> None:
        """Do the next thing: settle and judge a step that has finished, else begin the one where the run stands."""
        outcome, turn = self.turn.state.outcome, self.turn
        if outcome is None or outcome.finished is None or outcome.lost:
            self._begin()
        elif stop := first(SETTLE, turn):
            self._stop(stop)
        elif outcome.finished.get("infra"):
            retries = turn.state.infrastructure[outcome.step] - 1
            if self._waited(turn.plan.config.retry.backoff_seconds * 2**retries):
                self._begin()
        elif stop := first(JUDGE, turn):
            self._stop(stop)

    def _begin(self) -> None:
        stop = first(BEFORE, self.turn)
        if stop:
            self._stop(stop)
            return
        begun = time.monotonic()
        attempt.begin(self.turn, self.index, self._cut)
        spent = round(time.monotonic() - begun, 3)
        outcome = self.turn.state.outcome
        assert outcome
        if outcome.evidence is not None:
            attempt.finish(self.turn)
        elif self.canceled():
            self._lost("the driver was told to end")
        else:
            data = {"step": outcome.step, "attempt": outcome.attempt, "status": "cancelled", "spent": {"wall": spent}}
            self.turn.journal.write("STEP_FINISHED", data)

    def _lost(self, cause: str) -> None:
        """Put on record that a step was cut off half-way."""
        outcome = self.turn.state.outcome
        assert outcome
        self.turn.journal.write("RUN_INTERRUPTED", {"cause": cause})
        self.turn.journal.write("STEP_FINISHED", {"step": outcome.step, "attempt": outcome.attempt, "status": "crashed"})

    def _stop(self, stop: Stop) -> None:
        if isinstance(stop, End):
            self.turn.journal.write("RUN_TERMINAL", {"status": "FAILED", "reason": stop.reason})
        if isinstance(stop, Ask):
            desk.ask(self.turn, stop)
            self.notify("waiting", stop.kind)

    def _waited(self, seconds: float) -> bool:
        """Wait before a step is tried again; ``False``, at once, when this process or the run shall end."""
        until = time.monotonic() + seconds
        while not self._cut():
            left = until - time.monotonic()
            if left <= 0:
                return True
            time.sleep(min(left, TICK_SECONDS))
        return False

    def _cut(self) -> bool:
        return self.canceled() or Inbox(self.turn.files.inbox).stopped()
