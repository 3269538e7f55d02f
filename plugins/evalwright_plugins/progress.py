"""Shows a run while it goes on: a live view on a terminal, plain lines elsewhere. Writes to stderr only."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from evalwright.hookspecs import hookimpl

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

__all__ = ["Progress"]

LINE_SECONDS = 1.0
SHOWN_RUNNING = 4
STYLES = {"pass": "green", "fail": "red", "error": "magenta", "unscored": "yellow"}


@dataclass
class Row:
    """One run: a pass of an arm. ``before`` trials were finished when it was taken up again."""

    name: str
    total: int = 0
    before: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])

    @property
    def done(self) -> int:
        """Return the number of finished trials."""
        return self.before + self.counts.total()


class Progress:
    """The observer. One object per call: of one run, or of all runs of an experiment."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._rows: dict[str, Row] = {}
        self._running: dict[tuple[str, str], float] = {}
        self._title = self._sandbox = ""
        self._started = time.monotonic()
        self._printed = 0.0
        self._begun = 0
        self._live: Live | None = None

    @hookimpl
    def experiment_started(self, experiment: str, runs: Sequence[Mapping[str, Any]]) -> None:
        """Note which runs are to come."""
        self._title = experiment
        passes = max(run["repeat"] for run in runs)
        for run in runs:
            name = f"{run['arm']} {run['repeat']}/{passes}" if len(runs) > 1 else run["run"]
            self._rows[run["run"]] = Row(name, run["trials"])

    @hookimpl
    def run_started(self, event: Mapping[str, Any], total: int) -> None:
        """Begin to show."""
        self._begin(event, total, 0)

    @hookimpl
    def run_resumed(self, event: Mapping[str, Any], total: int, done: int) -> None:
        """Begin to show a run of which a part was done before."""
        self._begin(event, total, done)

    @hookimpl
    def trial_started(self, event: Mapping[str, Any], case: str) -> None:
        """Note a running trial."""
        self._running[event["run"], case] = time.monotonic()
        if self._live:
            self._live.update(self._table())

    @hookimpl
    def trial_finished(self, event: Mapping[str, Any], case: str, status: str) -> None:
        """Note a result."""
        self._running.pop((event["run"], case), None)
        self._rows[event["run"]].counts[status] += 1
        if self._live:
            self._live.update(self._table())
        elif time.monotonic() - self._printed >= LINE_SECONDS and self._done < self._total:
            self._print(self._line())

    @hookimpl
    def run_interrupted(self) -> None:
        """Stop showing."""
        self._end()

    @hookimpl
    def run_finished(self) -> None:
        """Stop showing when it was the last."""
        if self._done >= self._total:
            self._end()

    @property
    def _total(self) -> int:
        return sum(row.total for row in self._rows.values())

    @property
    def _done(self) -> int:
        return sum(row.done for row in self._rows.values())

    def _begin(self, event: Mapping[str, Any], total: int, done: int) -> None:
        run = str(event["run"])
        row = self._rows.setdefault(run, Row(run))
        row.total, row.before = total, done
        self._title = self._title or run
        self._sandbox = str(event["data"].get("sandbox", ""))
        self._begun += 1
        if self._begun == len(self._rows):
            self._open()

    def _open(self) -> None:
        """Show the first line once it is known of every run how much of it is left."""
        self._started = time.monotonic()
        if self._stream.isatty():
            self._live = self._open_live()
            return
        left, done = self._total - self._done, self._done
        what = "1 trial" if left == 1 else f"{left} trials"
        runs = f" as {len(self._rows)} runs" if len(self._rows) > 1 else ""
        self._print(f"{self._title}: {what} to run in {self._sandbox}{runs}" + (f", {done} done before" if done else ""))

    def _open_live(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        live = Live(console=Console(file=self._stream), get_renderable=self._table, refresh_per_second=4, transient=True)
        live.start()
        return live

    def _end(self) -> None:
        if self._live:
            self._live.stop()
            self._live = None
        elif self._printed >= 0:
            self._print(self._line())
        self._printed = -1.0

    def _table(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        table = Table.grid(padding=(0, 2))
        for row in self._rows.values():
            counts = Text("  ").join(Text(f"{row.counts[name]} {name}", style) for name, style in STYLES.items())
            bar = ProgressBar(total=max(row.total, 1), completed=row.done, width=30)
            table.add_row(Text(row.name, "bold"), bar, counts)
        table.add_row(
            "",
            f"{self._done} of {self._total} · {self._sandbox} · {len(self._running)} running · {self._waiting} waiting",
            self._clock(),
        )
        for (run, case), since in list(self._running.items())[:SHOWN_RUNNING]:
            name = f"{self._rows[run].name} · {case}" if len(self._rows) > 1 else case
            table.add_row("", Text(name, "dim"), f"{time.monotonic() - since:.0f} s")
        return table

    @property
    def _waiting(self) -> int:
        return max(0, self._total - self._done - len(self._running))

    @property
    def _counts(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for row in self._rows.values():
            total.update(row.counts)
        return total

    def _line(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(self._counts.items()))
        before = any(row.before for row in self._rows.values())
        now = f"now {counts}" if before and counts else counts or "nothing yet"
        return f"{self._title}: {self._done} of {self._total} done · {now} · {self._clock()}"

    def _clock(self) -> str:
        elapsed = time.monotonic() - self._started
        done_here = self._counts.total()
        left = self._total - self._done
        eta = f" · about {_duration(elapsed / done_here * left)} left" if done_here and left > 0 else ""
        return f"{_duration(elapsed)}{eta}"

    def _print(self, line: str) -> None:
        self._printed = time.monotonic()
        self._stream.write(f"{line}\n")
        self._stream.flush()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
