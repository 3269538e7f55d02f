"""Judge a stored trial again by its pure scorers; what other scorers said is taken from their sealed records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from evalwright.errors import RunCorrupt
from evalwright.interfaces import ScoreContext
from evalwright.model import Manifest, ScoredTrial
from evalwright.model.manifest import changes_between
from evalwright.rundir import RunDirectory, read_object, read_services
from evalwright.scoring import apply_scorers, fold_status
from evalwright.suite import load_scorers

__all__ = ["Rescorer", "folded", "stored_records", "stored_trial"]

TRANSCRIPT = ("runner.stdout.txt", "runner.stderr.txt", "events.jsonl")


class Rescorer:
    """Judges the trials of one run with the scorers of its suite snapshot. Raises ``SuiteError`` when those are wrong."""

    def __init__(self, run: RunDirectory) -> None:
        self._scorers, self._native = load_scorers(run.snapshot)

    def judge(self, directory: Path) -> tuple[str, Sequence[Mapping[str, Any]], str | None]:
        """Return ``(status, score records, fault)`` of one case. Raises ``RunCorrupt`` when an artifact is missing."""
        case = read_object(directory / "input.json")
        trial = stored_trial(directory, native=self._native)
        stored, expect = stored_records(directory), case.get("expect", {})
        no_context = cast(ScoreContext, None)
        records = apply_scorers(self._scorers, trial, expect, context=lambda _: no_context, stored=stored)
        status, fault = folded(directory, records)
        return status, records, fault


def stored_records(directory: Path) -> dict[str, dict[str, Any]]:
    """Return the sealed records of scorers that are not judged again, by id."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted((directory / "scorers").glob("*.json")):
        record = read_object(path)
        missing = {"scorer", "ok", "score", "label", "findings"} - set(record)
        if missing:
            raise RunCorrupt(f"{path} lacks {', '.join(sorted(missing))}", hint="restore the file", file=str(path))
        found[path.stem] = record
    return found


def _text(path: Path, default: str | None = None) -> str:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        if default is None:
            raise RunCorrupt(f"{path} is missing", hint="restore the file", file=str(path)) from None
        return default
    except OSError as error:
        raise RunCorrupt(f"{path}: {error.strerror}", hint="restore the file", file=str(path)) from error


def stored_trial(directory: Path, *, native: bool) -> ScoredTrial:
    """Return a stored trial as scorers see it, without expectations. Raises ``RunCorrupt`` when an artifact is missing."""
    case = read_object(directory / "input.json")
    runner = read_object(directory / "runner.json")
    before = Manifest.from_json(read_object(directory / "workspace-before.json"))
    after = Manifest.from_json(read_object(directory / "workspace-after.json"))
    return ScoredTrial(
        case_id=case["id"],
        task=case["task"],
        expect={},
        output=_text(directory / "output.txt"),
        output_truncated=runner.get("output_truncated", False),
        exit_code=runner.get("exit_code"),
        timed_out=runner.get("timed_out", False),
        before=before,
        after=after,
        changes=changes_between(before, after),
        diff=_text(directory / "workspace.diff", ""),
        transcript="\n".join(filter(None, (_text(directory / name, "") for name in TRANSCRIPT))),
        native=native,
        meta=case.get("meta", {}),
        services=read_services(directory),
    )


def folded(directory: Path, records: Sequence[Mapping[str, Any]]) -> tuple[str, str | None]:
    """Return status and fault of a stored trial with these scores: what ``runner.json`` says of its own end counts first."""
    runner = read_object(directory / "runner.json")
    late = runner.get("timed_out") and not runner.get("scored_on_timeout")
    broken = bool(late or runner.get("spawn_failed") or runner.get("error_code"))
    status = fold_status(records, broken=broken)
    error: Mapping[str, Any] = runner.get("error") or {}
    fault: str | None = error.get("fault", "agent" if runner.get("timed_out") else "harness")
    return status, fault if status == "error" else None
