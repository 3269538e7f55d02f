"""``validate``: check a suite without running anything."""

from __future__ import annotations

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return ``{suite, case_count, valid}``; every problem raises together."""
    name = session.options.suite
    suite = open_project(session).suite(name).suite
    count = len(suite.cases)
    data = {"suite": suite.name, "case_count": count, "valid": True}
    return Reply(data=data, text=f"{suite.name}: {count} case{'s' if count != 1 else ''}, valid\n").then(
        f"evalwright run {name or suite.name} --json", "run it"
    )
