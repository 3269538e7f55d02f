"""Apply scorers to a finished trial and fold their scores to a status."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from evalwright.canonical import finite
from evalwright.errors import EvalwrightError, JudgeError, JudgeUnavailable, SandboxLost, TrialError
from evalwright.interfaces import ScoreContext, Scorer
from evalwright.model import BUILTIN_SCORERS, Score, ScoredTrial, ScorerEntry
from evalwright.spans import NO_SPANS
from evalwright.suite.expect import own_expectations

__all__ = ["apply_scorers", "fold_status", "is_pure", "score_record"]

TRANSIENT = (JudgeUnavailable, SandboxLost)
Record = dict[str, Any]
Applied = Sequence[tuple[ScorerEntry, Scorer[Any]]]
CASE_FAILED = "E_SCORER_CASE_FAILED"


def apply_scorers(
    scorers: Applied,
    trial: ScoredTrial,
    expect: Mapping[str, Any],
    *,
    context: Callable[[ScorerEntry], ScoreContext],
    stored: Mapping[str, Record] | None = None,
    again: Collection[str] = (),
    spent: Callable[[ScorerEntry], Record | None] = lambda _: None,
    span: Callable[[str], AbstractContextManager[None]] = NO_SPANS.span,
) -> list[Record]:
    """Return the record of every scorer that applies, in the suite's order.

    With ``stored`` records of an earlier scoring, scorers that are not pure are not run again, but those whose ids are in
    ``again``: their record is taken, and a missing one is an error record. ``spent`` says what a scorer's questions to judges
    cost; each scorer has its ``span``. In a native suite a non-zero exit that no expectation names adds a failed ``exit-code``.
    """
    records: list[Record] = []
    for entry, scorer in scorers:
        own = own_expectations(entry, scorer, expect)
        if stored is not None and not is_pure(scorer) and entry.id not in again:
            record = stored.get(entry.id)
            if record is not None:
                records.append(record)
            elif scorer.applies(own):
                records.append(_record(entry, scorer, Score.broken("the stored score is missing"), trial.native))
        elif scorer.applies(own):
            with span(entry.id):
                score = _score(entry, scorer, replace(trial, expect=own), context)
            record = _record(entry, scorer, score, trial.native)
            asked = spent(entry)
            records.append(record | ({"judge": finite(asked)} if asked else {}))
    if trial.native and trial.exit_code and not any(record["scorer"] == "exit-code" for record in records):
        records.append(_unexpected_exit(trial.exit_code))
    return records


def fold_status(records: Sequence[Mapping[str, Any]], *, broken: bool) -> str:
    """Return ``error``, ``fail``, ``unscored`` or ``pass``; ``broken`` says that the trial itself could not be done."""
    if broken or any(record.get("error") for record in records):
        return "error"
    if any(not record["ok"] for record in records if record.get("required", True)):
        return "fail"
    return "pass" if any(not record.get("advisory") for record in records) else "unscored"


def score_record(name: str, score: Score, *, required: bool = True, advisory: bool = False) -> Record:
    """Return a score as it is stored; one that is none becomes an error record that says why."""
    score = _checked(score)
    record: Record = {
        "scorer": name,
        "ok": score.ok,
        "score": float(score.score),
        "label": finite(score.label) or ("pass" if score.ok else "fail"),
        "findings": [finite(finding) for finding in score.findings],
        "required": required and not advisory,
    }
    if advisory:
        record["advisory"] = True
    if score.metrics:
        record["metrics"] = dict(score.metrics)
    if score.error:
        record |= {"ok": False, "score": 0.0, "label": "error", "error": True, "error_code": CASE_FAILED}
    if score.transient:
        record["transient"] = True
    return record


def is_pure(scorer: Scorer[Any]) -> bool:
    """Tell whether a scorer depends only on stored artifacts, so that it can be applied again later."""
    return scorer.pure


def _score(
    entry: ScorerEntry, scorer: Scorer[Any], trial: ScoredTrial, context: Callable[[ScorerEntry], ScoreContext]
) -> Score:
    try:
        return scorer.score(trial, context(entry))
    except (TrialError, EvalwrightError) as error:
        about = {"kind": error.kind} if isinstance(error, JudgeError) else {}
        transient = isinstance(error, TRANSIENT) or getattr(error, "transient", False)
        return Score.broken(str(error), transient=transient, **about)
    except (Exception, SystemExit, GeneratorExit) as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        why = f"scorer {entry.table.use} failed: {type(error).__name__}: {error} ({place.filename}:{place.lineno})"
        return Score.broken(why)


def _checked(score: Score) -> Score:
    """Return the score, or a broken one when a scorer gave what is no score."""
    value: Any = score.score
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or not 0 <= value <= 1:
        return Score.broken(f"the scorer gave the score {value!r}, which is no finite number from 0 to 1")
    ok: Any = score.ok
    if not isinstance(ok, bool):
        return Score.broken(f"the scorer gave ok {ok!r}, which is no boolean")
    bad = [name for name, number in score.metrics.items() if not math.isfinite(number)]
    return Score.broken(f"the metric {bad[0]} is not finite") if bad else score


def _record(entry: ScorerEntry, scorer: Scorer[Any], score: Score, native: bool) -> Record:
    record = score_record(entry.table.use, score, required=entry.required, advisory=scorer.advisory)
    if entry.explicit_id and (native or entry.table.use not in BUILTIN_SCORERS):
        record["id"] = entry.id
    return record


def _unexpected_exit(code: int) -> Record:
    finding = {"why": "exit code mismatch", "expected": 0, "actual": code}
    return {"scorer": "exit-code", "ok": False, "score": 0.0, "label": "fail", "findings": [finding], "required": True}
