"""What a dead owner of a run left alive: found by the run's journal and ended before anything else happens to the run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from evalwright.coordinate.lease import Lease, lease_state
from evalwright.errors import RunBusy
from evalwright.processes import end_strays
from evalwright.rundir import Layout, RunDirectory
from evalwright.store import DirectoryStore
from evalwright.workspace import clear_abandoned, clear_scratch

__all__ = ["clear_leftovers", "end_leftovers", "recover"]

Warn = Callable[[str, str], None]


def recover(run: RunDirectory, warn: Warn) -> None:
    """End what lives of a run that nobody works on. Every verb that is given a run calls this first."""
    if not run.journal.is_file() or lease_state(run) == "held":
        return
    with contextlib.suppress(RunBusy), Lease.locked(run):
        end_leftovers(run, warn)


def end_leftovers(run: RunDirectory, warn: Warn) -> None:
    """End what lives of a run whose lock is held by this process, and say how much that was."""
    ended = end_strays(run.journal)
    run.journal.unlink(missing_ok=True)
    if ended:
        warn("W_STRAYS_ENDED", f"{ended} processes of the run's former owner were still running; they were killed")


def clear_leftovers(layout: Layout, workspaces: Path | None) -> None:
    """Remove the files that dead processes left outside the run: workspaces, halves of blobs, and leak tests."""
    clear_scratch(workspaces)
    DirectoryStore(layout.store).tidy()
    with contextlib.suppress(OSError):
        clear_abandoned(layout.leak_tests)
        layout.leak_tests.rmdir()
