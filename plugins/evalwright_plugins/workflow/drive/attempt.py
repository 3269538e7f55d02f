"""One attempt of a step: its input, the worker or a verification used again, and the evidence of how it ended."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from evalwright.canonical import digest_bytes, digest_text
from evalwright.model import Usage
from evalwright_plugins.workflow.drive.turn import Turn
from evalwright_plugins.workflow.evidence import EvidenceIndex, reuse_key
from evalwright_plugins.workflow.findings import EnvelopeError, Finding, read_envelope, split
from evalwright_plugins.workflow.model.workflow import Step
from evalwright_plugins.workflow.sites import StepCall, StepResult
from evalwright_plugins.workflow.workspace import Proof

__all__ = ["UNAVAILABLE", "begin", "finish", "review"]

UNAVAILABLE = 75
DEFAULT_SECONDS = 3600.0
MAIN_CHECKOUT = ("main checkout", "index of the main checkout")
LOCK_FILES = (
    "uv.lock",
    "poetry.lock",
    "package-lock.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "Cargo.lock",
    "go.sum",
    "requirements.txt",
)
Record = dict[str, Any]


def begin(turn: Turn, index: EvidenceIndex, canceled: Callable[[], bool]) -> None:
    """Start the step where the run stands, carry it out or use a verification again, and put its evidence on record.

    What ended is told by the field ``result`` of the evidence, so that nothing is done twice when the driver dies now.
    """
    step, state = turn.step, turn.state
    assert step
    attempt = state.attempts.get(step.id, 0) + 1
    table = turn.plan.config.workers[step.table]
    adapter = f"{table.get('use', 'command')}:{step.table}"
    turn.journal.write("STEP_STARTED", {"step": step.id, "attempt": attempt, "worker": step.table, "adapter": adapter})
    key = _key(turn, step, table)
    record = index.find(key) if key else None
    if record:
        turn.journal.write("EVIDENCE_RECORDED", _reused(turn, step, attempt, record) | {"cacheKey": key})
        return
    before, head = turn.site.proof(), turn.site.tree.head()
    log = turn.files.log(step.id, attempt)
    result = turn.site.run(
        StepCall(
            step=step,
            attempt=attempt,
            table=table,
            input=_input(turn, step, attempt),
            prompt=_prompt(turn, step),
            timeout=min(step.timeout or DEFAULT_SECONDS, turn.left("wall") or DEFAULT_SECONDS),
            log=log,
        ),
        canceled,
    )
    if result.canceled:
        return
    changed = _changed(step, before, turn.site.proof())
    evidence = _evidence(turn, step, attempt, result, changed) | ({"cacheKey": key} if key else {})
    turn.journal.write("EVIDENCE_RECORDED", evidence)
    if key and evidence["status"] == "passed" and evidence["subject"] == head and not turn.site.tree.dirty():
        index.keep(key, evidence | {"run": state.run, "evidenceRef": os.path.relpath(log, index.root)})


def finish(turn: Turn) -> None:
    """Write STEP_FINISHED as the evidence tells it."""
    outcome = turn.state.outcome
    assert outcome
    assert outcome.evidence
    result = outcome.evidence["result"]
    data = {"step": outcome.step, "attempt": outcome.attempt, **result}
    turn.journal.write("STEP_FINISHED", data)


def review(turn: Turn) -> Record:
    """Return the data of a review's evidence: its findings, and those that people have dismissed."""
    outcome = turn.state.outcome
    assert outcome
    assert outcome.evidence
    path = turn.files.output(outcome.step, outcome.attempt)
    data = path.read_bytes() if path.is_file() else b"{}"
    findings = read_envelope(data).findings
    blocking, _, suppressed = split(findings, turn.account.dismissed)
    return {
        "evidenceRef": turn.files.reference(path),
        "kind": "review",
        "subject": outcome.evidence["subject"],
        "digest": digest_bytes(data),
        "status": "failed" if blocking else "passed",
        "grade": outcome.evidence["grade"],
        "findings": [finding.as_json() for finding in findings],
        **({"suppressedFingerprints": [finding.fingerprint for finding in suppressed]} if suppressed else {}),
    }


def _changed(step: Step, before: Proof, after: Proof) -> list[str]:
    """Return what a step has changed and must not. The main checkout is the user's own, who may work in it meanwhile: what
    changes there counts only against a step that may change nothing.
    """
    if step.readonly:
        return before.difference(after)
    return [line for line in before.trespasses(after) if not line.startswith(MAIN_CHECKOUT)]


