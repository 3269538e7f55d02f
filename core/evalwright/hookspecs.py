"""The hooks that observers may implement; each is called in the coordinator from an event of the ledger.

An observer is a module or object under the entry-point group ``evalwright.hooks`` whose functions carry ``@hookimpl``.
It may take any subset of a hook's arguments. An exception in an observer becomes a warning that names it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pluggy import HookimplMarker, HookspecMarker

__all__ = ["HookSpecs", "hookimpl", "hookspec"]

hookspec = HookspecMarker("evalwright")
hookimpl = HookimplMarker("evalwright")


class HookSpecs:
    """One method per hook. ``event`` is the ledger event as written: ``{v, seq, ts, run, type, actor, data, prev, digest}``."""

    @hookspec
    def experiment_started(self, experiment: str, runs: Sequence[Mapping[str, Any]]) -> None:
        """Runs are about to be carried out together; ``runs`` are ``{run, arm, repeat, trials}``, finished ones left out."""

    @hookspec
    def experiment_finished(self, experiment: str) -> None:
        """All of them are finished."""

    @hookspec
    def run_started(self, event: Mapping[str, Any], total: int) -> None:
        """A run begins; ``total`` is the number of its trials."""

    @hookspec
    def run_resumed(self, event: Mapping[str, Any], total: int, done: int) -> None:
        """A run goes on; ``done`` trials were finished before."""

    @hookspec
    def trial_started(self, event: Mapping[str, Any], case: str, attempt: int) -> None:
        """A trial was handed to the queue."""

    @hookspec
    def trial_finished(self, event: Mapping[str, Any], case: str, status: str) -> None:
        """A trial's result is durable."""

    @hookspec
    def run_interrupted(self, event: Mapping[str, Any]) -> None:
        """The run was stopped and can be resumed."""

    @hookspec
    def run_finished(self, event: Mapping[str, Any], status_counts: Mapping[str, int]) -> None:
        """The manifest is written."""
