"""What the actions share: the repository, who acts, and how a run's state is shown and turned into an exit status."""

from __future__ import annotations

import contextlib
import getpass
import os
import shlex
import sys
from collections.abc import Callable, Generator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.errors import UsageError
from evalwright.interfaces import VerbAnswer
from evalwright.ledger import Event
from evalwright.processes import Supervisor
from evalwright_plugins.workflow.drive.ask import commands_of
from evalwright_plugins.workflow.drive.runs import Run, Runs
from evalwright_plugins.workflow.record import Request, State, Status
from evalwright_plugins.workflow.sites.repository import executor
from evalwright_plugins.workflow.workspace import Repository

__all__ = [
    "GARBLED",
    "age_of",
    "answer_of",
    "exit_code",
    "here",
    "interactive",
    "line_of",
    "opened",
    "request_data",
    "request_text",
    "run_data",
    "run_text",
    "span",
    "who",
]

WAITS, FAILED, INFRASTRUCTURE = 10, 20, 30
SHOWN_CHARACTERS = 200
GARBLED = (KeyError, TypeError, ValueError, AttributeError)
"""What reading a record raises whose chain is whole, and whose events are not what they should be."""

FEW_SECONDS = 9.95
UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


@contextlib.contextmanager
def opened(
    options: Any, warn: Callable[[str, str], None] | None = None, heard: Callable[[Event], object] | None = None
) -> Generator[Runs]:
    """Give the runs of the repository that ``--repo`` names. Raises ``UsageError`` for none."""
    with Supervisor() as supervisor:
        repository = Repository.find(Path(options.repo or "."), executor(supervisor))
        yield Runs(repository, warn or (lambda _code, _text: None), heard)


def who(options: Any) -> str:
    """Return who acts. Raises ``UsageError`` for an empty name."""
    name = options.by if options.by is not None else _user()
    if not name.strip():
        raise UsageError("--by is empty", hint="name who decides")
    return str(name)


def _user() -> str:
    """Return the name of the process's user, or the number of one who has none, as in a container."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def exit_code(state: State) -> int:
    """Return the exit status that tells how a run stands: 0 done, 10 waits, 20 failed, 30 waits for its environment."""
    if state.status is Status.SUCCEEDED:
        return 0
    if state.status.terminal:
        return FAILED
    return INFRASTRUCTURE if state.request and state.request.kind == "infra" else WAITS


def answer_of(run: Run, state: State, options: Any) -> VerbAnswer:
    """Return what a run that was driven has come to. ``options`` are those of the call."""
    steps = commands_of(run.id, state.request) if state.request else {}
    if state.status.terminal:
        steps = {f"evalwright work events {run.id}": "read what happened"}
    text = run_text(run, state, options)
    return VerbAnswer(data=run_data(run, state), text=text, exit_code=exit_code(state), next_steps=here(steps, options))


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


def run_text(run: Run, state: State, options: Any = None) -> str:
    """Return a run for people. ``options`` are those of the call, for commands that can be pasted as they are."""
    where = "" if state.status.terminal else f" at {line_of(state.step)}"
    lines = [f"{line_of(run.id)} · {line_of(state.work)} · {state.status}{where}"]
    if state.ended:
        lines.append(f"  {line_of(state.ended['reason'])}")
    if state.candidate and state.workspace:
        lines.append(f"  candidate {line_of(state.candidate[:12])} on {line_of(state.workspace['branch'])}")
    if state.decision:
        resume = next(iter(here({f"evalwright work resume {run.id}": ""}, options)))
        lines.append(f"  {state.decision.decision} by {line_of(state.decision.by)}; go on with: {resume}")
    elif state.request:
        lines += request_text(run.id, state.request, options)
    return "\n".join(lines) + "\n"


def request_text(run: str, request: Request, options: Any = None) -> list[str]:
    """Return a request for people, with the commands that answer it."""
    lines = [f"  waits ({request.kind}): {line_of(request.reasons[0] if request.reasons else request.transition)}"]
    lines += [f"    {line_of(reason)}" for reason in request.reasons[1:]]
    lines += [f"  a yes means: {line_of(request.effect)}"] if request.effect else []
    commands = here(commands_of(run, request), options)
    width = max(map(len, commands))
    return lines + [f"  {command:<{width}}  {meaning}" for command, meaning in commands.items()]


def interactive() -> bool:
    """Tell whether a person sits at both ends."""
    return sys.stdin.isatty() and sys.stdout.isatty() and not os.environ.get("CI")


def here(commands: Mapping[str, str], options: Any) -> dict[str, str]:
    """Return commands as they are to be pasted: with the repository that was named, quoted for a shell."""
    place = f" --repo {shlex.quote(options.repo)}" if options and options.repo else ""
    return {f"{command}{place}": meaning for command, meaning in commands.items()}


def line_of(text: object, width: int = SHOWN_CHARACTERS) -> str:
    """Return foreign text as part of a line that a terminal only shows: control characters as escapes, and cut."""
    shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in str(text)[: width + 1])
    return shown if len(shown) <= width else f"{shown[: width - 1]}…"


def age_of(ts: str) -> float | None:
    """Return how many seconds ago a time of a ledger was, never less than none; ``None`` for what is no time."""
    try:
        return max(0.0, (datetime.now(UTC) - datetime.fromisoformat(ts)).total_seconds())
    except (TypeError, ValueError):
        return None


def span(seconds: float) -> str:
    """Return a duration for people, in its two largest units: ``4.2 s``, ``3 min 20 s``, ``2 d 5 h``."""
    if seconds < FEW_SECONDS:
        return f"{seconds:.1f} s"
    left, parts = round(seconds), list[str]()
    for size, unit in UNITS:
        if left >= size:
            parts.append(f"{left // size} {unit}")
            left %= size
    return " ".join([*parts, *([f"{left} s"] if left else [])][:2])
