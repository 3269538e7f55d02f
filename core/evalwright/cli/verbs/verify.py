"""``verify``: is the run, or the experiment, still what was written?"""

from __future__ import annotations

from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project
from evalwright.errors import LedgerDamaged, RunCorrupt
from evalwright.report import verify_run
from evalwright.report.verify_experiment import verify_experiment

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return the first damage, or how much was checked; exit 1 for a damaged run."""
    options = session.options
    project = open_project(session)
    try:
        experiment = project.experiment(options.run, options.run_dir) is not None
    except (LedgerDamaged, RunCorrupt):
        experiment = True
    if experiment:
        return _reply(session, verify_experiment(project.layout, options.run), options.run, "experiment")
    data = verify_run(project.run(options.run, options.run_dir))
    return _reply(session, data, data["run_id"], "run")


def _reply(session: Session, data: dict[str, Any], name: str, what: str) -> Reply:
    damage = data["first_damage"]
    if not data["sealed"] and data["ok"]:
        session.warn("W_UNSEALED", f"nothing vouches for this {what}: it is unfinished, or another tool wrote it")
    if damage is None:
        runs = f"{len(data['runs'])} runs, " if "runs" in data else ""
        return Reply(data=data, text=f"{name} · whole · {runs}{data['events']} events, {data['artifacts']} artifacts\n")
    place = f"{damage['path']}:{damage['line']}" if damage["line"] else damage["path"]
    after = "" if damage["after_seq"] is None else f" (after sequence {damage['after_seq']})"
    text = f"{name} · damaged · {place}: {damage['reason']}{after}\n"
    return Reply(data=data, text=text, exit_code=1)
