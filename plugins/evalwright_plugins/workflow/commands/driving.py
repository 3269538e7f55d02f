"""``work start`` and ``work resume``: drive a run until it has ended or waits."""

from __future__ import annotations

import contextlib
import select
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import UsageError
from evalwright.interfaces import VerbAnswer
from evalwright.ledger import Event
from evalwright.processes import Stop
from evalwright_plugins.workflow.approvals.orders import Action, Inbox, Order
from evalwright_plugins.workflow.commands.common import answer_of, interactive, opened, request_text, who
from evalwright_plugins.workflow.commands.lines import event_line
from evalwright_plugins.workflow.commands.readiness import start_problems
from evalwright_plugins.workflow.drive.drive import Gate
from evalwright_plugins.workflow.drive.turn import Turn
from evalwright_plugins.workflow.model.loading import invalid, load_plan
from evalwright_plugins.workflow.record import Request

__all__ = ["prompt_of", "resume", "start"]

Warn = Callable[[str, str], None]
TICK_SECONDS = 0.2
TOLD = frozenset(
    {
        "BUDGET_EXTENDED",
        "CANDIDATE_PINNED",
        "DECISION_RECORDED",
        "RUN_INTERRUPTED",
        "RUN_TERMINAL",
        "STEP_FINISHED",
        "STEP_STARTED",
        "WORKSPACE_BOUND",
    }
)
ANSWERS: Mapping[str, Action] = {
    "a": "approve",
    "approve": "approve",
    "r": "reject",
    "reject": "reject",
    "s": "stop",
    "stop": "stop",
}


def start(options: Any, warn: Warn) -> VerbAnswer:
    """Start a run of what ``--config`` says. Raises ``SuiteError`` for what could not be driven here, and nothing is made."""
    if not options.config:
        raise UsageError("work start needs --config FILE", hint="see: docs/how-to/run-a-workflow.md", key="config")
    path = Path(options.config)
    plan = load_plan(path)
    with opened(options, warn, narrate) as runs:
        problems = start_problems(runs.repository, plan)
        if problems:
            raise invalid(path, problems)
        stop = _listening()
        run, state = runs.start(plan, options.run_id or options.target, prompt_of(options, stop), lambda: stop.requested)
        return answer_of(run, state, options)


def resume(options: Any, warn: Warn) -> VerbAnswer:
    """Drive a run on."""
    with opened(options, warn, narrate) as runs:
        run = runs.find(options.target)
        stop = _listening()
        return answer_of(run, runs.resume(run, prompt_of(options, stop), lambda: stop.requested), options)


def narrate(event: Event) -> None:
    """Tell on stderr what a run that is driven has come to; where nobody listens any more it goes on all the same."""
    if event["type"] in TOLD:
        with contextlib.suppress(OSError):
            sys.stderr.write(f"{event_line(event)}\n")


def prompt_of(options: Any, stop: Stop) -> Gate:
    """Return what asks the person at the terminal, or nobody where nobody sits there."""
    if options.json or not interactive():
        return lambda _turn, _request, _refused: None

    def ask(turn: Turn, request: Request, refused: str) -> Order | None:
        sys.stdout.write(f"refused: {refused}\n" if refused else "")
        sys.stdout.write("\n".join(request_text(turn.state.run, request, options)) + "\n")
        inbox, word = Inbox(turn.files.inbox), "?"
        while word and word not in ANSWERS:
            sys.stdout.write("approve, reject, stop, or leave it waiting [a/r/s/Enter]: ")
            sys.stdout.flush()
            while not select.select([sys.stdin], [], [], TICK_SECONDS)[0]:
                if stop.requested or next(inbox.waiting(), None):
                    return None
            word = sys.stdin.readline().strip().lower()
        action = ANSWERS.get(word)
        return Order(action=action, by=who(options), request=None if action == "stop" else request.seq) if action else None

    return ask


def _listening() -> Stop:
    stop = Stop()
    stop.listen()
    return stop
