"""The page of hostile judges: its table is written by the script and held by the test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tests.judging.hostile import Body

__all__ = ["PAGE", "page_with"]

PAGE = Path(__file__).parents[2] / "docs/explanation/hostile-judges.md"
BEGIN, END = "<!-- written by python -m tests.judging -->", "<!-- end -->"
NAMED = ("clear reply of the model", "unclear reply of the model", "envelope that is none", "answer without end")


def page_with(text: str, bodies: Sequence[Body], outcomes: Sequence[str]) -> str:
    """Return the page with its tables made anew."""
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n{_summary(bodies, outcomes)}\n\n{_details(bodies, outcomes)}\n{END}{after}"


def _summary(bodies: Sequence[Body], outcomes: Sequence[str]) -> str:
    lines = ["| what is sent | bodies | read as meant | refused | read wrongly |", "|---|---|---|---|---|"]
    groups = dict.fromkeys(body.group for body in bodies)
    for group in groups:
        said = [outcome for body, outcome in zip(bodies, outcomes, strict=True) if body.group == group]
        lines.append(_row(group, said))
    return "\n".join([*lines, _row("**all**", list(outcomes))])


def _row(name: str, said: Sequence[str]) -> str:
    meant = said.count("read as 0") + said.count("read as 0.0") + said.count("read as -0.0")
    refused = sum(outcome.startswith("judge_") for outcome in said)
    return f"| {name} | {len(said)} | {meant} | {refused} | {len(said) - meant - refused} |"


def _details(bodies: Sequence[Body], outcomes: Sequence[str]) -> str:
    lines: list[str] = []
    for group in dict.fromkeys(body.group for body in bodies):
        pairs = [(body.name, outcome) for body, outcome in zip(bodies, outcomes, strict=True) if body.group == group]
        lines += [f"### {group[0].upper()}{group[1:]}", "", "| body | outcome |", "|---|---|"]
        if group in NAMED:
            lines += [f"| {_cell(name)} | {outcome} |" for name, outcome in pairs]
        else:
            counts = Counter(outcome for _, outcome in pairs)
            lines += [f"| {count} of {len(pairs)} | {outcome} |" for outcome, count in sorted(counts.items())]
        lines.append("")
    return "\n".join(lines).rstrip()


def _cell(name: str) -> str:
    return name.replace("|", "\\|")
