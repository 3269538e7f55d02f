"""``jobs list|get|prune``: what runs there are, and what dead processes left."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply, paged
from evalwright.cli.project import Project, open_project
from evalwright.coordinate import Lease, classify, clear_leftovers
from evalwright.errors import RunBusy, UsageError
from evalwright.rundir import Layout, RunDirectory, abandoned, read_summaries, runs_in
from evalwright.rundir.upkeep import discard_experiment, empty_experiments, needed_runs
from evalwright.workspace import remove_tree

__all__ = ["answer"]

PAGE = 50
Record = dict[str, Any]


def answer(session: Session) -> Reply:
    """Carry out the chosen action."""
    project = open_project(session)
    layout = project.layout
    action = session.options.action
    if action == "get":
        return _get(project, session.options.run)
    if session.options.run is not None:
        raise UsageError(f"jobs {action} takes no run", hint="evalwright jobs get RUN")
    return _list(session, layout) if action == "list" else _prune(session, layout, project.settings.workspaces)


def _list(session: Session, layout: Layout) -> Reply:
    options = session.options
    runs = [{"run_id": run.path.name, "run": run} for run in runs_in(layout)]
    page, pagination = paged(runs, "run_id", options.limit or PAGE, options.cursor)
    summaries = read_summaries(layout.index)
    entries = [classify(item["run"], summaries) for item in page]
    text = "".join(f"{entry['run_id']}\t{entry['state']}{_membership(entry)}\n" for entry in entries)
    data = {"runs": entries, "count": len(entries), "total_count": len(runs)}
    reply = Reply(data=data, text=text or "no runs yet\n", pagination=pagination)
    if pagination["has_more"]:
        reply.then(f"evalwright jobs list --cursor {pagination['next_cursor']} --json", "see the next page")
    return reply


def _membership(entry: Record) -> str:
    """Return to which experiment of several runs one belongs."""
    place = entry["experiment"]
    if not place or place["id"] == entry["run_id"]:
        return ""
    return f"\texperiment {place['id']}, arm {place['arm']}, repeat {place['repeat']}"


def _get(project: Project, name: str | None) -> Reply:
    if name is None:
        raise UsageError("jobs get needs a run", hint="list them: evalwright jobs list")
    entry = classify(project.run(name), read_summaries(project.layout.index))
    return Reply(data=entry, text=f"{entry['run_id']}: {entry['state']}\n")


def _prune(session: Session, layout: Layout, workspaces: Path | None) -> Reply:
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
    reply = Reply(data=data, text=_prune_text(data))
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


def _prune_text(data: Record) -> str:
    shown = data["removed"] if data["confirmed"] else data["candidates"]
    verb = "removed" if data["confirmed"] else "would remove"
    lines = [f"{verb} {what.replace('_', ' ')}: {', '.join(names) or 'none'}" for what, names in shown.items()]
    return "\n".join([*lines, "" if data["confirmed"] else "do it:  evalwright jobs prune --yes"]).rstrip() + "\n"
