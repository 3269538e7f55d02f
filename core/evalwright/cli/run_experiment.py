"""``run`` of several arms or repeats: the figures of each arm, and every arm against the first."""

from __future__ import annotations

from evalwright.cli.envelope import Reply
from evalwright.cli.experiments import next_commands, screen
from evalwright.cli.project import Project
from evalwright.coordinate import ExperimentOutcome, take_look
from evalwright.report import ExperimentView, read_experiment
from evalwright.report.figures.arms import arm_figures
from evalwright.report.figures.comparison import ArmComparison, compare_arms
from evalwright.report.figures.sentences import difference_of
from evalwright.report.forms.experiment_text import summary_text

__all__ = ["figures_reply"]


def figures_reply(project: Project, outcome: ExperimentOutcome) -> Reply:
    """Return the answer for runs that were made together."""
    session = project.session
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
    tables = [table for run in outcome.runs if not run.existing and (table := run.profile.get("table"))]
    if tables:
        text += "\n".join(["", "Where the time of each run's trials went:", *(f"  {table}" for table in tables), ""])
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
