"""``schema``: JSON Schemas of every verb's data and of the file formats."""

from __future__ import annotations

import difflib

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.schemas import DEFINITIONS, ENVELOPE, SCHEMAS
from evalwright.errors import UsageError

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return all schemas, or those of one verb."""
    verb: str | None = session.options.verb
    session.json = True
    if verb is not None and verb not in SCHEMAS:
        near = difflib.get_close_matches(verb, SCHEMAS, 1)
        raise UsageError(
            f"no schema for {verb!r}",
            hint=f"did you mean {near[0]}?" if near else "see: evalwright capabilities --json",
            valid_values=list(SCHEMAS),
        )
    chosen = SCHEMAS if verb is None else {verb: SCHEMAS[verb]}
    return Reply(data={"envelope_schema": ENVELOPE, "schemas": chosen, "definitions": DEFINITIONS})
