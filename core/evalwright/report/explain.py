"""One trial hop by hop: where its time went, which plugins worked on it, which digests vouch for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.errors import RunCorrupt, RunNotFound
from evalwright.ledger import read_events
from evalwright.report.wording import finding_text
from evalwright.rundir import RunDirectory, read_object

__all__ = ["explain_trial", "explanation_text"]

Record = dict[str, Any]
HOPS = (
    ("suite", "the suite's line became a case", None),
    ("plan", "the case became a spec without expectations", None),
    ("attempt", "the attempt was recorded, then queued", None),
    ("workspace", "a private copy of the fixture was made", "prepare"),
    ("agent", "the runner worked in its sandbox", "agent"),
    ("kill", "every process of the agent was ended", "kill"),
    ("collect", "answer and workspace were read", "collect"),
    ("score", "gold arrived, and the scorers judged", "score"),
    ("seal", "the evidence was written and sealed", "seal"),
    ("record", "the result became durable in the ledger", None),
)


def explain_trial(run: RunDirectory, case_id: str) -> Record:
    """Return ``{run_id, case, status, hops[], plugins[], digests{}, runner{}, scores[]}``.

    Raises ``RunNotFound`` when the run has no finished trial of that case, ``RunCorrupt`` when its evidence is unreadable.
    """
    try:
        return _explained(run, case_id)
    except (KeyError, TypeError, AttributeError) as error:
        message = f"the evidence of {case_id} in {run.path} is damaged: {type(error).__name__} {error}"
        raise RunCorrupt(message, hint=f"see: evalwright verify {run.path.name}") from error


def _explained(run: RunDirectory, case_id: str) -> Record:
    directory = run.case(case_id)
    if not (directory / "bundle.json").is_file():
        known = ", ".join(sorted(path.parent.name for path in run.cases.glob("*/bundle.json"))[:20]) or "none"
        raise RunNotFound(f"run {run.path.name} has no finished trial of {case_id!r}", hint=f"it has: {known}")
    bundle = read_object(directory / "bundle.json")
    record = read_object(run.run_json)
    score = read_object(directory / "score.json")
    spans: Mapping[str, float] = bundle.get("spans_ms", {})
    facts = _facts(run, case_id, record, bundle)
    hops = [
        {"hop": number, "name": name, "what": what, "ms": spans.get(span) if span else None, **facts.get(name, {})}
        for number, (name, what, span) in enumerate(HOPS, 1)
    ]
    return {
        "run_id": run.path.name,
        "case": case_id,
        "status": score["status"],
        "hops": hops,
        "plugins": record["provenance"]["plugins"],
        "digests": bundle["digests"],
        "runner": read_object(directory / "runner.json"),
        "scores": score["scores"],
    }


def explanation_text(data: Mapping[str, Any]) -> str:
    """Return the explanation for people."""
    lines = [f"{data['run_id']} · {data['case']} · {data['status']}", ""]
    for hop in data["hops"]:
        shown = f"{hop['ms']:>10.1f} ms" if hop["ms"] is not None else " " * 13
        extra = "  ".join(f"{key} {value}" for key, value in hop.items() if key not in {"hop", "name", "what", "ms"})
        lines.append(f"{hop['hop']:>3}  {hop['name']:<10}{shown}  {hop['what']}{f'  [{extra}]' if extra else ''}")
    plugins = ", ".join(f"{p['name']} ({p['distribution']} {p['version']})" for p in data["plugins"])
    found = [(score.get("id", score["scorer"]), finding) for score in data["scores"] for finding in score["findings"]]
    if found:
        lines += ["", "findings:", *(f"  {name}: {finding_text(finding)}" for name, finding in found)]
    usage: Mapping[str, Any] = data["runner"].get("usage") or {}
    told = [f"{name} {value}" for name, value in usage.items() if value is not None]
    if told:
        lines += ["", f"usage: {', '.join(told)}"]
    lines += ["", f"plugins: {plugins}", "", "digests:"]
    lines += [f"  {name:<24} {digest}" for name, digest in data["digests"].items()]
    return "\n".join(lines) + "\n"


def _facts(run: RunDirectory, case_id: str, record: Mapping[str, Any], bundle: Mapping[str, Any]) -> dict[str, Record]:
    """Return what is known of single hops."""
    identity = record["suite_identity"]
    inputs = dict(identity["cases"])
    runner = read_object(run.case(case_id) / "runner.json")
    facts: dict[str, Record] = {
        "suite": {"suite": identity["suite_name"], "digest": identity["suite_hash"]},
        "plan": {"case_digest": inputs.get(case_id)},
        "attempt": {"attempt": bundle["attempt"]},
        "agent": {"isolation": runner.get("isolation"), "exit_code": runner["exit_code"]},
        "kill": {"leaked_processes": runner.get("leaked_processes", 0)},
        "seal": {"artifacts": len(bundle["digests"])},
    }
    finished = [
        event for event in read_events(run.ledger) if event["type"] == "TRIAL_FINISHED" and event["data"]["case"] == case_id
    ]
    if finished:
        facts["record"] = {"seq": finished[-1]["seq"], "digest": finished[-1]["digest"]}
    return facts
