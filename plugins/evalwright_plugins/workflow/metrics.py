"""What a run's ledger tells in numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evalwright_plugins.workflow.findings import Finding
from evalwright_plugins.workflow.record import State, Status

__all__ = ["metrics_of"]


def metrics_of(events: Iterable[Mapping[str, Any]], state: State) -> dict[str, float]:
    """Return counts of what happened, and seconds of waiting for decisions and of work.

    ``findings`` are counted once each, however often they come; ``open_findings`` are those that block in the end.
    """
    found: dict[str, Finding] = {}
    requests = infrastructure = 0
    for event in events:
        data = event["data"]
        if event["type"] == "EVIDENCE_RECORDED" and data["kind"] == "review":
            found |= {one.fingerprint: one for one in map(Finding.from_json, data["findings"])}
        requests += event["type"] == "HUMAN_REQUESTED"
        infrastructure += event["type"] == "STEP_FINISHED" and bool(data.get("infra"))
    numbers = {
        "succeeded": state.status is Status.SUCCEEDED,
        "steps": len(state.attempts),
        "attempts": sum(state.attempts.values()),
        "review_rounds": state.review_rounds,
        "findings": len(found),
        "blocking_findings": sum(one.blocking for one in found.values()),
        "open_findings": sum(Finding.from_json(record).blocking for record in state.findings),
        "requests": requests,
        "decisions": state.decisions,
        "waited_s": round(state.waited_seconds, 3),
        "infrastructure_failures": infrastructure,
        "work_s": round(state.spent.get("wall", 0.0), 3),
    }
    return {name: float(number) for name, number in numbers.items()}
