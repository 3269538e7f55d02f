"""Trials as rows: what every figure over runs is made of. Rows are never folded into a worst or best case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.canonical import is_object
from evalwright.errors import LedgerDamaged, RunCorrupt
from evalwright.ledger import read_events, stream_events
from evalwright.model import DEFAULT_ARM, METRICS, Usage
from evalwright.report.overlap import Span, spans_of
from evalwright.report.projection import project
from evalwright.rundir import IDENTITY_CASES, RunDirectory, read_around, read_object, read_rows

__all__ = ["RunRows", "Trial", "lacks", "rows_of"]

ALWAYS = frozenset(METRICS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One finished trial. ``duration_ms`` is the agent's own time; ``usage`` ``None`` where the agent told nothing.

    ``span`` is when its attempt was in flight, in seconds since 1970; ``None`` where no ledger of ours tells.
    """

    run_id: str
    arm: str
    repeat: int
    case: str
    status: str
    fault: str | None
    scores: Sequence[Mapping[str, Any]]
    usage: Usage | None
    duration_ms: float | None
    span: Span | None = None

    @property
    def counts(self) -> bool:
        """Tell whether the trial belongs into a rate: a harness fault and a trial that nothing judged do not."""
        return self.status in ("pass", "fail") or (self.status == "error" and self.fault == "agent")

    def value(self, metric: str) -> float | None:
        """Return what the trial is worth by a metric; ``None`` when it does not count or does not have it.

        ``pass_rate`` is 1 for a pass; ``score`` the mean of all scores; ``cost`` (US dollars) and ``duration`` (seconds) are
        the agent's; a scorer's id is its score, ``ID.NAME`` one of its metrics: those of advisory scorers are there also where
        nothing decided. An agent's own fault is worth 0.
        """
        if metric == "cost":
            return self.usage.cost if self.usage else None
        if metric == "duration":
            return None if self.duration_ms is None else self.duration_ms / 1000
        if not self.counts:
            return self._scored(metric) if self.status == "unscored" else None
        if metric == "pass_rate":
            return float(self.status == "pass")
        if self.status == "error":
            return 0.0
        if metric == "score":
            return sum(float(score["score"]) for score in self.scores) / len(self.scores) if self.scores else None
        return self._scored(metric)

    def measures(self, metric: str) -> bool:
        """Tell whether the trial has the metric itself, and not only the 0 that an agent's fault is worth."""
        return (metric in ALWAYS or self.status != "error") and self.value(metric) is not None

    def _scored(self, metric: str) -> float | None:
        for score in self.scores:
            name = str(score.get("id", score["scorer"]))
            if metric == name:
                return float(score["score"])
            numbers: Mapping[str, float] = score.get("metrics", {})
            if metric.startswith(f"{name}.") and metric[len(name) + 1 :] in numbers:
                return float(numbers[metric[len(name) + 1 :]])
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRows:
    """The finished trials of one run. ``planned`` are the ids of all its cases, ``inputs`` the digests of what these say.

    ``warnings`` tell what nothing vouches for.
    """

    run: RunDirectory
    suite: str
    arm: str
    repeat: int
    finished: bool
    planned: Sequence[str]
    trials: Sequence[Trial]
    inputs: Mapping[str, str] = field(default_factory=dict[str, str])
    warnings: Sequence[Mapping[str, str]] = ()

    @property
    def id(self) -> str:
        """Return the run's id."""
        return self.run.path.name


def lacks(trials: Sequence[Trial], metric: str) -> bool:
    """Tell whether trials were judged and none has a metric: its name is wrong, whatever faults of the agent are worth."""
    judged = any(trial.counts and trial.status != "error" for trial in trials)
    return judged and not any(trial.measures(metric) for trial in trials)


def rows_of(run: RunDirectory, *, arm: str | None = None) -> RunRows:
    """Return the trials of a run; of an unfinished one those that are done. ``arm`` is its name where its record has none.

    Raises ``RunCorrupt``.
    """
    record = read_around(run.run_json, *IDENTITY_CASES)[0] if run.run_json.is_file() else {}
    cell: Mapping[str, Any] = record.get("experiment") or {}
    place: dict[str, Any] = {
        "run_id": run.path.name,
        "arm": arm or cell.get("arm", DEFAULT_ARM),
        "repeat": cell.get("repeat", 1),
    }
    if not run.manifest.is_file():
        return _unfinished(run, read_object(run.run_json) if record else {}, place)
    report = project(run)
    spans = _spans(run)
    trials = [_trial(run, place, case.id, case.status, case.fault, case.scores, spans) for case in report.cases]
    return RunRows(
        run=run,
        suite=report.suite,
        arm=place["arm"],
        repeat=place["repeat"],
        finished=True,
        planned=[case.id for case in report.cases],
        inputs={entry["id"]: entry["input_hash"] for entry in read_rows(run.manifest, "cases") if "input_hash" in entry},
        trials=trials,
        warnings=report.warnings,
    )


def _spans(run: RunDirectory) -> dict[str, Span]:
    """Return when the trials of a finished run were in flight; a ledger that is damaged was told of with the verdicts."""
    try:
        return spans_of(stream_events(run.ledger)) if run.ledger.is_file() else {}
    except (LedgerDamaged, KeyError, TypeError, ValueError):
        return {}


def _unfinished(run: RunDirectory, record: Mapping[str, Any], place: Mapping[str, Any]) -> RunRows:
    try:
        identity = record["suite_identity"]
        inputs, suite = {str(case_id): str(digest) for case_id, digest in identity["cases"]}, str(identity["suite_name"])
    except (KeyError, TypeError, ValueError) as error:
        raise RunCorrupt(f"{run.run_json} does not say what the run measures", hint="restore it from a copy") from error
    events = read_events(run.ledger) if run.ledger.is_file() else []
    spans = spans_of(events)
    done = dict.fromkeys(event["data"]["case"] for event in events if event["type"] == "TRIAL_FINISHED")
    trials: list[Trial] = []
    for case_id in done:
        path = run.case(case_id) / "score.json"
        score = read_object(path)
        try:
            trials.append(_trial(run, place, case_id, score["status"], score.get("fault"), score["scores"], spans))
        except KeyError as error:
            raise RunCorrupt(f"{path} lacks {error}", hint="restore it from a copy") from error
    return RunRows(
        run=run,
        suite=suite,
        arm=place["arm"],
        repeat=place["repeat"],
        finished=False,
        planned=list(inputs),
        trials=trials,
        inputs=inputs,
    )


def _trial(
    run: RunDirectory,
    place: Mapping[str, Any],
    case_id: str,
    status: str,
    fault: str | None,
    scores: Sequence[Mapping[str, Any]],
    spans: Mapping[str, Span],
) -> Trial:
    runner = read_object(run.case(case_id) / "runner.json")
    usage: Any = runner.get("usage")
    duration: Any = runner.get("duration_ms")
    return Trial(
        run_id=place["run_id"],
        arm=place["arm"],
        repeat=place["repeat"],
        case=case_id,
        status=status,
        fault=fault,
        scores=scores,
        usage=Usage.from_json(usage) if is_object(usage) else None,
        duration_ms=float(duration) if isinstance(duration, (int, float)) else None,
        span=spans.get(case_id),
    )
