"""An experiment as markdown, for pull requests and ``report.md``; pictures lie beside it, or are drawn as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evalwright.report.experiment import ExperimentView
from evalwright.report.figures.arms import ArmFigures, arm_figures
from evalwright.report.figures.difference import Difference
from evalwright.report.figures.failures import Failure
from evalwright.report.figures.grid import case_rows
from evalwright.report.figures.groups import Group
from evalwright.report.forms.experiment_text import arms_table, heat_map, remarks
from evalwright.report.forms.markdown import escaped, failure_lines, warning_lines
from evalwright.report.screen import Screen, counted, money, rate_text

__all__ = ["experiment_markdown", "groups_markdown"]

MAX_FAILURES = 200
MAX_ROWS = 200
PAGE = Screen(width=100)
TEXTS = {
    "rates.svg": "Pass rate of each arm with its 95 % interval",
    "differences.svg": "Differences between arms with intervals",
    "cases.svg": "Each case over repeats",
    "cost.svg": "Cost of a trial against pass rate",
}


def experiment_markdown(
    view: ExperimentView,
    *,
    pictures: Collection[str] = (),
    comparisons: Sequence[Difference] = (),
    failures: Sequence[Failure] | None = None,
    held_out: int = 0,
) -> str:
    """Return headline, arms, comparisons, pictures and cases, or ``failures`` in place of the cases.

    ``pictures`` are the names of files beside the text. Without them the same is drawn in code blocks, since forges show no
    picture that stands in the text itself.
    """
    arms = arm_figures(view)
    lines = [f"# {escaped(view.suite)}: {_answer(arms)}", "", _size(view, arms), "", *warning_lines(view.warnings)]
    lines += _arms(arms)
    lines += _picture("rates.svg", pictures) or _drawn(arms_table(arms, PAGE))
    lines += ["", *(f"- {escaped(difference.sentence)}" for difference in comparisons)] if comparisons else []
    lines += _picture("differences.svg", pictures) + _picture("cost.svg", pictures)
    said = remarks(arms, Screen(width=10_000))
    lines += ["", *(f"- {escaped(line)}" for line in said)] if said else []
    lines += _failures(failures, held_out) if failures is not None else _cases(view, pictures)
    return "\n".join(lines) + "\n"


def groups_markdown(groups: Sequence[Group], by: str, *, held_out: int = 0) -> str:
    """Return groups of failures as a table, the largest first."""
    lines = [f"# Failures by {by}", ""]
    lines += [f"| count | {by} | cases | example |", "|---:|---|---:|---|"] if groups else ["None."]
    for group in groups:
        example = group.examples[0]
        lines.append(f"| {group.count} | {escaped(group.key)} | {len(group.cases)} | {escaped(example['trial'])} |")
    return "\n".join([*lines, *_held_out(held_out)]) + "\n"


def _answer(arms: Sequence[ArmFigures]) -> str:
    best = sorted(arms, key=lambda arm: -1.0 if arm.rate.micro is None else arm.rate.micro, reverse=True)
    return ", ".join(f"{escaped(arm.name)} {_rate(arm)}" for arm in best)


def _size(view: ExperimentView, arms: Sequence[ArmFigures]) -> str:
    missing = view.planned - len(view.trials)
    scored = sum(arm.totals["scored"] for arm in arms)
    text = f"Experiment `{view.id}`: {scored} of {view.planned} trials scored."
    damaged = [f" **Damaged:** `{run_id}` is not counted: {escaped(why)}." for run_id, why in view.damaged.items()]
    missing -= sum(cell.cases for cell in view.cells if cell.run_id in view.damaged)
    partial = f" **Partial:** {counted(missing, 'trial')} without a result yet, not counted." if view.partial else ""
    return "".join([text, *damaged, partial])


def _arms(arms: Sequence[ArmFigures]) -> list[str]:
    head = (
        "| arm | pass rate | passed | scored | attempted | planned | harness errors | agent faults | unscored | cost | median |"
    )
    lines = [head, "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"]
    keys = ("harness_errors", "agent_faults", "unscored")
    for arm in arms:
        counts = [
            arm.totals["passed"],
            arm.totals["scored"],
            arm.totals["attempted"],
            arm.planned,
            *(arm.totals[k] for k in keys),
        ]
        seconds = "" if arm.median_seconds is None else f"{arm.median_seconds:.2f} s"
        cells = [escaped(arm.name), _rate(arm), *map(str, counts), _cost(arm), seconds]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _cases(view: ExperimentView, pictures: Collection[str]) -> list[str]:
    rows = case_rows(view)
    drawn = _picture("cases.svg", pictures) or _drawn(heat_map(rows, view.arms, PAGE))
    lines = ["", "## Cases", *drawn, "", "<details><summary>Passed, of what counts</summary>", ""]
    lines += [f"| case | {' | '.join(map(escaped, view.arms))} |", f"|---|{'---:|' * len(view.arms)}"]
    for row in rows[:MAX_ROWS]:
        cells: list[str] = []
        for arm in view.arms:
            counted = [trial for trial in row.trials[arm] if trial is not None and trial.counts]
            cells.append(f"{sum(t.status == 'pass' for t in counted)} of {len(counted)}" if counted else "–")
        lines.append(f"| {escaped(row.id)} | {' | '.join(cells)} |")
    if len(rows) > MAX_ROWS:
        lines += ["", f"{len(rows) - MAX_ROWS} more cases: `evalwright report {view.id} --format json`."]
    return [*lines, "", "</details>"]


def _failures(failures: Sequence[Failure], held_out: int) -> list[str]:
    lines = ["", "## Failures", ""]
    for failure in failures[:MAX_FAILURES]:
        head, *rest = failure_lines(failure.case)
        lines += [f"{head} ({escaped(failure.trial.arm)}, repeat {failure.trial.repeat})", *rest]
    if len(failures) > MAX_FAILURES:
        lines += ["", f"{len(failures) - MAX_FAILURES} more: all of them with `--format json`."]
    return [*lines, *([] if failures else ["None."]), *_held_out(held_out)]


def _held_out(count: int) -> list[str]:
    text = f"{count} more of cases that are held out: not shown unless `--split` names their split."
    return ["", text] if count else []


def _picture(name: str, pictures: Collection[str]) -> list[str]:
    return ["", f"![{TEXTS[name]}]({name})"] if name in pictures else []


def _drawn(lines: Sequence[str]) -> list[str]:
    return ["", "```text", *(line.rstrip() for line in lines), "```"]


def _rate(arm: ArmFigures) -> str:
    ends = arm.rate.micro_interval
    return rate_text(arm.rate.micro, (ends.low, ends.high) if ends else None)


def _cost(arm: ArmFigures) -> str:
    cost = arm.cost
    if cost.total is None:
        return "unknown"
    return money(cost.total) if cost.complete else f"≥ {money(cost.total)} ({cost.known} of {cost.of} known)"
