"""An experiment for a terminal or a log: the answer first, then arms, cases, failures and the next command."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.report.experiment import ExperimentView
from evalwright.report.figures.arms import ArmFigures, arm_figures, never_passed
from evalwright.report.figures.difference import Difference
from evalwright.report.figures.failures import Failure
from evalwright.report.figures.grid import CaseRow, case_rows
from evalwright.report.figures.groups import Group
from evalwright.report.forms.text import case_lines
from evalwright.report.screen import (
    MARKS,
    Screen,
    aligned,
    counted,
    interval_bar,
    listed,
    mark,
    money,
    rate_text,
    shade,
    shortened,
)
from evalwright.report.wording import printable

__all__ = ["arms_table", "experiment_text", "groups_text", "headline", "heat_map", "remarks", "summary_text"]

MIN_BAR, MAX_BAR = 10, 40
MIN_COLUMNS = 4
MAX_ROWS = 60
MAX_FAILURES = 50
MAX_EXAMPLES = 2


def experiment_text(
    view: ExperimentView,
    *,
    screen: Screen,
    comparisons: Sequence[Difference] = (),
    failures: Sequence[Failure] | None = None,
    held_out: int = 0,
    closer: Sequence[str] = (),
) -> str:
    """Return the whole report. ``failures`` are listed in place of the cases when they are given.

    ``held_out`` is the number of failures that are not shown; ``closer`` are commands to go on with.
    """
    arms = arm_figures(view)
    lines = [*_head(view, arms, comparisons, screen), "", *arms_table(arms, screen), ""]
    if failures is None:
        lines += [*heat_map(case_rows(view), view.arms, screen), ""]
    else:
        lines += [*_failures(failures, held_out), ""]
    lines += remarks(arms, screen)
    return screen.text([*lines, *_closer(closer, screen)])


def summary_text(
    view: ExperimentView, *, screen: Screen, comparisons: Sequence[Difference] = (), closer: Sequence[str] = ()
) -> str:
    """Return what stands at the end of ``run``: rates, comparisons, flaky cases, the next command."""
    arms = arm_figures(view)
    return screen.text([*_head(view, arms, comparisons, screen), *remarks(arms, screen), *_closer(closer, screen)])


def headline(view: ExperimentView) -> str:
    """Return the one line that answers the question."""
    return " · ".join(line.strip() for line in _head(view, arm_figures(view), (), Screen(width=10_000)))


def groups_text(groups: Sequence[Group], by: str, *, screen: Screen, held_out: int = 0, closer: Sequence[str] = ()) -> str:
    """Return groups of failures, the largest first, each with examples."""
    total = f"failures by {by}: {counted(len(groups), 'group')}" if groups else "no failures"
    lines = [total, ""] if groups else [total]
    for group in groups:
        arms = ", ".join(f"{printable(arm)} {count}" for arm, count in group.arms.items())
        lines.append(f"{group.count:>5} × {printable(group.key)}")
        lines.append(f"        {arms} · cases: {listed(sorted(map(printable, group.cases)))}")
        lines += [f"        {printable(e['trial'])}: {printable(e['text'])}" for e in group.examples[:MAX_EXAMPLES]]
    return screen.text([*lines, *_held_out(held_out), *_closer(closer, screen)])


def arms_table(arms: Sequence[ArmFigures], screen: Screen) -> list[str]:
    """Return one line an arm: rate, interval and bar, both denominators, what was planned, cost and time.

    A narrow screen gets fewer columns, from the right.
    """
    rows = [["arm", "pass rate", "passed", "scored", "attempted", "planned", "cost", "median time"]]
    for arm in arms:
        counts = (arm.totals["passed"], arm.totals["scored"], arm.totals["attempted"], arm.planned)
        seconds = "–" if arm.median_seconds is None else f"{arm.median_seconds:.2f} s"
        rows.append([shortened(printable(arm.name)), _rate(arm), *map(str, counts), _cost(arm), seconds])
    lines = aligned(rows, right=range(2, 8))
    while max(map(len, lines)) + MIN_BAR + 4 > screen.width and len(rows[0]) > MIN_COLUMNS:
        rows = [row[:-1] for row in rows]
        lines = aligned(rows, right=range(2, 8))
    room = min(MAX_BAR, screen.width - max(map(len, lines)) - 4)
    if room >= MIN_BAR:
        scale = ["0" + "1".rjust(room - 1), *(_bar(arm, room) for arm in arms)]
        lines = aligned([[*row[:2], bar, *row[2:]] for row, bar in zip(rows, scale, strict=True)], right=range(3, 9))
    return [*(f" {line}" for line in lines), *(line for arm in arms for line in _spoiled(arm, screen))]


def heat_map(rows: Sequence[CaseRow], arms: Sequence[str], screen: Screen) -> list[str]:
    """Return a line for each case with a mark a pass; of many cases a line an arm with a mark a case."""
    if len(rows) > MAX_ROWS:
        return _compact(rows, arms, screen)
    table = [["case", *(shortened(printable(arm), 20) for arm in arms)]]
    table += [[shortened(printable(row.id)), *("".join(map(mark, row.trials[arm])) for arm in arms)] for row in rows]
    used = {mark(trial) for row in rows for trials in row.trials.values() for trial in trials}
    legend = "   ".join(f"{sign} {word}" for sign, word in MARKS if sign in used)
    return [*(f" {line}" for line in aligned(table)), "", *screen.wrapped(f" {legend or 'no cases'}", " ")]


def remarks(arms: Sequence[ArmFigures], screen: Screen) -> list[str]:
    """Return which cases are flaky, which never passed, and what quality cost."""
    lines: list[str] = []
    flaky = [(arm.name, arm.cases("flaky")) for arm in arms if arm.cases("flaky")]
    if flaky:
        found = ";  ".join(f"{printable(name)}: {listed([printable(c) for c in cases])}" for name, cases in flaky)
        lines += screen.wrapped(f"Flaky (pass in some repeats): {found}", "  ")
    never = never_passed(arms)
    if never:
        lines += screen.wrapped(f"Never passed: {listed([printable(case) for case in never])}", "  ")
    priced = [arm for arm in arms if arm.cost.total is not None]
    if priced:
        lines += screen.wrapped(f"Cost and quality: {';  '.join(map(_value, priced))}", "  ")
    return lines


def _head(view: ExperimentView, arms: Sequence[ArmFigures], comparisons: Sequence[Difference], screen: Screen) -> list[str]:
    """Return the answer, what of the experiment is missing, and the comparisons."""
    best = sorted(arms, key=lambda arm: -1.0 if arm.rate.micro is None else arm.rate.micro, reverse=True)
    shown = "   ".join(f"{printable(arm.name)} {_rate(arm)}" for arm in best)
    scored, errors = (sum(arm.totals[key] for arm in arms) for key in ("scored", "harness_errors"))
    cases = len({case for run in view.runs for case in run.planned})
    size = f"{counted(cases, 'case')}, {counted(view.repeats, 'repeat')}"
    counts = f"{size}, {scored} of {view.planned} trials scored, {counted(errors, 'harness error')}"
    answer = f"{printable(view.suite)}: {shown}"
    whole = f"{answer}   {counts}"
    lines = [whole] if len(whole) <= screen.width else [*screen.wrapped(answer, "  "), *screen.wrapped(f"  {counts}", "  ")]
    for run_id, why in view.damaged.items():
        lines += screen.wrapped(f"Damaged: {printable(run_id)} is not counted: {printable(why)}", "  ")
    if view.partial:
        finished = sum(run.finished for run in view.runs)
        done = f"{len(view.trials)} of {view.planned} trials and {finished} of {len(view.cells)} runs are finished"
        lines += screen.wrapped(f"Partial: {done}. What is missing is not counted.", "  ")
    if view.primary and any(arm.primary for arm in arms):
        found = "   ".join(f"{printable(arm.name)} {_mean(arm)}" for arm in best)
        lines += screen.wrapped(f"Primary metric {printable(view.primary)}: {found}", "  ")
    for difference in comparisons:
        lines += screen.wrapped(printable(difference.sentence), "  ")
    return lines


def _rate(arm: ArmFigures) -> str:
    ends = arm.rate.micro_interval
    return rate_text(arm.rate.micro, (ends.low, ends.high) if ends else None)


def _bar(arm: ArmFigures, width: int) -> str:
    ends = arm.rate.micro_interval
    return interval_bar(arm.rate.micro, ends.low if ends else None, ends.high if ends else None, width)


def _spoiled(arm: ArmFigures, screen: Screen) -> list[str]:
    """Return what of an arm's trials tells nothing, or was its own fault, and the rate over all that were attempted."""
    words = {"harness_errors": "harness error", "agent_faults": "agent fault", "unscored": "unscored trial"}
    found = [counted(arm.totals[key], word) for key, word in words.items() if arm.totals[key]]
    if not found:
        return []
    over_all = arm.totals["pass_rate_attempted"]
    rate = f"; pass rate over all attempted {over_all:.2f}" if over_all is not None else ""
    return screen.wrapped(f"  {printable(arm.name)}: {', '.join(found)}{rate}", "    ")


