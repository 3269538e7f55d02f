"""``compare``: is one arm better than another, and may I believe it?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.experiments import exit_code_of, screen, warn_of
from evalwright.cli.gating import named_sides
from evalwright.cli.project import open_project
from evalwright.coordinate import take_look
from evalwright.errors import UsageError
from evalwright.report import ExperimentView
from evalwright.report.figures.comparison import ArmComparison, Side, compare_sides
from evalwright.report.forms.comparison_text import comparison_text
from evalwright.report.forms.experiment_data import damage_data
from evalwright.rundir import Layout, is_experiment

__all__ = ["answer", "comparison_data"]

DEFAULT_METRIC = "pass_rate"


def answer(session: Session) -> Reply:
    """Compare the arms of one experiment with its first, or two runs, experiments or arms with each other."""
    options = session.options
    layout = open_project(session).layout
    views, comparisons = _within(session, layout) if options.b is None else _between(session, layout)
    text = screen().text("\n".join(map(comparison_text, comparisons)).splitlines())
    data = comparison_data(comparisons) | {"damaged": [entry for view in views for entry in damage_data(view)]}
    reply = Reply(data=data, text=text, exit_code=exit_code_of(*views))
    subject = options.a.partition(":")[0]
    return reply.then(f"evalwright report {subject} --failures", "see what did not pass, and why")


def comparison_data(comparisons: list[ArmComparison]) -> dict[str, Any]:
    """Return the only comparison's record, with the list of all of them beside it."""
    records = [comparison.as_json() for comparison in comparisons]
    return (records[0] if len(records) == 1 else {}) | {"comparisons": records}


Answer = tuple[list[ExperimentView], list[ArmComparison]]


def _within(session: Session, layout: Layout) -> Answer:
    options = session.options
    view, sides = named_sides(layout, options.a)
    if options.arm:
        known = {side.name: side for side in sides}
        unknown = [name for name in options.arm if name not in known]
        if unknown:
            raise UsageError(f'{view.id} has no arm "{unknown[0]}"', hint=f"its arms: {', '.join(view.arms)}", key="arm")
        sides = [known[name] for name in options.arm]
    if len(sides) < 2:
        raise UsageError(
            f"{options.a} has one arm, which has nothing to be compared with",
            hint="name two runs or experiments, or ID:ARM ID:ARM; how repeats of one arm differ: evalwright band",
        )
    metric = options.metric or view.primary or DEFAULT_METRIC
    look = take_look(layout, view, metric) if is_experiment(layout, view.id) else None
    warn_of(session, view)
    alpha, effect = options.alpha or view.alpha, options.min_effect or 0.0
    found = compare_sides(sides[0], sides[1:], metric=metric, alpha=alpha, min_effect=effect, look=look)
    return [view], found if look is None else _declared(view, found, metric, alpha)


def _between(session: Session, layout: Layout) -> Answer:
    options = session.options
    found = [named_sides(layout, reference) for reference in (options.a, options.b)]
    for reference, (_, sides) in zip((options.a, options.b), found, strict=True):
        if len(sides) > 1:
            arms = ", ".join(f"{reference}:{side.name}" for side in sides)
            raise UsageError(f"{reference} has {len(sides)} arms", hint=f"name one: {arms}", key=reference)
    (one, (first, *_)), (two, (second, *_)) = found
    views = [one] if one.id == two.id else [one, two]
    for view in views:
        warn_of(session, view)
    if one.suite != two.suite:
        session.warn("W_SUITE_DIFFERS", f"{one.id} measured the suite {one.suite}, {two.id} the suite {two.suite}")
    sides = [_labelled(view, side) for view, side in ((one, first), (two, second))]
    metric = options.metric or one.primary or DEFAULT_METRIC
    same = one.id == two.id and is_experiment(layout, one.id)
    look = take_look(layout, one, metric) if same else None
    alpha, effect = options.alpha or one.alpha, options.min_effect or 0.0
    compared = compare_sides(sides[0], sides[1:], metric=metric, alpha=alpha, min_effect=effect, look=look)
    return views, compared if look is None else _declared(one, compared, metric, alpha)


def _declared(view: ExperimentView, found: list[ArmComparison], metric: str, alpha: float) -> list[ArmComparison]:
    """Mark answers to what the experiment's record does not ask."""
    undeclared = metric != (view.primary or DEFAULT_METRIC) or alpha > view.alpha
    return [replace(comparison, undeclared=undeclared) for comparison in found]


def _labelled(view: ExperimentView, side: Side) -> Side:
    name = f"{view.id}:{side.name}" if len(view.arms) > 1 or len(view.cells) > 1 else view.id
    return replace(side, name=name)
