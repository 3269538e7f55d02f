"""One event of a run as one line for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.ledger import Event
from evalwright_plugins.workflow.commands.common import GARBLED, line_of, span

__all__ = ["event_line"]

SHORT = 12
TEXTS: Mapping[str, str] = {
    "RUN_CREATED": "{workflowRef} from {base}",
    "RUN_STARTED": "",
    "WORKSPACE_BOUND": "{branch} in {worktreePath}",
    "STEP_STARTED": "{step} attempt {attempt} by {worker}",
    "STEP_FINISHED": "{step} attempt {attempt} {status}{exit}{took}{why}",
    "CANDIDATE_PINNED": "{candidate}{adopted}",
    "EVIDENCE_RECORDED": "{kind} {status}: {evidenceRef}{found}{again}",
    "POLICY_EVALUATED": "{policy} ({phase}, {enforcement}): {result}{why}",
    "TRANSITION": "{from} -> {to} ({cause})",
    "FAILURE_FINGERPRINT": "{step}: {command} exit {exitCode}",
    "BUDGET_CONSUMED": "{amount} {kind}, {remaining} left",
    "BUDGET_EXTENDED": "{amount} more {kind} {step}",
    "HUMAN_REQUESTED": "{kind} {transition}: {asked}",
    "DECISION_RECORDED": "{transition} {decision} by {who}{why}",
    "APPROVAL_STALE": "{approvalRef}: {moved} changed",
    "CHECKPOINT": "before {place}",
    "RUN_INTERRUPTED": "{cause}",
    "RUN_TERMINAL": "{status}{why}",
    "RUN_COMPACTED": "{runRecordRef}",
    "LEDGER_TAIL_REPAIRED": "{bytes} bytes of a torn last line set aside",
}
WIDTH = max(map(len, TEXTS))


class _Words(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return ""


def event_line(event: Event) -> str:
    """Return time of day (UTC), sequence, type and what it says; what an agent wrote is cut and cannot move a cursor."""
    name = str(event.get("type"))
    try:
        said = TEXTS.get(name, "{data}").format_map(_Words(_words(event, event["data"])))
    except GARBLED:
        said = str(event.get("data"))
    return f"{line_of(str(event.get('ts', ''))[11:19])} {event['seq']:>4} {line_of(name):<{WIDTH}}  {line_of(said)}".rstrip()


def _words(event: Event, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an event, and some that are made from them."""
    words = {key: value for key, value in data.items() if value is not None}
    for key in ("base", "candidate"):
        words |= {key: str(data[key])[:SHORT]} if key in data else {}
    findings: Any = data.get("findings")
    point: Mapping[str, Any] = data.get("resumePoint") or {}
    made = {
        "exit": f" (exit {data['exitCode']})" if data.get("exitCode") else "",
        "took": f" in {span(data['seconds'])}" if data.get("seconds") is not None else "",
        "why": f": {data['reason']}" if data.get("reason") else "",
        "adopted": f" adopted by {event['actor']['id']}" if data.get("adopted") else "",
        "found": "" if findings is None else f", {len(findings)} finding{'s' * (len(findings) != 1)}",
        "again": " (used again)" if data.get("reused") else "",
        "asked": "; ".join(_texts(data.get("reasons"))),
        "who": event["actor"]["id"],
        "moved": ", ".join(_texts(data.get("changed"))),
        "place": f"{point.get('step', '')} attempt {point.get('attempt', '')}",
        "data": data,
    }
    return words | made


def _texts(values: Any) -> list[str]:
    return [str(value) for value in values or ()]
