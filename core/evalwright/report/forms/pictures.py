"""Pictures of an experiment as SVG: rates, cases over repeats, cost against quality, differences between arms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from evalwright.report.experiment import ExperimentView
from evalwright.report.figures.arms import ArmFigures, arm_figures
from evalwright.report.figures.difference import Difference
from evalwright.report.figures.grid import CaseRow, case_rows
from evalwright.report.forms.svg import Box, document, element, label, line, rectangle, text_width, whisker
from evalwright.report.screen import money, rate_text, shortened
from evalwright.report.trials import Trial

__all__ = ["Point", "cost_picture", "differences_picture", "heat_picture", "pictures", "rates_picture"]

PLOT, ROW, CELL, GAP = 360.0, 26.0, 14.0, 3.0
MAX_ROWS, PER_LINE = 60, 60
MARGIN = 12.0


class Point(NamedTuple):
    """An arm in a picture: its rate with the ends of the interval, and what a trial costs in US dollars, if known."""

    label: str
    value: float
    low: float | None
    high: float | None
    cost: float | None = None


def pictures(view: ExperimentView, comparisons: Sequence[Difference] = ()) -> dict[str, str]:
    """Return ``{file name: SVG}`` of all pictures for which there are figures."""
    points = [point for arm in arm_figures(view) if (point := _point(arm)) is not None]
    rows = case_rows(view)
    found = {
        "rates.svg": rates_picture(points) if points else "",
        "cases.svg": heat_picture(rows, view.arms) if rows else "",
        "cost.svg": cost_picture([point for point in points if point.cost is not None]),
        "differences.svg": differences_picture(comparisons) if comparisons else "",
    }
    return {name: text for name, text in found.items() if text}


def rates_picture(points: Sequence[Point]) -> str:
    """Return one bar an arm on a scale from 0 to 1, its interval shaded."""
    left = _margin([point.label for point in points])
    body = _scale(left, len(points), [(share / 4, f"{share / 4:g}") for share in range(5)])
    for index, point in enumerate(points):
        y = MARGIN + index * ROW
        body.append(label(left - 8, y + 16, shortened(point.label), kind="strong", anchor="end"))
        if point.low is not None and point.high is not None:
            x, width = left + _clamped(point.low) * PLOT, (_clamped(point.high) - _clamped(point.low)) * PLOT
            body.append(rectangle(Box(x, y + 6, width, 12), "span", title=_said(point)))
        body.append(rectangle(Box(left + _clamped(point.value) * PLOT - 2, y + 3, 4, 18), "value", title=_said(point)))
        body.append(label(left + PLOT + 12, y + 16, rate_text(point.value, _ends(point))))
    return document(
        left + PLOT + 150,
        MARGIN * 2 + len(points) * ROW + 18,
        title="Pass rates with 95 % intervals",
        description=". ".join(map(_said, points)),
        body=body,
    )


def differences_picture(differences: Sequence[Difference]) -> str:
    """Return one interval a comparison around a line at no difference."""
    known = [abs(end) for d in differences for end in (d.difference, d.low, d.high) if end is not None]
    reach = max([0.1, *known])
    left = _margin([d.label for d in differences])
    body = _scale(left, len(differences), [(0.0, f"−{reach:.2f}"), (0.5, "0"), (1.0, f"+{reach:.2f}")])
    for index, d in enumerate(differences):
        y = MARGIN + index * ROW
        kind = d.answer if d.answer in ("better", "worse") else "open"
        body.append(label(left - 8, y + 16, shortened(d.label), kind="strong", anchor="end"))
        body.append(label(left + PLOT + 12, y + 16, d.answer))
        ends = [left + (0.5 + end / reach / 2) * PLOT for end in (d.low, d.high) if end is not None]
        if len(ends) == 2:
            body.append(rectangle(Box(ends[0], y + 9, ends[1] - ends[0], 6), kind, title=d.sentence, opacity=0.5))
        if d.difference is not None:
            x = left + (0.5 + d.difference / reach / 2) * PLOT
            body.append(rectangle(Box(x - 2, y + 3, 4, 18), kind, title=d.sentence))
    return document(
        left + PLOT + 150,
        MARGIN * 2 + len(differences) * ROW + 18,
        title="Differences between arms with intervals",
        description=" ".join(d.sentence for d in differences),
        body=body,
    )


def heat_picture(rows: Sequence[CaseRow], arms: Sequence[str]) -> str:
    """Return a cell for each trial, a row a case; of many cases a cell for each case and arm, its shade the share passed."""
    if len(rows) > MAX_ROWS:
        return _compact(rows, arms)
    left = _margin([row.id for row in rows])
    repeats = max((len(rows[0].trials[arm]) for arm in arms), default=0)
    wide = max(repeats * (CELL + GAP), *(text_width(shortened(arm, 20)) for arm in arms)) + 12
    body = [label(left + column * wide, MARGIN + 10, shortened(arm, 20), kind="strong") for column, arm in enumerate(arms)]
    for index, row in enumerate(rows):
        y = MARGIN + 20 + index * (CELL + GAP)
        body.append(label(left - 8, y + 11, shortened(row.id), anchor="end"))
        for column, arm in enumerate(arms):
            body += [
                _cell(left + column * wide + place * (CELL + GAP), y, trial, f"{row.id}, {arm}, repeat {place + 1}")
                for place, trial in enumerate(row.trials[arm])
            ]
    height = MARGIN + 20 + len(rows) * (CELL + GAP)
    words = (("pass", "pass"), ("fail", "fail"), ("error", "error"), ("none", "nothing that counts"))
    for place, (kind, word) in enumerate(words):
        body.append(rectangle(Box(MARGIN + place * 84, height + 8, CELL, CELL), kind))
        body.append(label(MARGIN + place * 84 + CELL + 5, height + 19, word))
    width = max(left + len(arms) * wide, MARGIN + 340)
    return document(width, height + 34, title="Cases over repeats", description=_described(rows, arms), body=body)


def cost_picture(points: Sequence[Point]) -> str:
    """Return arms by what a trial costs and what share passes, with whiskers; nothing below two arms of known cost."""
    most = max((point.cost or 0.0 for point in points), default=0.0)
    if len(points) < 2 or not 0 < most < math.inf:
        return ""
    left, top, height = 48.0, MARGIN + 6, 220.0
    body = [line(left, top, left, top + height), line(left, top + height, left + PLOT, top + height)]
    body += [label(left - 6, top + height * (1 - share / 4) + 4, f"{share / 4:g}", anchor="end") for share in range(5)]
    body += [label(left, top + height + 16, "$0"), label(left + PLOT, top + height + 16, money(most), anchor="end")]
    body.append(label(left + PLOT / 2, top + height + 32, "US dollars a trial", anchor="middle"))
    for point in points:
        x, y = left + (point.cost or 0.0) / most * PLOT, top + height * (1 - _clamped(point.value))
        if point.low is not None and point.high is not None:
            body.append(whisker(x, *(top + height * (1 - _clamped(end)) for end in (point.low, point.high))))
        body.append(element("circle", cx=x, cy=y, r=5, class_="value"))
        body.append(label(x + 9, y - 7, shortened(point.label), kind="strong"))
    said = ". ".join(f"{_said(point)}, {money(point.cost or 0.0)} a trial" for point in points)
    return document(left + PLOT + 160, top + height + 44, title="Cost against pass rate", description=said, body=body)


def _compact(rows: Sequence[CaseRow], arms: Sequence[str]) -> str:
    size, step = 9.0, 11.0
    left = _margin(arms)
    block = len(arms) * step + 10
    body: list[str] = []
    for start in range(0, len(rows), PER_LINE):
        top = MARGIN + start / PER_LINE * block
        for line_number, arm in enumerate(arms):
            y = top + line_number * step
            body.append(label(left - 8, y + 9, shortened(arm), anchor="end"))
            for place, row in enumerate(rows[start : start + PER_LINE]):
                share = row.share(arm)
                said = f"{row.id}, {arm}: {'no result that counts' if share is None else f'{share:.2f} passed'}"
                box = Box(left + place * step, y, size, size)
                kind = "none" if share is None else "fail" if share <= 0 else "pass"
                body.append(rectangle(box, kind, title=said, opacity=share if kind == "pass" else None))
    height = MARGIN * 2 + math.ceil(len(rows) / PER_LINE) * block
    width = left + PER_LINE * step + MARGIN
    return document(width, height, title="Cases by share of repeats passed", description=_described(rows, arms), body=body)


def _cell(x: float, y: float, trial: Trial | None, where: str) -> str:
    status = trial.status if trial else "no result"
    kind = {"pass": "pass", "fail": "fail", "error": "error"}.get(status, "none")
    return rectangle(Box(x, y, CELL, CELL), kind, title=f"{where}: {status}")


def _scale(left: float, rows: int, ticks: Sequence[tuple[float, str]]) -> list[str]:
    bottom = MARGIN + rows * ROW
    found = [line(left + share * PLOT, MARGIN, left + share * PLOT, bottom) for share, _ in ticks]
    return found + [label(left + share * PLOT, bottom + 15, word, anchor="middle") for share, word in ticks]


def _point(arm: ArmFigures) -> Point | None:
    if arm.rate.micro is None:
        return None
    ends = arm.rate.micro_interval
    cost = arm.cost.total / arm.cost.known if arm.cost.total is not None and arm.cost.complete else None
    return Point(arm.name, arm.rate.micro, ends.low if ends else None, ends.high if ends else None, cost)


def _ends(point: Point) -> tuple[float, float] | None:
    return None if point.low is None or point.high is None else (point.low, point.high)


def _said(point: Point) -> str:
    return f"{point.label}: {rate_text(point.value, _ends(point))}"


def _described(rows: Sequence[CaseRow], arms: Sequence[str]) -> str:
    always = {arm: sum(row.share(arm) == 1 for row in rows) for arm in arms}
    return f"{len(rows)} cases. Passed in every repeat: {', '.join(f'{arm} {count}' for arm, count in always.items())}."


def _margin(names: Sequence[str]) -> float:
    return MARGIN + 8 + max((text_width(shortened(name)) for name in names), default=0.0)


def _clamped(share: float) -> float:
    return min(1.0, max(0.0, share))
