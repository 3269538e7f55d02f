"""``work findings list`` and ``work findings adjudicate``: what reviewers found, and what people say of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evalwright.errors import UsageError
from evalwright.interfaces import VerbAnswer
from evalwright_plugins.workflow.commands.common import line_of, opened, who
from evalwright_plugins.workflow.drive.runs import Run
from evalwright_plugins.workflow.findings import Finding
from evalwright_plugins.workflow.findings.book import Book

__all__ = ["findings"]

DECISIONS = ("dismissed", "accepted", "reopened")


def findings(options: Any, warn: Callable[[str, str], None]) -> VerbAnswer:
    """``findings list [RUN]``, ``findings adjudicate RUN FINGERPRINT=DECISION``."""
    del warn
    with opened(options) as runs:
        if options.target == "list":
            return _listed(*_book(runs.find(options.value), runs.repository.state))
        if options.target == "adjudicate" and options.value and options.more:
            return _adjudicated(options, *_book(runs.find(options.value), runs.repository.state))
    raise UsageError(
        "work findings takes: list [RUN], or adjudicate RUN FINGERPRINT=DECISION",
        hint=f"a decision is one of {', '.join(DECISIONS)}",
    )


def _book(run: Run, state: Any) -> tuple[Run, Book]:
    work = run.state().work
    return run, Book(state / "works" / work / "findings.jsonl", work)


def _listed(run: Run, book: Book) -> VerbAnswer:
    open_now = {Finding.from_json(record).fingerprint for record in run.state().findings}
    rows: list[dict[str, Any]] = []
    for finding in book.findings:
        said = book.adjudication(finding.fingerprint)
        rows.append(
            {
                "fingerprint": finding.fingerprint,
                **finding.as_json(),
                "open": finding.fingerprint in open_now,
                "decision": said.decision if said else None,
                "by": said.by if said else None,
                "reason": said.reason if said else None,
            }
        )
    lines: list[str] = []
    for row in rows:
        stands = row["decision"] or ("open" if row["open"] else "gone")
        lines.append(f"{row['severity']} {row['fingerprint']} {stands}: {line_of(row['summary'])}")
    steps = {f"evalwright work findings adjudicate {run.id} FINGERPRINT=dismissed --reason TEXT": "say that one does not block"}
    return VerbAnswer(data={"run": run.id, "findings": rows}, text="\n".join(lines or ["no findings"]) + "\n", next_steps=steps)


def _adjudicated(options: Any, run: Run, book: Book) -> VerbAnswer:
    fingerprint, _, decision = options.more.partition("=")
    known = {finding.fingerprint for finding in book.findings}
    if fingerprint not in known:
        raise UsageError(f"{run.id} has no finding {fingerprint!r}", hint=f"see: evalwright work findings list {run.id}")
    if decision not in DECISIONS:
        raise UsageError(f"{decision!r} is no decision", hint=f"one of: {', '.join(DECISIONS)}", valid_values=list(DECISIONS))
    book.adjudicate(fingerprint, decision, by=who(options), reason=options.reason or "")
    return _listed(run, book)
