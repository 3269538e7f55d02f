"""``jobs prune``: what dead processes left of runs, and its removal."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.coordinate import Lease, classify, clear_leftovers
from evalwright.errors import RunBusy
from evalwright.rundir import Layout, RunDirectory, abandoned, runs_in
from evalwright.rundir.upkeep import discard_experiment, empty_experiments, needed_runs
from evalwright.workspace import remove_tree

__all__ = ["prune"]

Record = dict[str, Any]


def prune(session: Session, layout: Layout, workspaces: Path | None) -> Reply:
    """Remove stale reservations, orphaned runs and records of experiments without runs.

    Finished, running and resumable runs are never touched, nor runs of an experiment that has others.
    """
    confirmed = session.options.yes or session.options.force
    by_state: dict[str, list[str]] = {}
    for run in runs_in(layout):
        entry = classify(run, {})
        state = entry["state"] if entry["state"] != "stale" or entry["reservation"]["present"] else "resumable"
        by_state.setdefault(state, []).append(run.path.name)
    needed = needed_runs(layout, by_state.get("orphaned", []))
    by_state["needed"] = [name for name in by_state.get("orphaned", []) if name in needed]
    by_state["orphaned"] = [name for name in by_state.get("orphaned", []) if name not in needed]
    empty = empty_experiments(layout, without=by_state["orphaned"])
    by_state["orphaned"].extend(run.path.name for run in abandoned(layout))
    removed: dict[str, list[str]] = {"reservations": [], "runs": [], "experiments": []}
    if confirmed:
        removed["reservations"] = [name for name in by_state.get("stale", []) if _drop_reservation(layout, name)]
        clear_leftovers(layout, workspaces)
        removed["runs"] = [name for name in by_state["orphaned"] if _drop(RunDirectory(layout.runs / name), layout)]
        removed["experiments"] = [name for name in empty if discard_experiment(layout, name)]
    refused = [
        {"run_id": name, "state": {"resumable": "stale", "needed": "orphaned"}.get(state, state)}
        for state in ("completed", "running", "resumable", "needed")
        for name in by_state.get(state, [])
    ]
    data = {
        "confirmed": confirmed,
        "candidates": {
            "stale_reservations": by_state.get("stale", []),
            "orphaned_runs": by_state["orphaned"],
            "empty_experiments": empty,
        },
        "removed": removed,
        "refused": refused,
    }
    reply = Reply(data=data, text=_text(data))
    if not confirmed:
        reply.then("evalwright jobs prune --yes --json", "remove the candidates")
    return reply


def _drop_reservation(layout: Layout, name: str) -> bool:
    """Take the lease, so that no live owner is hit, and give it back: that removes the record."""
    with contextlib.suppress(RunBusy, OSError):
        Lease.take(layout.run(name), 1).release()
        return True
    return False


def _drop(run: RunDirectory, layout: Layout) -> bool:
    with contextlib.suppress(RunBusy, OSError), Lease.locked(run):
        remove_tree(run.path, inside=layout.runs)
        return not run.path.exists()
    return False


def _text(data: Record) -> str:
    shown = data["removed"] if data["confirmed"] else data["candidates"]
    verb = "removed" if data["confirmed"] else "would remove"
    lines = [f"{verb} {what.replace('_', ' ')}: {', '.join(names) or 'none'}" for what, names in shown.items()]
    return "\n".join([*lines, "" if data["confirmed"] else "do it:  evalwright jobs prune --yes"]).rstrip() + "\n"
