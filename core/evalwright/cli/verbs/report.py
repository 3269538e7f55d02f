"""``report``: the verdicts of a run, recomputed from its artifacts."""

from __future__ import annotations

import shlex
import sys

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply, paged
from evalwright.cli.project import open_project
from evalwright.errors import UsageError
from evalwright.report import Projection, StoredRun, durations_of, junit_report, markdown_report, report_document, text_report
from evalwright.report import project as project_run
from evalwright.rundir import RunDirectory

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return ``{run, failures[], cases[], run_id, report_hash}``, or the report in the asked form."""
    options = session.options
    run = open_project(session).run(options.run, options.run_dir)
    report = project_run(run)
    for warning in report.warnings:
        session.warn(warning["code"], warning["message"])
    reply = _envelope(session, report)
    paging = options.limit is not None or options.cursor is not None
    form = options.format or ("text" if sys.stdout.isatty() else "json")
    if form != "json" and not options.json:
        if paging:
            raise UsageError(f"a {form} report has no pages", hint="use --format json with --limit and --cursor")
        reply.body = _rendered(form, report, run, failures_only=options.failures)
    again = f"evalwright report --run-dir {shlex.quote(str(run.path))}"
    return reply.then(f"{again} --format json", "make this report again")


def _envelope(session: Session, report: Projection) -> Reply:
    options = session.options
    cases = [] if options.failures else list(report.normalized["cases"])
    page, pagination = paged(cases, "id", options.limit, options.cursor)
    data = report_document(report) | {"cases": page, "total_count": len(report.cases)}
    return Reply(data=data, pagination=pagination if options.limit else None)


def _rendered(form: str, report: Projection, run: RunDirectory, *, failures_only: bool) -> str:
    if form == "junit":
        return junit_report(report, durations=durations_of(StoredRun(run)), failures_only=failures_only)
    if form == "markdown":
        return markdown_report(report, failures_only=failures_only)
    return text_report(report, failures_only=failures_only, next_command=_closer(report, run))


def _closer(report: Projection, run: RunDirectory) -> str | None:
    """Return the command that explains the first failure of exactly this directory."""
    if not report.failures or not report.sealed:
        return None
    return f"evalwright explain {report.run_id} {report.failures[0].id} --run-dir {shlex.quote(str(run.path))}"
