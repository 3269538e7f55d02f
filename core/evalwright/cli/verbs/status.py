"""``status``: the state of a run or of an experiment, while it runs too."""

from __future__ import annotations

import shlex
from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply, paged
from evalwright.cli.project import Project, open_project
from evalwright.coordinate import live_cases, sealed_state, state_of
from evalwright.coordinate.lease import read_reservation
from evalwright.coordinate.state import OPEN, identity_of
from evalwright.report import status_counts
from evalwright.rundir import RunDirectory, read_summaries

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return state, progress, lease and the status of each case."""
    options = session.options
    project = open_project(session)
    record = project.experiment(options.run, options.run_dir)
    if record is not None:
        from evalwright.cli.status_experiment import experiment_status

        return experiment_status(session, project.layout, record)
    run = project.run(options.run, options.run_dir)
    state = state_of(run)
    if state == "completed":
        data, cases = _finished(project, run)
    else:
        data, cases = _unfinished(run)
    page, pagination = paged(cases, "id", options.limit, options.cursor)
    data |= {"run_id": data.get("run_id", run.path.name), "run_dir": str(run.path), "state": state, "cases": page}
    data |= {"lease": dict(read_reservation(run)) or None, "total_count": len(cases)}
    action = _recommended(run, state)
    data["recommended_action"] = action
    progress = data["progress"]
    counts = ", ".join(f"{count} {status}" for status, count in data["run"]["status_counts"].items() if count)
    text = f"{data['run_id']} · {state} · {progress['terminal']} of {progress['case_count']} done"
    text += f" · {counts}\nNext:  {action['command']}\n" if counts else f"\nNext:  {action['command']}\n"
    reply = Reply(data=data, text=text, pagination=pagination if options.limit else None)
    return reply.then(action["command"], action["rationale"])


def _finished(project: Project, run: RunDirectory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    sealed = sealed_state(run, read_summaries(project.layout.index).get(run.path.name, {}))
    found = sealed or _recomputed(project.session, run)
    cases: list[dict[str, Any]] = found.pop("cases")
    count = len(cases)
    return found | {"progress": {"case_count": count, "terminal": count, "running": 0, "pending": 0}}, cases


def _recomputed(session: Session, run: RunDirectory) -> dict[str, Any]:
    from evalwright.report import project as project_run

    report = project_run(run)
    for warning in report.warnings:
        session.warn(warning["code"], warning["message"])
    run_record, cases = report.normalized["run"], list(report.normalized["cases"])
    return {"run_id": report.run_id, "run": run_record, "report_hash": report.report_hash, "cases": cases}


def _unfinished(run: RunDirectory) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    cases, progress = live_cases(run)
    terminal = [case["status"] for case in cases if case["status"] not in OPEN]
    suite = identity_of(run)["suite_name"]
    summary = {"ok": False, "suite": suite, "case_count": len(cases), "status_counts": status_counts(terminal)}
    return {"run": summary, "progress": progress}, cases


def _recommended(run: RunDirectory, state: str) -> dict[str, Any]:
    name = run.path.name
    if state == "completed":
        command, why = (
            f"evalwright report --run-dir {shlex.quote(str(run.path))} --format json",
            "see verdicts and ranked failures",
        )
    elif state == "running":
        command, why = f"evalwright status {name}", "look again; the run is going on"
    elif state == "stale":
        command, why = f"evalwright run --resume {name} --json", "finish the interrupted run"
    else:
        command, why = "evalwright jobs prune", "see what can be removed"
    return {"command": command, "rationale": why, "alternatives": []}
