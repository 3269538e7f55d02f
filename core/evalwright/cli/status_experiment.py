"""``status`` of an experiment: its state, its progress, and each of its runs, damaged ones too."""

from __future__ import annotations

from collections import Counter
from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply, paged
from evalwright.cli.experiments import experiment_state
from evalwright.coordinate import classify, live_cases
from evalwright.errors import LedgerDamaged, RunCorrupt
from evalwright.report import status_counts
from evalwright.rundir import Layout, RunDirectory, read_summaries
from evalwright.rundir.experiment import Cell, ExperimentRecord

__all__ = ["experiment_status"]

Record = dict[str, Any]
OPEN = ("pending", "running", "canceled")


def experiment_status(session: Session, layout: Layout, record: ExperimentRecord) -> Reply:
    """Return ``{experiment, state, run, progress, runs[], recommended_action}``; the runs come in pages.

    A run that was planned and never made is ``pending``; one that cannot be read is ``damaged`` and says why.
    """
    summaries = read_summaries(layout.index)
    runs = [_entry(layout, cell, summaries) for cell in record.cells()]
    counts: Counter[str] = Counter()
    for run in runs:
        counts.update(run["status_counts"])
    progress = {key: sum(run[key] for run in runs) for key in ("case_count", "terminal", "running", "pending")}
    state = experiment_state([run["state"] for run in runs])
    totals = status_counts(counts.elements())
    ok = state == "completed" and 0 < totals["pass"] == progress["case_count"]
    action = _recommended(record.id, state)
    page, pagination = paged(runs, "run_id", session.options.limit, session.options.cursor)
    data: Record = {
        "experiment": record.id,
        "experiment_dir": str(record.directory),
        "state": state,
        "run": {"ok": ok, "case_count": progress["case_count"], "status_counts": totals},
        "progress": progress,
        "runs": page,
        "total_count": len(runs),
        "recommended_action": action,
    }
    reply = Reply(data=data, text=_text(data, runs), pagination=pagination if session.options.limit else None)
    return reply.then(action["command"], action["rationale"])


def _entry(layout: Layout, cell: Cell, summaries: Record) -> Record:
    run = layout.run(cell.run_id)
    entry: Record = {"run_id": cell.run_id, "arm": cell.arm, "repeat": cell.repeat, "state": "pending"}
    entry |= {"case_count": cell.cases, "terminal": 0, "running": 0, "pending": cell.cases, "status_counts": {}}
    if not run.path.is_dir():
        return entry
    found = classify(run, summaries)
    entry |= {"state": found["state"]} | ({"damaged": found["damaged"]} if "damaged" in found else {})
    if "damaged" in found:
        return entry
    if "run" in found:
        return entry | {"terminal": cell.cases, "pending": 0, "status_counts": found["run"]["status_counts"]}
    return entry | _live(run)


def _live(run: RunDirectory) -> Record:
    try:
        cases, progress = live_cases(run)
    except (RunCorrupt, LedgerDamaged) as error:
        return {"damaged": str(error)}
    counts = Counter(case["status"] for case in cases if case["status"] not in OPEN)
    return {key: progress[key] for key in ("terminal", "running", "pending")} | {"status_counts": dict(counts)}


def _recommended(name: str, state: str) -> Record:
    commands = {
        "completed": (f"evalwright report {name}", "see the arms and what they passed"),
        "running": (f"evalwright status {name}", "look again; the experiment is going on"),
        "orphaned": ("evalwright jobs prune", "see what can be removed"),
    }
    command, why = commands.get(state, (f"evalwright run --resume {name}", "finish the experiment"))
    return {"command": command, "rationale": why, "alternatives": []}


def _text(data: Record, runs: list[Record]) -> str:
    progress = data["progress"]
    counts = ", ".join(f"{count} {status}" for status, count in data["run"]["status_counts"].items() if count)
    head = f"{data['experiment']} · {data['state']} · {progress['terminal']} of {progress['case_count']} trials done"
    lines = [head + (f" · {counts}" if counts else "")]
    for run in runs:
        found = ", ".join(f"{count} {status}" for status, count in run["status_counts"].items() if count)
        shown = [run["run_id"], run["state"], f"{run['terminal']} of {run['case_count']}", found, run.get("damaged", "")]
        lines.append("  " + " · ".join(part for part in shown if part))
    return "\n".join([*lines, f"Next:  {data['recommended_action']['command']}"]) + "\n"
