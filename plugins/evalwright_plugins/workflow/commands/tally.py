"""What a run took and what came of it, counted from its events; and the sum over runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from evalwright.errors import RunCorrupt
from evalwright.ledger import Event
from evalwright_plugins.workflow.commands.common import GARBLED, age_of, span
from evalwright_plugins.workflow.findings import Finding
from evalwright_plugins.workflow.findings.finding import SEVERITIES
from evalwright_plugins.workflow.record import State, advance

__all__ = ["tally", "tally_text", "total"]

Record = dict[str, Any]
SUMS = ("steps", "review_rounds", "human_waits", "reuse_hits", "infrastructure_failures", "interruptions")


def tally(run: str, events: Iterable[Event]) -> Record:
    """Return the figures of one run. Raises ``LedgerDamaged``.

    ``wall_seconds`` is the time that workers took; ``elapsed_seconds`` goes from the first event to the last, waits included.
    ``tokens`` (input and output) and ``cost`` (US dollars) are ``None`` where no worker told any. ``findings`` counts each
    finding once, however many reviews raised it.
    """
    state, count = State(), _Count()
    for event in events:
        advance(state, event)
        try:
            count.take(event, state)
        except GARBLED as error:
            raise RunCorrupt(
                f"{run}: event {event['seq']} cannot be counted: {error}", hint="its writer is at fault"
            ) from error
    times, seen = count.times, count.seen
    waiting = _between([state.asked_at, times[-1]]) if state.status.terminal else age_of(state.asked_at) or 0.0
    return {
        "run": run,
        "work": state.work,
        "status": str(state.status),
        "steps": seen["STEP_STARTED"],
        "attempts": dict(state.attempts),
        "review_rounds": state.review_rounds,
        "findings": {severity: len(prints) for severity, prints in count.findings.items()},
        "human_waits": seen["HUMAN_REQUESTED"],
        "human_wait_seconds": round(state.waited_seconds + waiting, 3),
        "wall_seconds": round(count.wall, 3),
        "elapsed_seconds": _between(times),
        "tokens": sum(count.told["tokens"]) if count.told["tokens"] else None,
        "cost": sum(count.told["cost"]) if count.told["cost"] else None,
        "reuse_hits": seen["reused"],
        "infrastructure_failures": seen["infrastructure"],
        "interruptions": state.interruptions,
    }


class _Count:
    """What is counted event by event, beside the state."""

    def __init__(self) -> None:
        self.seen = Counter[str]()
        self.findings = {severity: set[str]() for severity in SEVERITIES}
        self.told: dict[str, list[float]] = {"tokens": [], "cost": []}
        self.times: list[str] = []
        self.wall = 0.0

    def take(self, event: Event, state: State) -> None:
        name, data = event["type"], event["data"]
        self.times.append(str(event["ts"]))
        self.seen[name] += 1
        if name == "EVIDENCE_RECORDED":
            self.seen["reused"] += bool(data.get("reused"))
            for record in data.get("findings") or ():
                finding = Finding.from_json(record)
                self.findings[finding.severity].add(finding.fingerprint)
        if name == "STEP_FINISHED":
            self.seen["infrastructure"] += bool(data.get("infra"))
            self.wall += _took(state, data, event["ts"])
            for kind, amount in _told(data).items():
                self.told[kind].append(amount)


def total(rows: Sequence[Mapping[str, Any]]) -> Record:
    """Return the sums of runs: of attempts by step, of findings by severity; what nobody told stays unknown."""
    sums: Record = {name: sum(row[name] for row in rows) for name in SUMS}
    for name in ("human_wait_seconds", "wall_seconds", "elapsed_seconds"):
        sums[name] = round(sum(row[name] for row in rows), 3)
    for name in ("tokens", "cost"):
        known = [row[name] for row in rows if row[name] is not None]
        sums[name] = sum(known) if known else None
    for name in ("attempts", "findings"):
        counts = Counter[str]()
        for row in rows:
            counts.update(row[name])
        sums[name] = dict(counts)
    return {"runs": len(rows), "statuses": dict(Counter(row["status"] for row in rows)), **sums}


def tally_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the figures for people, with the sum where there are several runs."""
    if not rows:
        return "no runs yet\n"
    blocks = [(f"{row['run']} · {row['work']} · {row['status']}", row) for row in rows]
    if len(rows) > 1:
        sums = total(rows)
        statuses = ", ".join(f"{count} {status}" for status, count in sums["statuses"].items())
        blocks.append((f"{len(rows)} runs · {statuses}", sums))
    return "\n".join(f"{title}\n{_figures(row)}" for title, row in blocks)


def _figures(row: Mapping[str, Any]) -> str:
    attempts = ", ".join(f"{step} {count}" for step, count in row["attempts"].items()) or "none"
    findings = ", ".join(f"{severity} {count}" for severity, count in row["findings"].items() if count) or "none"
    tokens = "unknown" if row["tokens"] is None else f"{row['tokens']:,.0f}"
    cost = "unknown" if row["cost"] is None else f"${row['cost']:.2g}"
    lines = [
        f"attempts {row['steps']} ({attempts}), of them {row['reuse_hits']} used again",
        f"infrastructure failures {row['infrastructure_failures']}, interruptions {row['interruptions']}",
        f"review rounds {row['review_rounds']}, findings: {findings}",
        f"people were asked {row['human_waits']}×, and took {span(row['human_wait_seconds'])}",
        f"workers took {span(row['wall_seconds'])} of {span(row['elapsed_seconds'])}; tokens {tokens}, cost {cost}",
    ]
    return "".join(f"  {line}\n" for line in lines)


def _told(finished: Mapping[str, Any]) -> dict[str, float]:
    """Return what a worker told of its usage."""
    usage: Mapping[str, Any] = finished.get("usage") or {}
    counts = [float(usage[name]) for name in ("input", "output") if usage.get(name) is not None]
    found: dict[str, float] = {"tokens": sum(counts)} if counts else {}
    return found | ({"cost": usage["cost"]} if usage.get("cost") is not None else {})


def _took(state: State, finished: Mapping[str, Any], ts: str) -> float:
    """Return how long an attempt took: as it was measured, else as the times of its events tell."""
    if finished.get("seconds") is not None:
        return float(finished["seconds"])
    return _between([str(state.outcome.started["ts"]), ts]) if state.outcome else 0.0


def _between(times: Sequence[str]) -> float:
    try:
        return round(max(0.0, (datetime.fromisoformat(times[-1]) - datetime.fromisoformat(times[0])).total_seconds()), 3)
    except (IndexError, ValueError):
        return 0.0
