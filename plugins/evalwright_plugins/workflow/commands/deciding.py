"""``work approve``, ``reject``, ``adopt`` and ``stop``: what people decide, while a run is driven or after."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from evalwright.errors import RunBusy, RunConflict, UsageError
from evalwright.interfaces import VerbAnswer
from evalwright_plugins.workflow.approvals.orders import Answer, Inbox, Order
from evalwright_plugins.workflow.commands.common import answer_of, opened, who
from evalwright_plugins.workflow.commands.driving import resume
from evalwright_plugins.workflow.drive import desk
from evalwright_plugins.workflow.drive.runs import Run, Runs
from evalwright_plugins.workflow.workspace import owner_of

__all__ = ["adopt", "approve", "reject", "stop"]

Warn = Callable[[str, str], None]
DRIVER_SECONDS = 30.0
TICK_SECONDS = 0.1
MAX_DIGITS = 15


def approve(options: Any, warn: Warn) -> VerbAnswer:
    """Say yes to what a run waits for, and drive it on."""
    return _decide(options, warn, "approve")


def reject(options: Any, warn: Warn) -> VerbAnswer:
    """Say no, which ends the run as failed."""
    return _decide(options, warn, "reject")


def adopt(options: Any, warn: Warn) -> VerbAnswer:
    """Put a commit in the candidate's place, and drive the run on."""
    if not options.value:
        raise UsageError("work adopt needs RUN and COMMIT", hint="evalwright work adopt RUN COMMIT")
    return _decide(options, warn, "adopt")


def stop(options: Any, warn: Warn) -> VerbAnswer:
    """End a run as cancelled, with the step that is under way."""
    return _decide(options, warn, "stop")


def _decide(options: Any, warn: Warn, action: Any) -> VerbAnswer:
    with opened(options) as runs:
        run = runs.find(options.target)
        state = run.state()
        request = _meant(options) or (state.request.seq if state.request and action != "stop" else None)
        reason = options.reason or ""
        order = Order(action=action, by=who(options), request=request, commit=options.value, reason=reason)
        answer, driven = _ordered(runs, run, order)
        if not answer.ok:
            raise RunConflict(f"{run.id}: {answer.message}", hint=f"look at it: evalwright work status {run.id}")
        state = run.state()
        if driven or state.status.terminal or options.no_wait:
            return answer_of(run, state, options)
    options.target = run.id
    return resume(options, warn)


def _meant(options: Any) -> int | None:
    """Return the request that ``--request`` names. Raises ``UsageError`` for what is no number."""
    if options.request is None:
        return None
    if not options.request.isascii() or not options.request.isdecimal() or len(options.request) > MAX_DIGITS:
        raise UsageError(f"--request {options.request} is no number", hint="see: evalwright work inbox", key="request")
    return int(options.request)


def _ordered(runs: Runs, run: Run, order: Order) -> tuple[Answer, bool]:
    """Have an order carried out by whoever drives the run, or here where nobody does (any more); tell which."""
    give_up = time.monotonic() + DRIVER_SECONDS
    while True:
        try:
            with runs.at_rest(run) as turn:
                answer = desk.answer(turn, order)
                if turn.state.decision and not turn.state.decision.approved:
                    desk.take_up(turn)
                runs.leave(run, turn.state)
            return answer, False
        except RunBusy:
            sent = _sent(run, order, give_up)
        if sent:
            return sent, True
        if time.monotonic() >= give_up:
            raise RunBusy(f"{run.id} is driven by somebody who did not answer", hint="try again when its step has ended")


def _sent(run: Run, order: Order, give_up: float) -> Answer | None:
    """Leave an order to the driver and return its answer; ``None``, the order taken back, when it has gone or says nothing."""
    inbox = Inbox(run.files.inbox)
    name = inbox.put(order)
    try:
        while True:
            answer = inbox.answer(name)
            if answer:
                return answer
            time.sleep(TICK_SECONDS)
            if time.monotonic() >= give_up or owner_of(run.files.driver) is None:
                break
    finally:
        withdrawn = inbox.withdraw(name)
    return None if withdrawn else inbox.answer(name) or Answer(ok=True, message="it was taken up")