def _mean(arm: ArmFigures) -> str:
    if arm.primary is None:
        return "–"
    ends = arm.primary.micro_interval
    return rate_text(arm.primary.micro, (ends.low, ends.high) if ends else None)


def _compact(rows: Sequence[CaseRow], arms: Sequence[str], screen: Screen) -> list[str]:
    names = [shortened(printable(arm), 20) for arm in arms]
    margin = max(map(len, names))
    width = max(20, screen.width - margin - 4)
    lines: list[str] = []
    for start in range(0, len(rows), width):
        part = rows[start : start + width]
        lines.append(f" cases {start + 1} to {start + len(part)}: {printable(part[0].id)} … {printable(part[-1].id)}")
        lines += [
            f"  {name.ljust(margin)}  {''.join(shade(row.share(arm)) for row in part)}"
            for arm, name in zip(arms, names, strict=True)
        ]
    legend = " one mark a case:   █ always passed   ▓ half or more   ▒ less   ░ never   · no result that counts"
    return [*lines, "", *screen.wrapped(legend, " ")]


def _failures(failures: Sequence[Failure], held_out: int) -> list[str]:
    lines: list[str] = []
    for failure in failures[:MAX_FAILURES]:
        head, *rest = case_lines(failure.case)
        lines += [f"{head}  {printable(failure.trial.arm)}, repeat {failure.trial.repeat}", *rest]
    if len(failures) > MAX_FAILURES:
        lines.append(f"  … {len(failures) - MAX_FAILURES} more: all of them with --format json")
    return [*(lines or ["  no failures"]), *_held_out(held_out)]


def _held_out(count: int) -> list[str]:
    what = counted(count, "failure")
    return [f"  {what} of cases that are held out: not shown unless --split names their split"] if count else []


def _cost(arm: ArmFigures) -> str:
    cost = arm.cost
    if cost.total is None:
        return "unknown" if cost.of else "–"
    return money(cost.total) if cost.complete else f"≥ {money(cost.total)} ({cost.known} of {cost.of} known)"


def _value(arm: ArmFigures) -> str:
    """Return an arm's rate against its price."""
    cost, passed = arm.cost, arm.totals["passed"]
    each = f", {money((cost.total or 0) / cost.known)} a trial"
    price = f", {money((cost.total or 0) / passed)} a pass" if passed and cost.complete else ""
    rate = "–" if arm.rate.micro is None else f"{arm.rate.micro:.2f}"
    return f"{printable(arm.name)} {rate} for {_cost(arm)}{each}{price}"


def _closer(commands: Sequence[str], screen: Screen) -> list[str]:
    """Return the commands on one line, or on one line each where they do not fit."""
    if not commands:
        return []
    line = f"Look closer:  {'   ·   '.join(commands)}"
    return ["", line] if len(line) <= screen.width else ["", "Look closer:", *(f"  {command}" for command in commands)]
