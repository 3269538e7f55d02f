"""The table of what hostile programs reach: observed, read from the page, and written into it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.isolation.graded import GRADED, passes
from tests.isolation.programs import PROGRAMS, Program
from tests.isolation.world import attempt, world

from evalwright.interfaces import Deadline, Sandbox
from evalwright.registry import PluginHost, Registry

PAGE = Path(__file__).parents[2] / "docs/explanation/isolation.md"
BEGIN, END = "<!-- hostile programs: begin -->", "<!-- hostile programs: end -->"
TABLES: Mapping[str, Mapping[str, str]] = {"subprocess": {}, "bubblewrap": {}, "vm": {"root": "busybox"}}
POSSIBLE = "**possible**"
Rows = Mapping[str, Mapping[str, str]]


def started(name: str) -> Sandbox[Any]:
    """Return a sandbox of the table, started."""
    registry = Registry(None)
    sandbox: Sandbox[Any] = registry.create("sandbox", name, TABLES[name], PluginHost(registry, {}))
    sandbox.start(Deadline.after(600))
    return sandbox


def outcome(sandbox: Sandbox[Any], program: Program, ground: Path) -> str:
    """Run one program in a fresh world and say what came of it."""
    place = Path(tempfile.mkdtemp(dir=ground))
    place.chmod(0o711)
    with world(place) as around, attempt(sandbox, around, program.argv, place, cpu_seconds=program.cpu_seconds) as result:
        if program.reached(result):
            return POSSIBLE
        return result.completed.limit or "stopped"


def observed(found: Mapping[str, Sandbox[Any]], ground: Path) -> Rows:
    """Run every program in every sandbox."""
    rows = {program.name: {name: outcome(sandbox, program, ground) for name, sandbox in found.items()} for program in PROGRAMS}
    return rows | {name: {sandbox: graded(sandbox, name, ground) for sandbox in found} for name in GRADED}


def graded(sandbox: str, name: str, ground: Path) -> str:
    """Let a program that aims at the grader be the agent of a trial, and say what came of it."""
    return POSSIBLE if passes(sandbox, TABLES[sandbox], GRADED[name], ground) else "stopped"


def written(page: str) -> Rows:
    """Read the table back."""
    lines = page[page.index(BEGIN) : page.index(END)].splitlines()[1:]
    header, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}


def replaced(page: str, rows: Rows) -> str:
    """Return the page with another table."""
    names = list(next(iter(rows.values())))
    lines = [["a program tries to", *(f"`{name}`" for name in names)], ["---"] * (len(names) + 1)]
    lines += [[name, *cells.values()] for name, cells in rows.items()]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
    return page[: page.index(BEGIN)] + f"{BEGIN}\n{table}\n" + page[page.index(END) :]
