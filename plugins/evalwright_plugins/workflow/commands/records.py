"""``work replay`` and ``work verify``: what a ledger adds up to, and whether it can be believed; foreign ledgers too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from evalwright.canonical import is_array, is_object
from evalwright.errors import RunCorrupt
from evalwright.interfaces import VerbAnswer
from evalwright.ledger import head_of
from evalwright_plugins.workflow.commands.common import here, line_of, opened
from evalwright_plugins.workflow.commands.evidence import checked_events, evidence_of, ledger_in
from evalwright_plugins.workflow.drive.runs import Run
from evalwright_plugins.workflow.record import State

__all__ = ["replay", "verify"]

Warn = Callable[[str, str], None]
Record = dict[str, Any]


def replay(options: Any, warn: Warn) -> VerbAnswer:
    """Show the state that the events of a ledger add up to."""
    del warn
    path, run = _meant(options)
    events, state = checked_events(path)
    data = {"file": str(path), "events": len(events), "state": _plain(dataclasses.asdict(state))}
    steps = here({f"evalwright work events {run.id}": "read the events"}, options) if run else {}
    return VerbAnswer(data=data, text=_text(state), next_steps=steps)


def verify(options: Any, warn: Warn) -> VerbAnswer:
    """Check every link of a ledger, the rules, and the evidence of a run of the repository.

    Raises ``LedgerDamaged`` for the first damage, ``RunCorrupt`` naming evidence that is not what was recorded.
    """
    path, run = _meant(options)
    events, state = checked_events(path)
    data: Record = {
        "ok": True,
        "run": run.id if run else state.run,
        "file": str(path),
        "events": len(events),
        "first_digest": events[0]["digest"] if events else None,
        "last_digest": events[-1]["digest"] if events else None,
        "head": head_of(path).is_file(),
        "status": str(state.status),
        "evidence": None,
    }
    lines = [f"{data['run']}: {len(events)} events, whole and by the rules · {state.status}"]
    if not data["head"]:
        warn("W_LEDGER_UNVOUCHED", "there is no head record, so events that were cut off at the end would not be noticed")
    if run:
        evidence = evidence_of(run.files.path, events)
        _refuse(run, evidence.changed, [] if run.foreign else evidence.missing)
        data["evidence"] = evidence.as_json()
        lines.append(f"  {evidence.intact} pieces of evidence are as they were recorded")
        lines += [f"  not imported: {name}" for name in evidence.missing]
    lines += [f"  last digest {data['last_digest']}"] if events else []
    return VerbAnswer(data=data, text="\n".join(lines) + "\n")


def _meant(options: Any) -> tuple[Path, Run | None]:
    """Return the ledger that is meant: a path has a slash or ends in .jsonl, anything else is a run of the repository."""
    target = options.target
    if target and ("/" in target or target.endswith(".jsonl") or target == "."):
        path = Path(target)
        return (ledger_in(path) if path.is_dir() else path), None
    with opened(options) as runs:
        run = runs.find(target)
    return run.files.ledger, run


def _refuse(run: Run, changed: list[str], missing: list[str]) -> None:
    problems = [f"{name} has changed" for name in changed] + [f"{name} is missing" for name in missing]
    if problems:
        raise RunCorrupt(
            f"{run.id}: {line_of('; '.join(problems), 1000)}",
            hint="the ledger is whole, but this evidence is not what it recorded; restore it from a copy",
            file=str(run.files.path / (changed or missing)[0]),
            changed=changed,
            missing=missing,
        )


def _text(state: State) -> str:
    attempts = ", ".join(f"{step} {count}" for step, count in state.attempts.items()) or "none"
    where = "" if state.status.terminal else f" at {state.step}"
    lines = [
        f"{line_of(state.run)} · {line_of(state.work)} · {state.status}{where} after {state.seq} events",
        f"  attempts: {line_of(attempts)}; review rounds {state.review_rounds}; decisions {state.decisions}",
        f"  candidate {line_of(state.candidate[:12])}",
    ]
    if state.request:
        lines.append(f"  waits ({line_of(state.request.kind)}): {line_of('; '.join(state.request.reasons))}")
    if state.ended:
        lines.append(f"  {line_of(state.ended.get('reason', ''))}")
    return "\n".join(lines) + "\n"


def _plain(value: Any) -> Any:
    """Return sets as lists in order, so that JSON can hold them."""
    if is_object(value):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, set):
        return sorted(cast("set[str]", value))
    return [_plain(item) for item in value] if is_array(value) else value
