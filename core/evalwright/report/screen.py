"""What text is drawn for, and the small pictures that text can hold: bars, marks and columns."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evalwright.report.trials import Trial

__all__ = [
    "MARKS",
    "Screen",
    "aligned",
    "counted",
    "difference_bar",
    "interval_bar",
    "listed",
    "mark",
    "money",
    "rate_text",
    "shade",
    "shortened",
]

MARKS = (("█", "pass"), ("░", "fail"), ("x", "agent's fault"), ("!", "harness error"), ("?", "unscored"), ("·", "no result"))
SHADES = "░▒▓█"
PLAIN = str.maketrans(
    {
        "█": "#",
        "▓": "+",
        "▒": "=",
        "░": ".",
        "─": "-",
        "┼": "|",
        "·": "-",
        "–": "-",
        "−": "-",
        "×": "x",
        "…": "...",
        "≥": ">=",
        "✗": "x",
        "✓": "+",
    }
)
MAX_NAME = 40


@dataclass(frozen=True, slots=True)
class Screen:
    """Where text is shown: its width in columns, and whether more than ASCII can be shown there."""

    width: int = 100
    unicode: bool = True

    def text(self, lines: Iterable[str]) -> str:
        """Return the lines as one text that this screen can show."""
        whole = "\n".join(line.rstrip() for line in lines) + "\n"
        return whole if self.unicode else whole.translate(PLAIN).encode("ascii", "backslashreplace").decode("ascii")

    def wrapped(self, text: str, indent: str = "") -> list[str]:
        """Return a paragraph as lines that fit; those after the first begin with ``indent``."""
        return textwrap.wrap(
            text, max(self.width, 40), subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )


def interval_bar(value: float | None, low: float | None, high: float | None, width: int) -> str:
    """Return a bar from 0 to 1: the interval shaded, the value solid; without a value an empty one."""

    def column(place: float) -> int:
        return min(width - 1, max(0, int(place * width)))

    cells = ["─"] * width
    if value is not None:
        if low is not None and high is not None:
            cells[column(low) : column(high) + 1] = "▒" * (column(high) + 1 - column(low))
        cells[column(value)] = "█"
    return "".join(cells)


def difference_bar(value: float, low: float, high: float, width: int) -> str:
    """Return a bar with 0 in its middle and the farthest end of the interval at its own: shaded, the value solid."""
    reach = max(abs(low), abs(high), abs(value)) or 1.0
    middle, start, end = ((place / reach + 1) / 2 for place in (value, low, high))
    cells = list(interval_bar(middle, start, end, width))
    if cells[width // 2] == "─":
        cells[width // 2] = "┼"
    return "".join(cells)


def mark(trial: Trial | None) -> str:
    """Return the one character that stands for a trial; see ``MARKS``."""
    if trial is None:
        return "·"
    if trial.status == "error":
        return "x" if trial.fault == "agent" else "!"
    return {"pass": "█", "fail": "░"}.get(trial.status, "?")


def shade(share: float | None) -> str:
    """Return the character for a share of passes: empty for none of them, solid for all, ``·`` where nothing counts."""
    if share is None:
        return "·"
    return SHADES[0] if share <= 0 else SHADES[3] if share >= 1 else SHADES[2] if share >= 0.5 else SHADES[1]


def rate_text(value: float | None, ends: Sequence[float] | None) -> str:
    """Return a rate with its interval."""
    if value is None:
        return "–"
    return f"{value:.2f} ({ends[0]:.2f} – {ends[1]:.2f})" if ends else f"{value:.2f}"


def money(dollars: float) -> str:
    """Return an amount of US dollars with two significant digits, from ten dollars on with cents."""
    if abs(dollars) >= 10 or dollars == 0:
        return f"${dollars:.2f}"
    return f"${float(f'{dollars:.2g}'):.12f}".rstrip("0").rstrip(".")


def counted(number: int, word: str) -> str:
    """Return a number with its noun."""
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def listed(names: Sequence[str], most: int = 6) -> str:
    """Return the names; of a long list the first ones and how many there are."""
    shown = ", ".join(shortened(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, … ({len(names)})"


def shortened(name: str, most: int = MAX_NAME) -> str:
    """Return a name of at most so many characters."""
    return name if len(name) <= most else name[: most - 1] + "…"


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Return rows of cells as lines with columns two spaces apart; columns in ``right`` end flush."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
