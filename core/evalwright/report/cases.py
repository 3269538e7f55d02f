"""What a suite says of its cases: tags and splits, which select cases and hold some out."""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from evalwright.canonical import digest_json, is_array, is_object
from evalwright.errors import NothingSelected, RunCorrupt
from evalwright.report.experiment import ExperimentView
from evalwright.rundir import RunDirectory, read_object
from evalwright.suite.paths import path_objection
from evalwright.suite.read import case_lines, parse_json

__all__ = ["HELD_OUT", "CaseFacts", "facts_of", "select", "without_held_out"]

HELD_OUT = frozenset({"held-out", "held_out", "heldout", "hold-out", "hold_out", "holdout", "test"})
"""The splits whose failures nobody may learn from unless they are asked for by name, in small letters."""


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """The tags and the split of a case."""

    tags: tuple[str, ...] = ()
    split: str | None = None

    @property
    def held_out(self) -> bool:
        """Tell whether the case is kept back to measure with."""
        return self.split is not None and self.split.strip().lower() in HELD_OUT


def facts_of(view: ExperimentView) -> dict[str, CaseFacts]:
    """Return the facts of every case, from the suite as it was run. Raises ``RunCorrupt`` when no copy can be read."""
    for run in view.runs[:-1]:
        with contextlib.suppress(RunCorrupt):
            return _facts(run.run)
    return _facts(view.runs[-1].run) if view.runs else {}


def select(
    view: ExperimentView,
    facts: Mapping[str, CaseFacts],
    *,
    cases: Sequence[str] = (),
    tags: Sequence[str] = (),
    splits: Sequence[str] = (),
) -> ExperimentView:
    """Return the view of the selected cases alone; nothing given means all of them.

    Raises ``NothingSelected`` for a case that was not planned, or when nothing is left.
    """
    known = {case for run in view.runs for case in run.planned}
    for wanted in cases:
        if wanted not in known:
            near = difflib.get_close_matches(wanted, known, 1)
            hint = f"did you mean {near[0]}?" if near else f"see its cases: evalwright status {view.id}"
            raise NothingSelected(f"no cases matched: {wanted}", hint=hint, did_you_mean=near[0] if near else None)
    chosen = {
        case
        for case in known
        if (not cases or case in cases)
        and (not tags or set(tags) & set(facts.get(case, CaseFacts()).tags))
        and (not splits or facts.get(case, CaseFacts()).split in splits)
    }
    if not chosen:
        raise NothingSelected(
            f"no cases matched: {', '.join([*cases, *tags, *splits])}", hint=f"see its cases: evalwright status {view.id}"
        )
    return view if chosen == known else _only(view, chosen)


def without_held_out(view: ExperimentView, facts: Mapping[str, CaseFacts], splits: Sequence[str] = ()) -> ExperimentView:
    """Return the view without cases that are held out, but for those of a split in ``splits``."""
    known = {case for run in view.runs for case in run.planned}
    kept = {case for case in known if not (fact := facts.get(case, CaseFacts())).held_out or fact.split in splits}
    return view if kept == known else _only(view, kept)


def _only(view: ExperimentView, kept: Collection[str]) -> ExperimentView:
    runs = [
        replace(
            run,
            planned=[case for case in run.planned if case in kept],
            trials=[trial for trial in run.trials if trial.case in kept],
        )
        for run in view.runs
    ]
    return replace(view, runs=runs, cells=[cell._replace(cases=len(kept)) for cell in view.cells])


def _facts(run: RunDirectory) -> dict[str, CaseFacts]:
    try:
        document = read_object(run.snapshot / "suite.json")
        name = str(document.get("cases", "cases.jsonl"))
        if objection := path_objection(run.snapshot, name, "file"):
            raise ValueError(f"cases: {objection}")
        records = [parse_json(text or "") for _, text in case_lines((run.snapshot / name).read_bytes())]
    except (OSError, ValueError, RecursionError) as error:
        raise RunCorrupt(
            f"{run.snapshot} does not say what cases the run has: {error}", hint="restore it from a copy"
        ) from error
    found: dict[str, CaseFacts] = {}
    for record in records:
        if is_object(record):
            tags, split = record.get("tags"), record.get("split")
            names = tuple(tag for tag in tags if isinstance(tag, str)) if is_array(tags) else ()
            facts = CaseFacts(names, split if isinstance(split, str) else None)
            found[str(record.get("id") or digest_json(record)[7:19])] = facts
    return found
