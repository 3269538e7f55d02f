"""From one result of a scorecard to a trial with its scores and its evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalwright.interfaces import Host, ImportedScore, ImportedTrial, Unsupported
from evalwright.model import Score, Transcript, Usage
from evalwright_adapters.lastlight.reviews import counts_of, review_score
from evalwright_adapters.lastlight.scorecard import Behavioral, Card, Result, Review
from evalwright_adapters.lastlight.source import read_bytes
from evalwright_adapters.stream_json import StreamJsonParser

__all__ = ["ReadTrial", "read_trial"]


@dataclass(slots=True, kw_only=True)
class ReadTrial:
    """A result, the trial it became, and what of it could not be taken over. ``whole`` says that its transcript is there."""

    result: Result
    trial: ImportedTrial
    refused: list[Unsupported] = field(default_factory=list[Unsupported])
    whole: bool = False


def read_trial(card: Card, result: Result, patch: str | None, host: Host) -> ReadTrial:
    """Return the trial of one result. ``patch`` is its prediction, for a card that names no file of its own."""
    name = result.instance_id
    read = ReadTrial(result=result, trial=ImportedTrial(case_id=name))
    files = _Files(card.directory, name, read.refused)
    transcript = _transcript(result, files)
    read.whole = transcript is not None
    diff = files.read(result.patch_file)
    files.read(result.execution_log)
    if len(result.sessions) > 1:
        why = "the scorecard folds its trials into one verdict; only the last transcript is kept beside it"
        read.refused.append(Unsupported(f"{name}: {len(result.sessions)} trials", why))
    artifacts = {"transcript.jsonl": transcript} if transcript is not None else {}
    told = StreamJsonParser(None, host).parse(transcript) if transcript is not None else Transcript()
    read.trial = ImportedTrial(
        case_id=name,
        scores=list(_scores(result)),
        error=result.error,
        output=_output(result.review) or told.final_text or "",
        diff=diff if diff is not None else (patch or "").encode(),
        usage=_usage(result, told, read.refused),
        duration=result.duration_ms / 1000 if result.measured and result.duration_ms is not None else None,
        artifacts={"result.json": _json(result.raw), **artifacts, **_review_files(result.review)},
    )
    return read


class _Files:
    """Files that a scorecard names. One outside of its directory is refused, one that is absent is noted."""

    def __init__(self, directory: Path, name: str, refused: list[Unsupported]) -> None:
        self.directory = directory.resolve()
        self.name = name
        self.refused = refused

    def read(self, path: str | None) -> bytes | None:
        """Return the content, ``None`` where there is none."""
        if not path:
            return None
        place = (self.directory / path).resolve()
        if not place.is_relative_to(self.directory):
            self.refused.append(Unsupported(f"{self.name}: {path}", "the path leads out of the results"))
        elif not place.is_file():
            self.refused.append(Unsupported(f"{self.name}: {Path(path).name}", "the scorecard names it, and it is not there"))
        else:
            return read_bytes(place)
        return None


def _transcript(result: Result, files: _Files) -> bytes | None:
    last = max(result.sessions, key=lambda session: session.trial, default=None)
    return files.read(last.full) if last else None


def _scores(result: Result) -> Iterator[ImportedScore]:
    if result.resolved is not None:
        yield ImportedScore(scorer="tests", score=_resolved(result))
    if result.behavioral is not None:
        yield ImportedScore(scorer="behavioral", score=_behavioral(result.behavioral))
    if result.review is not None:
        yield review_score(counts_of(result.review), result.review.beta, result.review.trace)
    if not result.workflow_succeeded and result.error is None:
        yield ImportedScore(scorer="workflow", score=Score.failed({"why": "the agent's workflow did not end well"}))


def _resolved(result: Result) -> Score:
    """Return whether the tests passed, with a remark when nothing shows which tests that were."""
    if not result.resolved:
        return Score.failed({"why": "not resolved"})
    named = result.fail_to_pass or result.pass_to_pass
    remark = {"why": "resolved, but no test is named: nothing shows that hidden tests were run"}
    return Score.passed(findings=() if named else (remark,))


def _behavioral(behavioral: Behavioral) -> Score:
    checks = behavioral.checks
    failed = tuple({"why": check.name, "detail": check.detail} for check in checks if not check.ok)
    passed = len(checks) - len(failed)
    share = passed / len(checks) if checks else float(behavioral.ok)
    metrics = {"checks": float(len(checks)), "passed": float(passed)}
    return Score(ok=behavioral.ok, score=share, findings=failed, metrics=metrics)


def _output(review: Review | None) -> str | None:
    return review.trace.review_text if review and review.trace else None


def _review_files(review: Review | None) -> dict[str, bytes]:
    """Return findings and gold as the judge paired them, and its replies as they were."""
    if review is None or review.trace is None:
        return {}
    trace = review.trace
    paired: dict[str, Any] = trace.model_dump(include={"judge_model", "findings", "gold"})
    replies = {"judge/extract.txt": trace.raw_extract, "judge/match.txt": trace.raw_match}
    kept = {name: reply.encode("utf-8", "replace") for name, reply in replies.items() if reply is not None}
    return {"judge/review.json": _json(paired), **kept}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _usage(result: Result, told: Transcript, refused: list[Unsupported]) -> Usage | None:
    """Return consumption: the scorecard's, and what only the transcript knows; ``None`` when nobody measured."""
    if not result.measured:
        return told.usage if told.usage != Usage() else None
    usage = replace(
        told.usage,
        input=result.input_tokens,
        output=result.output_tokens,
        cost=result.cost,
        cost_source="reported" if result.cost is not None else None,
        model=result.model,
    )
    cached = (told.usage.cache_read, told.usage.cache_write)
    if None not in cached and sum(filter(None, cached)) != result.cached_tokens:
        why = (
            f"the scorecard says {result.cached_tokens}, the transcript {sum(filter(None, cached))}; the transcript's are kept"
        )
        refused.append(Unsupported(f"{result.instance_id}: cached tokens", why))
    return usage
