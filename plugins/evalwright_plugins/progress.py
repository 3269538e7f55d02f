"""Shows a run while it goes on: a live view on a terminal, plain lines elsewhere. Writes to stderr only."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TextIO

from evalwright.hookspecs import hookimpl

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

__all__ = ["Progress"]

LINE_SECONDS = 1.0
SHOWN_RUNNING = 4
STYLES = {"pass": "green", "fail": "red", "error": "magenta", "unscored": "yellow"}


class Progress:
    """The observer. One object per run."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._counts: Counter[str] = Counter()
        self._running: dict[str, float] = {}
        self._total = 0
        self._before = 0
        self._run = self._sandbox = ""
        self._started = time.monotonic()
        self._printed = 0.0
        self._live: Live | None = None

    @hookimpl
    def run_started(self, event: Mapping[str, Any], total: int) -> None:
        """Begin to show."""
        self._begin(event, total, 0)

    @hookimpl
    def run_resumed(self, event: Mapping[str, Any], total: int, done: int) -> None:
        """Begin to show a run of which a part was done before."""
        self._begin(event, total, done)

    @hookimpl
    def trial_started(self, case: str) -> None:
        """Note a running trial."""
        self._running[case] = time.monotonic()
        if self._live:
            self._live.update(self._table())

    @hookimpl
    def trial_finished(self, case: str, status: str) -> None:
        """Note a result."""
        self._running.pop(case, None)
        self._counts[status] += 1
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
        """Stop showing."""
        self._end()

    @property
    def _done(self) -> int:
        return self._before + sum(self._counts.values())

    def _begin(self, event: Mapping[str, Any], total: int, done: int) -> None:
        self._run, self._total, self._before = str(event["run"]), total, done
        self._sandbox = str(event["data"].get("sandbox", ""))
        self._started = time.monotonic()
        if self._stream.isatty():
            self._live = self._open_live()
        else:
            left = total - done
            what = "1 trial" if left == 1 else f"{left} trials"
            self._print(f"{self._run}: {what} to run in {self._sandbox}" + (f", {done} done before" if done else ""))

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
        else:
            self._print(self._line())

    def _table(self) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        counts = Text("  ").join(Text(f"{self._counts[name]} {name}", style) for name, style in STYLES.items())
        table = Table.grid(padding=(0, 2))
        table.add_row(Text(self._run, "bold"), ProgressBar(total=max(self._total, 1), completed=self._done, width=30), counts)
        table.add_row(
            "",
            f"{self._done} of {self._total} · {self._sandbox} · {len(self._running)} running · {self._waiting} waiting",
            self._clock(),
        )
        for case, since in list(self._running.items())[:SHOWN_RUNNING]:
            table.add_row("", Text(case, "dim"), f"{time.monotonic() - since:.0f} s")
        return table

    @property
    def _waiting(self) -> int:
        return max(0, self._total - self._done - len(self._running))

    def _line(self) -> str:
        counts = ", ".join(f"{count} {status}" for status, count in sorted(self._counts.items()))
        now = f"now {counts}" if self._before and counts else counts or "nothing yet"
        return f"{self._run}: {self._done} of {self._total} done · {now} · {self._clock()}"

    def _clock(self) -> str:
        elapsed = time.monotonic() - self._started
        done_here = sum(self._counts.values())
        left = self._total - self._done
        eta = f" · about {_duration(elapsed / done_here * left)} left" if done_here and left else ""
        return f"{_duration(elapsed)}{eta}"

    def _print(self, line: str) -> None:
        self._printed = time.monotonic()
        self._stream.write(f"{line}\n")
        self._stream.flush()


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
