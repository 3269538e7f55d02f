"""How one run stands, beyond what its ledger says: who drives it, what its step is doing, and what is left of its budgets."""

from __future__ import annotations

import contextlib
import os
import re
import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.errors import EvalwrightError, RunCorrupt
from evalwright.ledger import Event, read_events
from evalwright_plugins.workflow.commands.common import GARBLED, age_of, line_of, run_data, span
from evalwright_plugins.workflow.drive.runs import Run
from evalwright_plugins.workflow.record import State, advance
from evalwright_plugins.workflow.workspace import owner_of

__all__ = ["Past", "standing", "standing_lines"]

Record = dict[str, Any]
TAIL_BYTES = 8192
TAIL_LINES = 5
SPENT = {"tokens": "tokens", "cost": "dollars", "wall": "seconds of work"}


@dataclass(slots=True)
class Past:
    """What all runs tell.

    ``seconds`` are those of attempts that ended by themselves, by workflow and step; ``rounds`` review rounds by work and run.
    """

    seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict[tuple[str, str], list[float]])
    rounds: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])

    @staticmethod
    def of(runs: Iterable[Run]) -> Past:
        """Read every ledger once; of a damaged one nothing counts from the damage on."""
        past = Past()
        for run in runs:
            with contextlib.suppress(EvalwrightError, OSError, *GARBLED):
                past._take(run, read_events(run.files.ledger))
        return past

    def _take(self, run: Run, events: Iterable[Event]) -> None:
        state = State()
        for event in events:
            advance(state, event)
            data = event["data"]
            if event["type"] == "STEP_FINISHED" and data.get("seconds") and not data.get("infra"):
                self.seconds.setdefault((_workflow(state), data["step"]), []).append(float(data["seconds"]))
        if not run.foreign:
            self.rounds.setdefault(state.work, {})[run.id] = state.review_rounds


def standing(run: Run, state: State, past: Past) -> Record:
    """Return everything about a run that ``status`` tells. Raises ``RunCorrupt`` for a ledger that says no such thing."""
    try:
        return _standing(run, state, past)
    except GARBLED as error:
        raise RunCorrupt(f"{run.id}: its ledger lacks or garbles {error}", hint="its writer is at fault") from error


def _standing(run: Run, state: State, past: Past) -> Record:
    driver = None if run.foreign else owner_of(run.files.driver)
    data = run_data(run, state)
    if data["running"]:
        data["running"] |= _running(run, state, past)
    data["driver"] = driver
    data["foreign"] = run.foreign
    data["interrupted"] = driver is None and not run.foreign and (bool(state.decision) or _under_way(state))
    data["decision"] = {"decision": state.decision.decision, "by": state.decision.by} if state.decision else None
    if data["request"]:
        data["request"]["age_seconds"] = age_of(state.asked_at)
    data["budgets"] = _budgets(run, state, past)
    log = _newest(run.files.path / "logs")
    data["log"] = {"path": str(log), "age_seconds": _age(log), "tail": _tail(log)} if log else None
    return data


def standing_lines(data: Mapping[str, Any]) -> list[str]:
    """Return for people what ``run_text`` does not say."""
    lines: list[str] = []
    driver, running, log = data["driver"], data["running"], data["log"]
    if data["foreign"]:
        lines.append("  imported, to be read only")
    if driver:
        command = line_of(" ".join(map(str, driver.get("command", ()))), 80)
        lines.append(
            f"  driven by process {driver['pid']} on {line_of(driver['host'])} since {driver.get('since')} ({command})"
        )
    elif data["interrupted"]:
        lines.append(f"  nobody drives it; go on with: evalwright work resume {data['run']}")
    if running and driver:
        lines.append(_running_line(running))
    used = [_budget_text(one) for one in data["budgets"]]
    lines += [f"  used: {', '.join(used)}"] if used else []
    if log and log["tail"] and data["reason"] is None:
        lines.append(f"  {line_of(log['path'])}, written {span(log['age_seconds'])} ago:")
        lines += [f"    | {line}" for line in log["tail"]]
    return lines


def _budgets(run: Run, state: State, past: Past) -> list[Record]:
    """Return what a run has used of each budget that it has; of a run whose plan cannot be read, what its ledger tells."""
    found = [_budget(kind, state.spent.get(kind, 0.0), limit) for kind, limit in state.budgets.items()]
    try:
        workflow = run.plan(state).workflow
    except EvalwrightError:
        return found
    cap = workflow.budgets.review_rounds_per_work
    if cap is not None:
        others = sum(count for one, count in past.rounds.get(state.work, {}).items() if one != run.id)
        rounds = state.review_rounds + others
        found.append(_budget("reviews", rounds, cap + state.granted_reviews))
    return found + [
        _budget("attempts", state.charged.get(step.id, 0), workflow.attempts(step.id) + state.granted.get(step.id, 0))
        | {"step": step.id}
        for step in workflow.steps
    ]


def _budget(kind: str, used: float, limit: float) -> Record:
    return {"kind": kind, "used": used, "limit": limit, "left": max(0, limit - used)}


def _budget_text(budget: Mapping[str, Any]) -> str:
    what = {"attempts": f"attempts of {budget.get('step')}", "reviews": "review rounds", **SPENT}[budget["kind"]]
    return f"{round(budget['used'], 2):g} of {budget['limit']:g} {what}"


def _under_way(state: State) -> bool:
    return not state.status.terminal and state.request is None


def _workflow(state: State) -> str:
    return str(state.created.get("workflowRef"))


def _running(run: Run, state: State, past: Past) -> Record:
    outcome = state.outcome
    assert outcome
    log = run.files.log(outcome.step, outcome.attempt)
    earlier = past.seconds.get((_workflow(state), outcome.step), [])
    return {
        "since": outcome.started["ts"],
        "elapsed_seconds": age_of(str(outcome.started["ts"])),
        "typical_seconds": round(statistics.median(earlier), 3) if earlier else None,
        "output_age_seconds": _age(log) if log.is_file() and log.stat().st_size else None,
    }


def _running_line(running: Mapping[str, Any]) -> str:
    typical, silent = running["typical_seconds"], running["output_age_seconds"]
    usually = f", usually {span(typical)}" if typical is not None else ""
    said = "no output yet" if silent is None else f"last output {span(silent)} ago"
    elapsed = span(running["elapsed_seconds"] or 0.0)
    return f"  {running['step']} attempt {running['attempt']}: {elapsed} so far{usually}; {said}"


def _newest(directory: Path) -> Path | None:
    """Return the log that was written last; logs of read-only steps that wrote nothing count too."""
    logs = [path for path in directory.glob("*.log") if path.is_file() and not path.is_symlink()]
    return max(logs, key=lambda path: path.stat().st_mtime_ns, default=None)


def _age(path: Path) -> float:
    return round(max(0.0, time.time() - path.stat().st_mtime), 3)


def _tail(path: Path) -> list[str]:
    """Return the last lines of a log; of a line that was drawn over, what was drawn last."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - TAIL_BYTES))
        text = file.read().decode("utf-8", "replace")
    lines = [re.split(r"\r(?=.)", line.rstrip("\r"))[-1] for line in text.split("\n")]
    return [line_of(_plain(line)) for line in lines if line.strip()][-TAIL_LINES:]


def _plain(line: str) -> str:
    """Return a line without the codes that colour it."""
    return re.sub(r"\x1b\[[0-9;?]*[ -/]*[@-~]", "", line).expandtabs(4)
