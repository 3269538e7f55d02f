"""``report`` for an experiment, and for part of a run: its forms, its groups of failures, its pages."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply, paged
from evalwright.cli.experiments import exit_code_of, next_commands, run_states, screen, warn_of
from evalwright.errors import UsageError
from evalwright.report import ExperimentView
from evalwright.report.cases import CaseFacts, facts_of, select, without_held_out
from evalwright.report.figures.comparison import compare_arms
from evalwright.report.figures.difference import Difference
from evalwright.report.figures.failures import Failure, failures_of
from evalwright.report.figures.grid import case_rows
from evalwright.report.figures.groups import Group, group_failures
from evalwright.report.figures.sentences import difference_of
from evalwright.report.forms.annotations import github_annotations
from evalwright.report.forms.experiment_data import experiment_data
from evalwright.report.forms.experiment_markdown import experiment_markdown, groups_markdown
from evalwright.report.forms.experiment_text import experiment_text, groups_text, headline
from evalwright.report.forms.findings import parts_of
from evalwright.report.forms.junit import junit_experiment
from evalwright.report.forms.pictures import pictures
from evalwright.report.forms.sarif import sarif_report
from evalwright.rundir import disk_errors, write_text

__all__ = ["experiment_report", "write_files"]


def experiment_report(session: Session, view: ExperimentView, form: str) -> Reply:
    """Return the report of a view in a form; ``json`` is the envelope's data, all others are raw documents."""
    report = _Report(session, view)
    warn_of(session, report.view)
    data, pagination = report.data()
    reply = Reply(data=data, pagination=pagination, exit_code=exit_code_of(view))
    if session.options.out is not None:
        data["files"] = write_files(session.options.out, report.files())
    if form != "json":
        reply.body = "".join(f"wrote {name}\n" for name in data.get("files", ())) or report.body(form)
    for command in report.closer:
        reply.then(command, "look closer")
    return reply


def write_files(directory: str, files: Mapping[str, str]) -> list[str]:
    """Write files into a directory, made if need be, and return their paths. Raises ``UsageError`` and ``DiskFull``."""
    place = Path(directory)
    try:
        with disk_errors(place):
            place.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            write_text(place / name, text)
    except OSError as error:
        raise UsageError(
            f"cannot write into {directory}: {error.strerror or error}",
            hint="name a directory that you can write to",
            key="out",
        ) from error
    return [str(place / name) for name in files]


@dataclass(frozen=True)
class _Report:
    """A report that was asked for. ``shown`` is the view whose failures may be shown: without cases that are held out."""

    session: Session
    whole: ExperimentView

    @cached_property
    def facts(self) -> Mapping[str, CaseFacts]:
        return facts_of(self.whole)

    @cached_property
    def view(self) -> ExperimentView:
        options = self.session.options
        if not (options.case or options.tag or options.split):
            return self.whole
        return select(self.whole, self.facts, cases=options.case, tags=options.tag, splits=options.split)

    @cached_property
    def shown(self) -> ExperimentView:
        return without_held_out(self.view, self.facts, self.session.options.split)

    @cached_property
    def failures(self) -> list[Failure]:
        return failures_of(self.shown)

    @cached_property
    def comparisons(self) -> list[Difference]:
        """Return how the arms differ if somebody has looked at exactly these trials before: a report is no look of its own."""
        view = self.whole
        metric = view.primary or "pass_rate"
        if self.view is not view or len(view.arms) < 2 or (metric, len(view.trials)) not in view.looked:
            return []
        return [difference_of(comparison) for comparison in compare_arms(view, look=view.look)]

    @property
    def listed(self) -> list[Failure] | None:
        """Return the failures if they were asked for."""
        return self.failures if self.session.options.failures else None

    @property
    def held_out(self) -> int:
        """Return the number of failures that are not shown."""
        return sum(trial.status != "pass" for trial in self.view.trials) - len(self.failures)

    @cached_property
    def groups(self) -> list[Group]:
        return group_failures(self.failures, self.session.options.group_by, self.facts)

    @property
    def closer(self) -> Sequence[str]:
        options = self.session.options
        told = ["--failures"] if options.failures or options.group_by else []
        told += [f"--group-by {options.group_by}"] if options.group_by else []
        if options.group_by and self.groups:
            first: str = self.groups[0].examples[0]["trial"]
            run, _, case = first.rpartition("/")
            place = f" --run-dir {shlex.quote(options.run_dir)}" if options.run_dir else ""
            return [f"evalwright explain {shlex.quote(run)} {shlex.quote(case)}{place}"]
        return next_commands(self.whole, told=told, run_dir=options.run_dir)

    def data(self) -> tuple[dict[str, Any], dict[str, Any] | None]:
        """Return the envelope's data with one list in pages: groups, failures or cases, whichever was asked for."""
        options = self.session.options
        data = experiment_data(self.view, states=run_states(self.view), comparisons=self.comparisons)
        if options.group_by:
            entries, name, key = [group.as_json() for group in self.groups], "groups", "key"
        elif options.failures:
            entries, name, key = [failure.as_json() for failure in self.failures], "failures", "trial"
        else:
            entries, name, key = [row.as_json() for row in case_rows(self.view)], "cases", "id"
        page, pagination = paged(entries, key, options.limit, options.cursor)
        data |= {name: page, "total_count": len(entries)}
        if options.group_by or options.failures:
            data |= {"held_out": self.held_out}
        if options.group_by:
            data |= {"group_by": options.group_by}
        return data, pagination if options.limit else None

    def body(self, form: str) -> str:
        """Return the raw document of a form."""
        options = self.session.options
        if form == "junit":
            return junit_experiment(self.view, failures=self.listed)
        if form == "sarif":
            return sarif_report(parts_of(self.shown), held_out=self.held_out)
        if form == "github":
            return github_annotations(parts_of(self.shown), headline(self.view))
        if form == "markdown":
            return self.markdown(())
        shown = screen()
        if options.group_by:
            return groups_text(self.groups, options.group_by, screen=shown, held_out=self.held_out, closer=self.closer)
        held_out = self.held_out if options.failures else 0
        return experiment_text(
            self.view, screen=shown, comparisons=self.comparisons, failures=self.listed, held_out=held_out, closer=self.closer
        )

    def markdown(self, names: Sequence[str]) -> str:
        """Return the report as markdown; ``names`` are pictures that lie beside it."""
        options = self.session.options
        if options.group_by:
            return groups_markdown(self.groups, options.group_by, held_out=self.held_out)
        held_out = self.held_out if options.failures else 0
        return experiment_markdown(
            self.view, pictures=names, comparisons=self.comparisons, failures=self.listed, held_out=held_out
        )

    def files(self) -> dict[str, str]:
        """Return what ``--out`` writes, the text first."""
        drawn = {} if self.session.options.group_by else pictures(self.view, comparisons=self.comparisons)
        return {"report.md": self.markdown(list(drawn)), **drawn}
