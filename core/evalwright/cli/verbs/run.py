"""``run``: run a suite, once per arm and repeat; or finish or extend what was run before."""

from __future__ import annotations

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.experiments import next_commands, screen
from evalwright.cli.gating import Gates
from evalwright.cli.project import Project, open_project, selection_of
from evalwright.coordinate import (
    ExperimentOutcome,
    Extension,
    RunOutcome,
    RunRequest,
    Stop,
    check_arms,
    resume_experiment,
    resume_run,
    run_experiment,
    take_look,
)
from evalwright.errors import UsageError
from evalwright.report import ExperimentView, read_experiment, read_subject, text_report
from evalwright.report.figures.arms import arm_figures
from evalwright.report.figures.comparison import ArmComparison, compare_arms
from evalwright.report.figures.gates import check_metrics
from evalwright.report.figures.sentences import difference_of
from evalwright.report.forms.experiment_text import summary_text
from evalwright.rundir import is_experiment
from evalwright.suite.shape import MAX_REPEATS

__all__ = ["answer", "experiment_reply", "outcome_reply", "run_request"]

FIXED = ("run_id", "timeout", "sandbox", "keep_workspace", "case", "tag", "split", "max_cases")


def answer(session: Session) -> Reply:
    """Run or resume, and return the summary of the run or of the experiment."""
    project = open_project(session)
    gates = Gates.read(project.layout, session.options)
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
        check_metrics(gates.gates, [entry.id for entry, _ in request.checked.scorers])
        outcome = run_experiment(request, stop=stop, observers=project.observers, warn=session.warn)
    reply = experiment_reply(project, outcome)
    return gates.decide(read_subject(project.layout, outcome.id), reply) if gates.gates else reply


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
    session = project.session
    if len(outcome.runs) == 1:
        return outcome_reply(session, outcome.runs[0])
    for run in outcome.runs:
        for warning in [one for one in run.report.warnings if one not in session.warnings]:
            session.warn(warning["code"], f"{run.report.run_id}: {warning['message']}")
    errors = outcome.data["totals"]["harness_errors"]
    if errors:
        session.warn("W_PARTIAL_RUN", f"{errors} of {outcome.data['totals']['attempted']} trials ended in a harness error")
    view = read_experiment(project.layout, outcome.id)
    comparisons = _compared(project, view)
    differences = [difference_of(comparison) for comparison in comparisons]
    text = summary_text(view, screen=screen(), comparisons=differences, closer=next_commands(view))
    if outcome.existing:
        text = f"These runs were finished before; nothing was executed.\n{text}"
    arms = [arm.as_json(view.primary) for arm in arm_figures(view)]
    told = {"arms": arms, "comparisons": [comparison.as_json() for comparison in comparisons]}
    reply = Reply(data={**outcome.data, **told}, text=text)
    if session.options.fail_on_fail and not all(run.report.ok for run in outcome.runs):
        reply.exit_code = 6
    return reply.then(f"evalwright report {outcome.id} --format json", "see the arms and what they passed")


def _compared(project: Project, view: ExperimentView) -> list[ArmComparison]:
    """Return every arm against the first; that is a look at the data, and on record as one."""
    if len(view.arms) < 2:
        return []
    look = take_look(project.layout, view, view.primary or "pass_rate")
    return compare_arms(view, look=look)


def outcome_reply(session: Session, outcome: RunOutcome, **extra: object) -> Reply:
    """Return the answer for a finished run: exit 6 when that was asked for and something did not pass."""
    report = outcome.report
    for warning in report.warnings:
        session.warn(warning["code"], warning["message"])
    if report.counts["error"]:
        session.warn("W_PARTIAL_RUN", f"{report.counts['error']} of {len(report.cases)} trials ended in error")
    again = f"evalwright report {report.run_id}"
    text = text_report(report, failures_only=len(report.cases) > 20, next_command=again)
    profile = outcome.run.profile.with_suffix(".txt")
    if session.options.profile and profile.is_file():
        text += f"\n{profile.read_text(encoding='utf-8')}"
    if outcome.existing:
        text = f"This run was finished before; nothing was executed.\n{text}"
    reply = Reply(data={**outcome.data, **extra}, text=text)
    if session.options.fail_on_fail and not report.ok:
        reply.exit_code = 6
    return reply.then(f"{again} --format json", "see every verdict with its reasons")


def _resume(project: Project, stop: Stop) -> ExperimentOutcome:
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
