"""``jobs list|get|prune``: what runs there are, and what dead processes left."""

from __future__ import annotations

from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply, paged
from evalwright.cli.project import Project, open_project
from evalwright.coordinate import classify
from evalwright.errors import UsageError
from evalwright.rundir import Layout, read_summaries, runs_in

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
    if action == "list":
        return _list(session, layout)
    from evalwright.cli.pruning import prune

    return prune(session, layout, project.settings.workspaces)


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
