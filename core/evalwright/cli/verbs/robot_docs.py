"""``robot-docs guide``: the handbook for agents."""

from __future__ import annotations

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.handbook import HANDBOOK

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return the handbook as it is."""
    return Reply(data={"guide": HANDBOOK}, body=None if session.options.json else HANDBOOK)
