"""The trials of a run that did not pass, once more, in a new run that names its source."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from evalwright.errors import RunBusy, RunConflict
from evalwright.report import project
from evalwright.rundir import Layout, RunDirectory, check_id

__all__ = ["check_target", "failed_cases", "replay_id", "split_absent"]


def failed_cases(source: RunDirectory) -> tuple[str, str, list[str]]:
    """Return the source's run id, its suite, and the ids of all cases whose recomputed status is not ``pass``."""
    report = project(source)
    return report.run_id, check_id(report.suite, "suite name"), [case.id for case in report.cases if not case.ok]


def split_absent(wanted: Sequence[str], present: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the wanted ids that the present suite has, and those that it has no more."""
    return [case for case in wanted if case in present], [case for case in wanted if case not in present]


def replay_id(layout: Layout, source_id: str, wanted: str | None) -> str:
    """Return the new run's id: the wanted one, or one made from the source's."""
    if wanted is not None:
        return check_id(wanted)
    base = f"{source_id}-replay-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}"
    names = [base, *(f"{base}-{number}" for number in range(2, 1000))]
    return next(check_id(name) for name in names if not (layout.runs / name).exists())


def check_target(target: RunDirectory, source: RunDirectory, *, force: bool) -> None:
    """Check that the target's id is free, or holds a finished run that ``force`` may replace.

    Raises ``RunConflict`` when it is the source itself, finished without ``force``, or no run; ``RunBusy`` when unfinished.
    """
    if not target.path.exists():
        return
    name = target.path.name
    if target.path.resolve() == source.path.resolve():
        raise RunConflict("a replay cannot replace its own source", hint="choose another --run-id")
    if not target.manifest.is_file():
        if not target.run_json.is_file():
            raise RunConflict(f"{target.path} exists and is no run", hint="choose another --run-id")
        raise RunBusy(f"run {name} is unfinished", hint=f"go on with: evalwright run --resume {name}")
    if not force:
        raise RunConflict(f"run {name} exists already", hint="choose another --run-id, or replace it with --force")
