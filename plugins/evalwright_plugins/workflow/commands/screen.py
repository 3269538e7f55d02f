"""Showing the same thing anew: in place on a terminal, as new lines through a pipe."""

from __future__ import annotations

import os
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable
from typing import Literal, TextIO

from evalwright.errors import Interrupted
from evalwright.processes import Stop
from evalwright_plugins.workflow.drive.runs import Run
from evalwright_plugins.workflow.record import State, Status
from evalwright_plugins.workflow.workspace import owner_of

__all__ = ["Motion", "Screen", "motion_of", "still", "until"]

Motion = Literal["moves", "unowned", "rests"]

TICK_SECONDS = 0.2
GRACE_SECONDS = 1.0


class Screen:
    """Shows a text in the place of the one before; where that cannot be done, the lines that the one before had not."""

    def __init__(self, out: TextIO, *, still: bool) -> None:
        self._out = out
        self._still = still
        self._shown: list[str] = []

    def show(self, text: str) -> None:
        """Show a text of several lines."""
        lines = text.splitlines()
        if self._still:
            size = shutil.get_terminal_size()
            lines = [_cut(line, size.columns) for line in lines[: size.lines - 1]]
            up = f"\x1b[{len(self._shown)}F" if self._shown else ""
            self._out.write(f"{up}\x1b[J" + "".join(f"{line}\n" for line in lines))
        else:
            self._out.write("".join(f"{line}\n" for line in lines if line not in self._shown))
        self._shown = lines
        self._out.flush()


def until(look: Callable[[], Motion]) -> None:
    """Look again and again until what is looked at rests, or is nobody's for a second: so long may a change of owners take.

    Raises ``Interrupted`` for Ctrl-C, which ends the looking and nothing else.
    """
    stop = Stop()
    stop.listen()
    begun = owned = time.monotonic()
    while (motion := look()) != "rests":
        now = time.monotonic()
        owned = now if motion == "moves" else owned
        if now - owned > GRACE_SECONDS:
            return
        if stop.requested:
            raise Interrupted("you look no longer; the run is as it was", hint="look again: evalwright work status")
        time.sleep(max(TICK_SECONDS, now - begun))
        begun = time.monotonic()


def motion_of(run: Run, state: State) -> Motion:
    """Tell whether a run moves: one that waits or has ended rests, one that nobody drives may be taken up yet."""
    if state.status.terminal or run.foreign or (state.status is Status.WAITING_HUMAN and state.decision is None):
        return "rests"
    return "moves" if owner_of(run.files.driver) else "unowned"


def still() -> bool:
    """Tell whether what is shown can be drawn over."""
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _cut(line: str, columns: int) -> str:
    """Return as much of a line as fits; letters of East Asia take two columns."""
    width = 0
    for number, letter in enumerate(line):
        width += 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if width >= columns:
            return line[:number]
    return line
