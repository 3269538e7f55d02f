"""``verify``: is the run still what was written?"""

from __future__ import annotations

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project
from evalwright.report import verify_run

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return the first damage, or how much was checked; exit 1 for a damaged run."""
    options = session.options
    run = open_project(session).run(options.run, options.run_dir)
    data = verify_run(run)
    damage = data["first_damage"]
    if not data["sealed"] and data["ok"]:
        session.warn("W_UNSEALED", "nothing vouches for this run: it is unfinished, or another tool wrote it")
    if damage is None:
        text = f"{data['run_id']} · whole · {data['events']} events, {data['artifacts']} artifacts\n"
        return Reply(data=data, text=text)
    place = f"{damage['path']}:{damage['line']}" if damage["line"] else damage["path"]
    text = f"{data['run_id']} · damaged · {place}: {damage['reason']} (after sequence {damage['after_seq']})\n"
    return Reply(data=data, text=text, exit_code=1)
