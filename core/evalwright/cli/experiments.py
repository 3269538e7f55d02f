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
from evalwright.errors import RunCorrupt
from evalwright.report import ExperimentView
from evalwright.report.screen import Screen

__all__ = ["WIDTH", "exit_code_of", "experiment_state", "next_commands", "run_states", "screen", "warn_of"]

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


def exit_code_of(*views: ExperimentView) -> int:
    """Return the exit status of an answer: that of ``E_RUN_CORRUPT`` where a run is damaged, even if the rest is told."""
    return RunCorrupt.exit_code if any(view.damaged for view in views) else 0


def warn_of(session: Session, view: ExperimentView) -> None:
    """Warn of what nothing vouches for, of what is damaged, and of what is not finished."""
    for run in view.runs:
        for warning in run.warnings:
            session.warn(warning["code"], f"{run.id}: {warning['message']}")
    for run_id, why in view.damaged.items():
        session.warn("W_RUN_DAMAGED", f"{run_id} is not counted: {why}")
    if view.partial:
        count = view.planned - len(view.trials)
        session.warn("W_PARTIAL_RUN", f"{view.id} is unfinished: {count} of {view.planned} trials have no result yet")


def next_commands(view: ExperimentView, *, told: Sequence[str] = (), run_dir: str | None = None) -> list[str]:
    """Return at most two commands to go on with.

    ``told`` are flags of ``report`` whose answer is on the screen now; ``run_dir`` is where the only run lies, if it was
    named by its directory.
    """
    name = shlex.quote(view.id)
    commands = [f"evalwright verify {name}"] if view.damaged else []
    if view.partial and not view.damaged and run_dir is None:
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