def _input(turn: Turn, step: Step, attempt: int) -> Record:
    state, account = turn.state, turn.account
    found: Record = {"work": state.work, "run": state.run, "step": step.id, "attempt": attempt}
    if turn.workflow.reviews(step.id):
        found["anchor"] = account.history()
        newest = turn.site.tree.newest_reviewed(state.reviewed)
        found |= {"last_reviewed": {"candidate": newest[0], "range": newest[1]}} if newest else {}
    elif not step.readonly:
        blocking, others, _ = split([Finding.from_json(record) for record in state.findings], account.dismissed)
        found |= {"findings": [finding.as_json() for finding in (*blocking, *others)]} if state.findings else {}
        found |= {"last_failure": dict(state.last_failure)} if state.last_failure and state.failures else {}
    return found


def _evidence(turn: Turn, step: Step, attempt: int, result: StepResult, changed: list[str]) -> Record:
    output = turn.files.output(step.id, attempt)
    problem = None
    status, usage = None, result.usage
    if result.output is not None:
        output.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        output.write_bytes(result.output)
        try:
            envelope = read_envelope(result.output)
            status, usage = envelope.status, envelope.usage or usage
        except EnvelopeError as error:
            problem = f"its output is no envelope: {error}"
    infrastructure = problem or _infrastructure(result)
    failed = result.exit_code != 0 or status == "failed"
    ended: Record = {"status": _status(result, problem, changed, failed=failed), "exitCode": result.exit_code}
    ended |= {"infra": True, "reason": infrastructure} if infrastructure else {}
    ended |= {"changed": changed[:50]} if changed else {}
    ended |= {"spent": _spent(result, usage), "seconds": round(result.seconds, 3)}
    ended |= {"usage": usage.as_json()} if usage else {}
    log = turn.files.log(step.id, attempt)
    return {
        "evidenceRef": turn.files.reference(log),
        "kind": "command",
        "subject": turn.site.tree.head(),
        "digest": _digest(log),
        "status": "passed" if ended["status"] == "succeeded" else "failed",
        "grade": step.grade,
        "step": step.id,
        "attempt": attempt,
        "command": result.command,
        "result": ended,
        **result.log,
    }


def _digest(log: Path) -> str:
    """Return the digest of a log, which may be larger than memory."""
    if not log.is_file():
        return digest_bytes(b"")
    with log.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _infrastructure(result: StepResult) -> str | None:
    """Say why an end is not the candidate's fault, ``None`` when it may be."""
    if result.lost:
        return result.lost
    if result.timed_out:
        return f"it had not ended after {result.seconds:.0f} seconds"
    if result.exit_code is None or result.exit_code < 0:
        return "it crashed" if result.exit_code is None else f"it was ended by signal {-result.exit_code}"
    return "it says that its environment is not available (exit 75)" if result.exit_code == UNAVAILABLE else None


def _status(result: StepResult, problem: str | None, changed: list[str], *, failed: bool) -> str:
    if changed:
        return "blocked"
    if result.timed_out:
        return "timeout"
    if problem:
        return "invalid-output"
    if result.lost or result.exit_code is None or result.exit_code < 0:
        return "crashed"
    return "failed" if failed else "succeeded"


def _spent(result: StepResult, usage: Usage | None) -> Record:
    """Return what an attempt has used up; ``None`` for what nobody has told."""
    told = usage or Usage()
    return {"wall": round(result.seconds, 3), "tokens": told.known_tokens, "cost": told.cost}


def _key(turn: Turn, step: Step, table: Mapping[str, Any]) -> str | None:
    """Return the key of a verification that may be used again: on a tree that is exactly a commit, and was left so."""
    if not (turn.plan.config.reuse and step.reusable) or turn.site.tree.dirty():
        return None
    files = turn.site.digests([*LOCK_FILES, *turn.plan.config.toolchain])
    told = {**table, "env": turn.plan.config.env, "step": step.id}
    toolchain = {**files, **{f"plugin {name}": version for name, version in turn.versions.items()}}
    return reuse_key(turn.site.tree.tree("HEAD"), step.table, told, digest_text(_prompt(turn, step)), toolchain)


def _prompt(turn: Turn, step: Step) -> str:
    return turn.plan.config.prompts.get(step.id) or turn.plan.config.prompt


def _reused(turn: Turn, step: Step, attempt: int, record: Mapping[str, Any]) -> Record:
    log = turn.files.log(step.id, attempt)
    log.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = f"verification used again: {record['run']} {record['evidenceRef']} {record['digest']}\n"
    log.write_text(text, encoding="utf-8")
    return {
        "evidenceRef": turn.files.reference(log),
        "kind": "command",
        "subject": turn.site.tree.head(),
        "digest": digest_text(text),
        "status": "passed",
        "grade": step.grade,
        "step": step.id,
        "attempt": attempt,
        "command": record["command"],
        "result": {"status": "succeeded", "exitCode": 0, "spent": {}, "seconds": 0.0, "reused": True},
        "reused": {key: record[key] for key in ("run", "evidenceRef", "digest")},
    }
