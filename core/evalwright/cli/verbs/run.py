"""``run``: run a suite, once per arm and repeat; or finish or extend what was run before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import Project, open_project, selection_of
from evalwright.coordinate import ExperimentOutcome, RunOutcome, RunRequest, Stop, check_arms, run_experiment
from evalwright.errors import UsageError
from evalwright.report import text_report
from evalwright.rundir import is_experiment
from evalwright.suite.shape import MAX_REPEATS

if TYPE_CHECKING:
    from evalwright.cli.gating import Gates

__all__ = ["answer", "experiment_reply", "outcome_reply", "run_request"]

FIXED = ("run_id", "timeout", "sandbox", "keep_workspace", "case", "tag", "split", "max_cases")


def answer(session: Session) -> Reply:
    """Run or resume, and return the summary of the run or of the experiment."""
    project = open_project(session)
    gates = _gates(project)
    if (session.options.repeats or 0) > MAX_REPEATS:
        raise UsageError(f"--repeats: at most {MAX_REPEATS}", hint="give a smaller number", key="repeats")
    stop = Stop()
    stop.listen()
    if session.options.resume is not None:
        outcome = _resume(project, stop)
    else:
        if session.options.force:
            raise UsageError("--force goes with --resume", hint="leave it out", key="force")
        request = run_request(project)
        if gates:
            gates.check_metrics([entry.id for entry, _ in request.checked.scorers])
        outcome = run_experiment(request, stop=stop, observers=project.observers, warn=session.warn)
    reply = experiment_reply(project, outcome)
    return gates.decide(project.layout, outcome.id, reply) if gates else reply


def _gates(project: Project) -> Gates | None:
    """Return what the flags ask the run to hold, ``None`` for nothing. Raises as :meth:`Gates.read`."""
    options = project.session.options
    if not options.gate and options.baseline is None:
        return None
    from evalwright.cli.gating import Gates

    return Gates.read(project.layout, options)


def run_request(project: Project) -> RunRequest:
    """Return what the flags ask for; without ``--arm`` that is every arm of the suite."""
    options = project.session.options
    checked = project.suite(options.suite)
    return RunRequest(
        checked=checked,
        layout=project.layout,
        settings=project.settings,
        run_id=options.run_id,
        selection=selection_of(options),
        arms=check_arms(checked.suite, options.arm) or list(checked.suite.arms),
        repeats=options.repeats or checked.suite.repeats,
        max_cost=options.max_cost,
        argv=project.session.argv,
        environment=project.session.environment,
    )


def experiment_reply(project: Project, outcome: ExperimentOutcome) -> Reply:
    """Return the answer for all runs that were made together: the only run's, or the figures of each arm."""
    if len(outcome.runs) == 1:
        return outcome_reply(project.session, outcome.runs[0])
    from evalwright.cli.run_experiment import figures_reply

    return figures_reply(project, outcome)


def outcome_reply(session: Session, outcome: RunOutcome, **extra: object) -> Reply:
    """Return the answer for a finished run: exit 6 when that was asked for and something did not pass."""
    report = outcome.report
    for warning in report.warnings:
        session.warn(warning["code"], warning["message"])
    if report.counts["error"]:
        session.warn("W_PARTIAL_RUN", f"{report.counts['error']} of {len(report.cases)} trials ended in error")
    again = f"evalwright report {report.run_id}"
    text = text_report(report, failures_only=len(report.cases) > 20, next_command=again)
    table = outcome.profile.get("table")
    if table and not outcome.existing:
        text += f"\n{Path(table).read_text(encoding='utf-8')}"
    if outcome.existing:
        text = f"This run was finished before; nothing was executed.\n{text}"
    reply = Reply(data={**outcome.data, **extra}, text=text)
    if session.options.fail_on_fail and not report.ok:
        reply.exit_code = 6
    return reply.then(f"{again} --format json", "see every verdict with its reasons")


def _resume(project: Project, stop: Stop) -> ExperimentOutcome:
    from evalwright.coordinate import Extension, resume_experiment, resume_run

    options = project.session.options
    if options.suite is not None:
        raise UsageError("--resume takes the suite from the run", hint=f"evalwright run --resume {options.resume}")
    for name in FIXED:
        if getattr(options, name):
            flag = f"--{name.replace('_', '-')}"
            raise UsageError(f"{flag} is fixed when a run starts", hint=f"resume without {flag}, or start a new run")
    warn, environment = project.session.warn, project.session.environment
    if is_experiment(project.layout, options.resume):
        return resume_experiment(
            options.resume,
            project.layout,
            project.settings,
            extension=Extension(
                arms=options.arm,
                repeats=options.repeats,
                max_cost=options.max_cost,
                force=options.force,
                argv=project.session.argv,
            ),
            stop=stop,
            observers=project.observers,
            warn=warn,
            environment=environment,
        )
    if options.arm or options.repeats:
        raise UsageError("only an experiment can be extended", hint="give the experiment's id, not that of one of its runs")
    run = project.layout.run(options.resume)
    outcome = resume_run(
        run,
        project.layout,
        project.settings,
        stop=stop,
        observers=project.observers,
        warn=warn,
        environment=environment,
        max_cost=options.max_cost,
    )
    return ExperimentOutcome(id=run.path.name, runs=[outcome])
