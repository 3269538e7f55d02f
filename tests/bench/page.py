"""Rows as people read them: a table for the terminal, and the page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tests.bench.lines import OURS, Line, Row

__all__ = ["as_page", "as_text"]

COLUMNS = ("floor", "evalctl 0.3.0", "evalctl 1.1.0")
PER_ROW = ("date", "load", "evalwright")
HEAD = """# Benchmarks

Written by `make bench-page` from the last full measuring of each row; `make bench ROW=P5` measures one row again.
`make bench-check` measures, and exits 6 where a target is missed.

Every figure is a median of five turns (the runs of P17 and S1: one), and the sides take their turns in one run, so
that a ratio holds on a busy machine too. In brackets stands how many times that figure ours is. The floor is a bare loop
that does the same work; the peer is evalctl, from an environment of its own. Figures in ms are CPU time where the line says
CPU. A target is against the floor or the peer of the same line, never against a clock.
"""


def as_text(row: Row) -> str:
    """Return a row for the terminal."""
    return "\n".join([f"{row.id}  {row.what}", *_text_lines(row)])


def as_page(rows: Sequence[Row], known: Mapping[str, str]) -> str:
    """Return the page of all ``known`` rows (what each measures, by id); those without a measuring are named as such."""
    measured = {row.id: row for row in rows}
    missing = (Row(id=name, what=what, absent="not measured yet") for name, what in known.items() if name not in measured)
    every = measured | {row.id: row for row in missing}
    ordered = [every[name] for name in known]
    parts = [HEAD, *_machine(rows), f"{_summary(ordered)}\n"]
    for title, letter in (("Targets", "P"), ("Scale", "S")):
        parts += [f"## {title}\n", "\n".join(_table([row for row in ordered if row.id.startswith(letter)])) + "\n"]
    parts += ["## When\n", "\n".join(_when([row for row in ordered if row.stamp])) + "\n"]
    return "\n".join(parts)


def _text_lines(row: Row) -> Iterator[str]:
    if row.absent:
        yield f"    not measured: {row.absent}"
    for line in row.lines:
        sides = "   ".join(f"{side} {_cell(line, side)}" for side in line.sides)
        yield f"    {line.label} ({line.unit or 'count'}): {sides or line.note}"
        if line.targets:
            yield f"        {line.verdict}: {_targets(line)}"


def _table(rows: Sequence[Row]) -> Iterator[str]:
    yield f"| row | figure | ours | {' | '.join(COLUMNS)} | others | target | verdict |"
    yield "|---|---|---|" + "---|" * len(COLUMNS) + "---|---|---|"
    for row in rows:
        blanks = " |" * (len(COLUMNS) + 4)
        yield f"| **{row.id}** | *{row.what}*{': ' + row.absent if row.absent else ''} |{blanks}"
        for line in row.lines:
            others = "; ".join(f"{side} {_cell(line, side)}" for side in line.sides if side not in (OURS, *COLUMNS))
            cells = [_cell(line, side) for side in (OURS, *COLUMNS)]
            label = f"{line.label}{f' ({line.unit})' if line.unit else ''}{f'; {line.note}' if line.note else ''}"
            verdict = f"**{line.verdict}**" if line.verdict == "missed" else line.verdict
            yield f"| {row.id} | {label} | {' | '.join(cells)} | {others} | {_targets(line)} | {verdict} |"


def _machine(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what is the same for all rows, each value that occurs."""
    names = dict.fromkeys(name for row in rows for name in row.stamp if name not in PER_ROW)
    yield from (f"- {name}: {', '.join(dict.fromkeys(row.stamp[name] for row in rows if name in row.stamp))}" for name in names)
    yield ""


def _summary(rows: Sequence[Row]) -> str:
    verdicts = [line.verdict for row in rows for line in row.lines if line.targets]
    counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))
    missed = ", ".join(row.id for row in rows if row.missed)
    absent = ", ".join(row.id for row in rows if not row.lines)
    tails = (f" {word}: {ids}." for word, ids in (("Missed in", missed), ("Without figures", absent)) if ids)
    return f"Lines with a target: {counts or 'none'}.{''.join(tails)}"


def _when(rows: Sequence[Row]) -> Iterator[str]:
    yield f"| row | {' | '.join(PER_ROW)} |"
    yield "|---|" + "---|" * len(PER_ROW)
    for row in rows:
        yield f"| {row.id} | {' | '.join(row.stamp.get(name, '') for name in PER_ROW)} |"


def _cell(line: Line, side: str) -> str:
    if side not in line.sides:
        return ""
    ratio = None if side == OURS else line.ratio(side)
    return _number(line.sides[side]) + (f" ({ratio:.2f}x)" if ratio is not None else "")


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 99.95 else f"{value:.1f}" if abs(value) >= 9.995 else f"{value:.2f}"


def _targets(line: Line) -> str:
    return ", ".join(target.words(line.unit) for target in line.targets)
