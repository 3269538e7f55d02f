"""What the actions share: the repository, who acts, and how a run's state is shown and turned into an exit status."""

from __future__ import annotations

import contextlib
import getpass
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from evalwright.errors import UsageError
from evalwright.interfaces import VerbAnswer
from evalwright.processes import Supervisor
from evalwright_plugins.workflow.drive.ask import commands_of
from evalwright_plugins.workflow.drive.runs import Run, Runs
from evalwright_plugins.workflow.record import Request, State, Status
from evalwright_plugins.workflow.sites.repository import executor
from evalwright_plugins.workflow.workspace import Repository

__all__ = ["answer_of", "exit_code", "opened", "request_data", "request_text", "run_data", "who"]

WAITS, FAILED, INFRASTRUCTURE = 10, 20, 30


@contextlib.contextmanager
def opened(options: Any, warn: Callable[[str, str], None] | None = None) -> Generator[Runs]:
    """Give the runs of the repository that ``--repo`` names. Raises ``UsageError`` for none."""
    with Supervisor() as supervisor:
        repository = Repository.find(Path(options.repo or "."), executor(supervisor))
        yield Runs(repository, (lambda text: warn("W_NOTIFY_FAILED", text)) if warn else lambda _text: None)


def who(options: Any) -> str:
    """Return who acts. Raises ``UsageError`` for an empty name."""
    name = options.by if options.by is not None else getpass.getuser()
    if not name.strip():
        raise UsageError("--by is empty", hint="name who decides")
    return str(name)


def exit_code(state: State) -> int:
    """Return the exit status that tells how a run stands: 0 done, 10 waits, 20 failed, 30 waits for its environment."""
    if state.status is Status.SUCCEEDED:
        return 0
    if state.status.terminal:
        return FAILED
    return INFRASTRUCTURE if state.request and state.request.kind == "infra" else WAITS


def answer_of(run: Run, state: State) -> VerbAnswer:
    """Return what a run that was driven has come to."""
    steps = commands_of(run.id, state.request.kind, state.request.effect) if state.request else {}
    if state.status.terminal:
        steps = {f"evalwright work events {run.id}": "read what happened"}
    return VerbAnswer(data=run_data(run, state), text=run_text(run, state), exit_code=exit_code(state), next_steps=steps)


def run_data(run: Run, state: State) -> dict[str, Any]:
    """Return a run for machines."""
    running = state.outcome if state.outcome and state.outcome.finished is None else None
    return {
        "run": run.id,
        "work": state.work,
        "status": str(state.status),
        "step": state.step,
        "running": {"step": running.step, "attempt": running.attempt} if running else None,
        "candidate": state.candidate,
        "branch": (state.workspace or {}).get("branch"),
        "attempts": dict(state.attempts),
        "review_rounds": state.review_rounds,
        "spent": dict(state.spent),
        "untold": sorted(state.untold),
        "request": request_data(state.request) if state.request else None,
        "reason": state.ended["reason"] if state.ended else None,
    }


def request_data(request: Request) -> dict[str, Any]:
    """Return a request for machines."""
    return {
        "seq": request.seq,
        "kind": request.kind,
        "transition": request.transition,
        "reasons": list(request.reasons),
        "effect": request.effect,
        "subject": dict(request.subject),
    }


def run_text(run: Run, state: State) -> str:
    """Return a run for people."""
    lines = [f"{run.id} · {state.work} · {state.status}" + ("" if state.status.terminal else f" at {state.step}")]
    if state.ended:
        lines.append(f"  {state.ended['reason']}")
    if state.candidate and state.workspace:
        lines.append(f"  candidate {state.candidate[:12]} on {state.workspace['branch']}")
    if state.request:
        lines += request_text(run.id, state.request)
    return "\n".join(lines) + "\n"


def request_text(run: str, request: Request) -> list[str]:
    """Return a request for people, with the commands that answer it."""
    lines = [f"  waits ({request.kind}): {request.reasons[0] if request.reasons else request.transition}"]
    lines += [f"    {reason}" for reason in request.reasons[1:]]
    commands = commands_of(run, request.kind, request.effect)
    width = max(map(len, commands))
    return lines + [f"  {command:<{width}}  {meaning}" for command, meaning in commands.items()]


def interactive() -> bool:
    """Tell whether a person sits at both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not os.environ.get("CI")
