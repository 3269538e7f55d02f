"""What a user asks for, and which cases that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evalwright.errors import NothingSelected, UsageError
from evalwright.model import DEFAULT_ARM, Case, Suite
from evalwright.rundir import Layout
from evalwright.settings import Settings
from evalwright.suite import CheckedSuite

__all__ = ["RunRequest", "Selection", "check_arms", "select_cases"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which cases of a suite; everything empty means all."""

    cases: Sequence[str] = ()
    tags: Sequence[str] = ()
    splits: Sequence[str] = ()
    max_cases: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One run to do, or one per arm and repeat. ``argv`` is the command line, for the record.

    ``replayed_from`` is the run whose failures are done again; ``replace`` lets a finished run of that id give way once the
    new one is ready to start. No ``arms`` means the suite's own tables alone. ``max_cost`` is in US dollars.
    ``origin`` is where the suite lies that a snapshot was made of, for the record.
    """

    checked: CheckedSuite
    layout: Layout
    settings: Settings
    run_id: str | None = None
    selection: Selection = field(default_factory=Selection)
    replayed_from: str | None = None
    replace: bool = False
    arms: Sequence[str] = ()
    repeats: int = 1
    max_cost: float | None = None
    origin: str | None = None
    argv: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


def check_arms(suite: Suite, wanted: Sequence[str]) -> list[str]:
    """Return the wanted arms, once each. Raises ``UsageError`` for one that the suite does not have."""
    for name in wanted:
        if name not in suite.arms and not (name == DEFAULT_ARM and not suite.arms):
            import difflib

            near = difflib.get_close_matches(name, suite.arms, 1)
            known = ", ".join(suite.arms) or "none"
            raise UsageError(
                f'the suite {suite.name} has no arm "{name}"',
                hint=f"did you mean {near[0]}?" if near else f"its arms: {known}; add one under arms in suite.json",
                key="arm",
                valid_values=list(suite.arms),
            )
    return list(dict.fromkeys(wanted))


def select_cases(suite: Suite, selection: Selection) -> tuple[Case, ...]:
    """Return the selected cases, sorted by id.

    Raises ``NothingSelected`` for an id that the suite does not have, or when nothing is left.
    """
    known = {case.id for case in suite.cases}
    for wanted in selection.cases:
        if wanted not in known:
            import difflib

            near = difflib.get_close_matches(wanted, known, 1)
            raise NothingSelected(
                f"no cases matched: {wanted}",
                hint=f"did you mean {near[0]}?" if near else f"see: evalwright plan {suite.name}",
                did_you_mean=near[0] if near else None,
            )
    chosen = [case for case in sorted(suite.cases, key=lambda case: case.id) if _matches(case, selection)]
    if selection.max_cases is not None:
        chosen = chosen[: selection.max_cases]
    if not chosen:
        asked = [*selection.cases, *selection.tags, *selection.splits]
        what = f"no cases matched: {', '.join(asked)}" if asked else f"the suite {suite.name} has no cases"
        raise NothingSelected(what, hint=f"add one: evalwright case add {suite.name} --task TEXT --workspace PATH")
    return tuple(chosen)


def _matches(case: Case, selection: Selection) -> bool:
    return (
        (not selection.cases or case.id in selection.cases)
        and (not selection.tags or bool(set(selection.tags) & set(case.tags)))
        and (not selection.splits or case.split in selection.splits)
    )
