"""``explain``: one trial hop by hop."""

from __future__ import annotations

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project
from evalwright.report import explain_trial, explanation_text

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return times, plugins and digests of one trial."""
    options = session.options
    run_id = None if options.run_dir else options.run
    run = open_project(session).run(run_id, options.run_dir)
    data = explain_trial(run, options.case)
    return Reply(data=data, text=explanation_text(data))
