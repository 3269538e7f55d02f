"""``init``: write the sample suite."""

from __future__ import annotations

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project
from evalwright.suite import write_sample

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Write the sample into the project's ``evals`` directory."""
    data = write_sample(open_project(session).layout.evals, force=session.options.force)
    text = f"Created {data['created']}/ with the suite {data['suite']}.\nTry it:  evalwright run {data['suite']}\n"
    return Reply(data=data, text=text).then(f"evalwright run {data['suite']} --json", "run the sample suite")
