"""``report``: the verdicts of a run or of an experiment, recomputed from artifacts."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply, paged
from evalwright.cli.project import open_project
from evalwright.errors import UsageError
from evalwright.report import project as project_run
from evalwright.report import report_document
from evalwright.rundir import RunDirectory

if TYPE_CHECKING:
    from evalwright.report import Projection

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return ``{run, failures[], cases[], run_id, report_hash}``, the same of an experiment, or the report in another form."""
    options = session.options
    project = open_project(session)
    form = _form(session)
    record = project.experiment(options.run, options.run_dir)
    if record is None:
        run = project.run(options.run, options.run_dir)
        if not (_partial(options) or form in ("sarif", "github")):
            return _run_report(session, run, form)
    from evalwright.cli.report_experiment import experiment_report
    from evalwright.report import read_subject

    return experiment_report(session, read_subject(project.layout, options.run, options.run_dir), form)


def _form(session: Session) -> str:
    """Return the form that is wanted. Raises ``UsageError`` for flags that it does not have."""
    options = session.options
    form: str = options.format or ("text" if sys.stdout.isatty() else "json")
    if options.out is not None and form != "markdown":
        raise UsageError("--out goes with --format markdown", hint="add --format markdown", key="out")
    if options.group_by and form not in ("text", "markdown", "json"):
        raise UsageError(f"a {form} report has no groups", hint="use --format text, markdown or json", key="group_by")
    if options.json:
        return "json"
    if form != "json" and (options.limit is not None or options.cursor is not None):
        raise UsageError(f"a {form} report has no pages", hint="use --format json with --limit and --cursor")
    return form


def _partial(options: Any) -> bool:
    """Tell whether less or something else is asked for than the whole run; that is reported as an experiment of one run."""
    return bool(options.case or options.tag or options.split or options.group_by)


def _run_report(session: Session, run: RunDirectory, form: str) -> Reply:
    report = project_run(run)
    for warning in report.warnings:
        session.warn(warning["code"], warning["message"])
    reply = _envelope(session, report)
    out = session.options.out
    if out is not None:
        from evalwright.cli.report_experiment import write_files
        from evalwright.report import markdown_report

        text = markdown_report(report, failures_only=session.options.failures)
        reply.data["files"] = write_files(out, {"report.md": text})
    if form != "json":
        told = "".join(f"wrote {name}\n" for name in reply.data.get("files", ()))
        reply.body = told or _rendered(form, report, run, failures_only=session.options.failures)
    again = f"evalwright report --run-dir {shlex.quote(str(run.path))}"
    return reply.then(f"{again} --format json", "make this report again")


def _envelope(session: Session, report: Projection) -> Reply:
    options = session.options
    cases = [] if options.failures else list(report.normalized["cases"])
    page, pagination = paged(cases, "id", options.limit, options.cursor)
    data = report_document(report) | {"cases": page, "total_count": len(report.cases)}
    return Reply(data=data, pagination=pagination if options.limit else None)


def _rendered(form: str, report: Projection, run: RunDirectory, *, failures_only: bool) -> str:
    from evalwright.report import StoredRun, durations_of, junit_report, markdown_report, text_report

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
