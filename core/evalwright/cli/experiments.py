"""What verbs say of an experiment: on which screen, in which state its runs are, and what to do next."""

from __future__ import annotations

import locale
import os
import shlex
import shutil
from collections.abc import Sequence

from evalwright.cli.contract import VERBS
from evalwright.cli.dispatch import Session
from evalwright.coordinate import state_of
from evalwright.report import ExperimentView
from evalwright.report.screen import Screen

__all__ = ["WIDTH", "experiment_state", "next_commands", "run_states", "screen", "warn_of"]

WIDTH = 100
SIGNS = "█▒░–·×…≥✗"


def screen() -> Screen:
    """Return the screen that stdout is: as wide as the terminal (``COLUMNS`` counts), ASCII where the locale has no more."""
    encoding = os.environ.get("PYTHONIOENCODING", "").partition(":")[0] or locale.getencoding()
    try:
        SIGNS.encode(encoding)
        shows = True
    except (UnicodeEncodeError, LookupError):
        shows = False
    return Screen(width=shutil.get_terminal_size((WIDTH, 24)).columns or WIDTH, unicode=shows)


def run_states(view: ExperimentView) -> dict[str, str]:
    """Return the state of every run that exists, by id."""
    return {run.id: state_of(run.run) for run in view.runs}


def experiment_state(states: Sequence[str]) -> str:
    """Return the state of an experiment whose runs are in these: running, completed, orphaned, else stale (resumable)."""
    if "running" in states:
        return "running"
    for state in ("completed", "orphaned"):
        if states and all(found == state for found in states):
            return state
    return "stale"


def warn_of(session: Session, view: ExperimentView) -> None:
    """Warn of what nothing vouches for, and of what is not finished."""
    for run in view.runs:
        for warning in run.warnings:
            session.warn(warning["code"], f"{run.id}: {warning['message']}")
    if not view.finished:
        count = view.planned - len(view.trials)
        session.warn("W_PARTIAL_RUN", f"{view.id} is unfinished: {count} of {view.planned} trials have no result yet")


def next_commands(view: ExperimentView, *, told: Sequence[str] = (), run_dir: str | None = None) -> list[str]:
    """Return at most two commands to go on with.

    ``told`` are flags of ``report`` whose answer is on the screen now; ``run_dir`` is where the only run lies, if it was
    named by its directory.
    """
    name = shlex.quote(view.id)
    commands: list[str] = []
    if not view.finished and run_dir is None:
        going_on = "running" in run_states(view).values()
        commands.append(f"evalwright status {name}" if going_on else f"evalwright run --resume {name}")
    if len(view.arms) > 1 and "compare" in VERBS and view.finished:
        commands.append(f"evalwright compare {name}")
    subject = name if run_dir is None else f"--run-dir {shlex.quote(run_dir)}"
    failed = any(trial.status != "pass" for trial in view.trials)
    for flags in ("--failures", "--group-by finding"):
        if failed and flags not in told:
            commands.append(f"evalwright report {subject} {flags}")
    return commands[:2]
