"""``run``: run a suite, or finish an interrupted run."""

from __future__ import annotations

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import Project, open_project, selection_of
from evalwright.coordinate import RunOutcome, RunRequest, Stop, resume_run, run_suite
from evalwright.errors import UsageError
from evalwright.report import text_report

__all__ = ["answer", "outcome_reply", "run_request"]

FIXED = ("run_id", "timeout", "sandbox", "keep_workspace", "case", "tag", "split", "max_cases")


def answer(session: Session) -> Reply:
    """Run or resume, and return the run's summary."""
    project = open_project(session)
    stop = Stop()
    stop.listen()
    if session.options.resume is not None:
        return outcome_reply(session, _resume(project, stop))
    outcome = run_suite(run_request(project), stop=stop, observers=project.observers, warn=session.warn)
    return outcome_reply(session, outcome)


def run_request(project: Project) -> RunRequest:
    """Return what the flags ask for."""
    options = project.session.options
    return RunRequest(
        checked=project.suite(options.suite),
        layout=project.layout,
        settings=project.settings,
        run_id=options.run_id,
        selection=selection_of(options),
        argv=project.session.argv,
        environment=project.session.environment,
    )


def outcome_reply(session: Session, outcome: RunOutcome, **extra: object) -> Reply:
    """Return the answer for a finished run: exit 6 when that was asked for and something did not pass."""
    report = outcome.report
    for warning in report.warnings:
        session.warn(warning["code"], warning["message"])
    if report.counts["error"]:
        session.warn("W_PARTIAL_RUN", f"{report.counts['error']} of {len(report.cases)} trials ended in error")
    again = f"evalwright report {report.run_id}"
    text = text_report(report, failures_only=len(report.cases) > 20, next_command=again)
    if outcome.existing:
        text = f"This run was finished before; nothing was executed.\n{text}"
    reply = Reply(data={**outcome.data, **extra}, text=text)
    if session.options.fail_on_fail and not report.ok:
        reply.exit_code = 6
    return reply.then(f"{again} --format json", "see every verdict with its reasons")


def _resume(project: Project, stop: Stop) -> RunOutcome:
    options = project.session.options
    if options.suite is not None:
        raise UsageError("--resume takes the suite from the run", hint=f"evalwright run --resume {options.resume}")
    for name in FIXED:
        if getattr(options, name):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} is fixed when a run starts", hint=f"resume without {flag}, or start a new run")
    run = project.layout.run(options.resume)
    return resume_run(
        run,
        project.layout,
        project.settings,
        stop=stop,
        observers=project.observers,
        warn=project.session.warn,
        environment=project.session.environment,
    )
