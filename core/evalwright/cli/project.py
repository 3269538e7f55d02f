"""What most verbs start from: settings, layout, suites and observers of this call."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from evalwright.cli.dispatch import Session
from evalwright.errors import LedgerDamaged, RunCorrupt, RunNotFound, UsageError
from evalwright.rundir import Layout, RunDirectory, find_run, is_experiment
from evalwright.settings import MAX_JOBS, Settings, load_settings

if TYPE_CHECKING:
    from evalwright.coordinate import Selection
    from evalwright.hooks import Observers
    from evalwright.rundir.experiment import ExperimentRecord
    from evalwright.suite import CheckedSuite

__all__ = ["Project", "open_project", "selection_of", "table_of"]

EXECUTION_FLAGS = ("jobs", "slots", "timeout", "sandbox", "queue", "reservation_ttl", "acknowledge_unsandboxed_runner")
FLAGS = (*EXECUTION_FLAGS, "keep_workspace", "paranoid", "profile")


class Project:
    """The settings and directories of one call."""

    def __init__(self, session: Session, settings: Settings, layout: Layout) -> None:
        self.session = session
        self.settings = settings
        self.layout = layout

    def suite(self, name: str | None) -> CheckedSuite:
        """Find and check a suite; its warnings become the answer's."""
        from evalwright.suite import find_suite, load_suite

        directory, notice = find_suite(name, self.layout.suites)
        if notice:
            self.session.warn("W_SUITE_SHADOWED", notice)
        checked = load_suite(directory)
        if checked.suite.acknowledged or self.settings.acknowledge_unsandboxed_runner:
            self.session.unspoken.add("W_UNSANDBOXED_RUNNER")
        for warning in checked.warnings:
            self.session.warn(warning["code"], warning["message"])
        return checked

    def run(self, run_id: str | None, run_dir: str | None = None) -> RunDirectory:
        """Find a run that an id or a directory names; what a dead owner of it left alive is ended first.

        Raises ``RunNotFound`` or ``UsageError``.
        """
        run = find_run(self.layout, self._only_run(run_id), run_dir)
        if run.journal.is_file():
            from evalwright.coordinate.recover import recover

            recover(run, self.session.warn)
        return run

    def _only_run(self, name: str | None) -> str | None:
        """Return the one run of an experiment of that name, else the name. Raises ``RunNotFound`` when it has several."""
        if name is None or not is_experiment(self.layout, name) or self.layout.run(name).path.exists():
            return name
        from evalwright.rundir.experiment import ExperimentRecord

        runs = ExperimentRecord(self.layout.experiment(name)).runs()
        if len(runs) > 1:
            raise RunNotFound(f"{name} is an experiment with {len(runs)} runs", hint=f"name one of them: {', '.join(runs)}")
        return runs[0] if runs else name

    def experiment(self, name: str | None, run_dir: str | None = None) -> ExperimentRecord | None:
        """Return the experiment of several runs that has this id, ``None`` when a run is meant.

        An id is an experiment's first, since one that grew from a single run has the id of that run. What dead owners left
        alive is ended first. Raises ``LedgerDamaged`` and ``RunCorrupt``.
        """
        if name is None or run_dir is not None or not is_experiment(self.layout, name):
            return None
        from evalwright.rundir.experiment import ExperimentRecord

        record = ExperimentRecord(self.layout.experiment(name))
        try:
            planned = record.runs()
            if not planned:
                place = record.directory / "ledger.jsonl"
                raise RunCorrupt(f"{place} plans no run", hint="restore it; or run the suite again under that id")
        except (LedgerDamaged, RunCorrupt):
            if self.layout.run(name).path.exists():
                return None
            raise
        if len(planned) == 1:
            return None
        for run_id in planned:
            if self.layout.run(run_id).journal.is_file():
                self.run(run_id)
        return record

    def observers(self, complain: Callable[[str], None]) -> Observers:
        """Return every installed observer; one that cannot be loaded is complained about and left out."""
        from evalwright.errors import PluginError
        from evalwright.hooks import Observers
        from evalwright.registry import Catalog
        from evalwright.registry.loading import load_object

        found: list[tuple[str, object]] = []
        for listing in Catalog().listings("hook"):
            try:
                loaded = load_object(listing)
                observer = loaded() if isinstance(loaded, type) else loaded
                found.append((f"{listing.distribution}:{listing.name}", observer))
            except PluginError as error:
                complain(error.message)
        return Observers(found, complain)


def open_project(session: Session) -> Project:
    """Read the settings of this call. Raises ``UsageError`` naming the source of a bad one."""
    settings = load_settings(session.environment)
    flags = {name: getattr(session.options, name, None) for name in FLAGS}
    settings = settings.overridden(**flags)
    for key, value in (("jobs", settings.jobs), ("slots", settings.slots or 0)):
        if value > MAX_JOBS:
            raise UsageError(f"--{key} {value} is more than {MAX_JOBS}", hint=f"use at most {MAX_JOBS}", key=key)
    return Project(session, settings, Layout(settings.evals, settings.runs_directory))


def selection_of(options: Any) -> Selection:
    """Return the selection that ``--case``, ``--tag``, ``--split`` and ``--max-cases`` make."""
    from evalwright.coordinate import Selection

    return Selection(cases=options.case, tags=options.tag, splits=options.split, max_cases=options.max_cases)


def table_of(words: Sequence[str]) -> dict[str, Any]:
    """Return the table of a plugin that ``--set KEY=VALUE`` gives: each value is JSON, or else the text itself."""
    table: dict[str, Any] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not (key and equals):
            raise UsageError(f"--set {word!r} has no value", hint="write --set KEY=VALUE", key=key)
        try:
            table[key] = json.loads(text)
        except ValueError:
            table[key] = text
    return table
