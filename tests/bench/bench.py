"""What every row is given: counts, a place of its own, and the programs that it compares."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.lines import FLOOR, OURS
from tests.bench.measure import Figures, environment, spent
from tests.bench.peers import PEERS, peer

__all__ = ["PYTHON_START", "Absent", "Bench", "Tool"]

PYTHON_START = [sys.executable, "-I", "-c", "pass"]


class Absent(Exception):
    """A component that a row needs is missing; the text says which and why."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A program under comparison. ``name`` is its side; ``ours`` tells Evalwright from the peers."""

    name: str
    program: Path

    @property
    def ours(self) -> bool:
        """Tell whether it is Evalwright."""
        return self.name == OURS


@dataclass(frozen=True, eq=False)
class Bench:
    """One measuring. ``quick`` makes every count small: figures to try the bench with, not to believe.

    ``largest`` is the number of trials of the largest run in the curve.
    """

    scratch: Path
    quick: bool = False
    largest: int = 10_000
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    @property
    def rounds(self) -> int:
        """Return how many turns each side has."""
        return 2 if self.quick else 5

    def count(self, full: int, quick: int) -> int:
        """Return the count of a full measuring, or of a quick one."""
        return quick if self.quick else full

    def place(self, name: str) -> Path:
        """Return a new directory. Nothing is deleted before the end: a big delete slows the file system down."""
        directory = self.scratch / f"{next(self.numbers)}-{name}"
        directory.mkdir(parents=True)
        return directory

    def tools(self, *versions: str) -> list[Tool]:
        """Return Evalwright and the peers of these versions (default: all). Raises :class:`Absent` where one is missing."""
        found = [Tool(OURS, Path(sys.executable).with_name("evalwright"))]
        for version in versions or PEERS:
            try:
                found.append(Tool(f"evalctl {version}", peer(version)))
            except (OSError, subprocess.SubprocessError) as error:
                raise Absent(f"evalctl {version} cannot be installed: {error}") from error
        return found

    def run(self, tool: Tool, suite: str, cwd: Path, *words: str, env: Mapping[str, str] | None = None) -> dict[str, float]:
        """Run a suite under a new id and return what it cost, with the id's ``number``."""
        number = next(self.numbers)
        call = [tool.program, "run", suite, "--run-id", f"r{number}", "--json", *words]
        return spent(call, cwd, env=environment(**(env or {}))) | {"number": number}

    def sides(self, measure: Callable[[Tool], Figures], *versions: str) -> dict[str, Callable[[], Figures]]:
        """Return, for Evalwright and each peer, a side that measures it."""
        return {tool.name: lambda tool=tool: measure(tool) for tool in self.tools(*versions)}

    def python_start(self) -> dict[str, Callable[[], Figures]]:
        """Return the floor of a short call: Python that does nothing."""
        return {FLOOR: lambda: spent(PYTHON_START)}

    def calls(self, cwd: Path, words: Mapping[str, Sequence[str]]) -> dict[str, Callable[[], Figures]]:
        """Return sides that make one call each, by the words for each tool's name; and Python's start as the floor."""
        tools = [tool for tool in self.tools() if tool.name in words]
        calls = {tool.name: lambda tool=tool: spent([tool.program, *words[tool.name]], cwd) for tool in tools}
        return calls | self.python_start()
