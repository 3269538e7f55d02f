"""``rescore``: judge stored trials again, by the suite as it is now, without running the agent."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import Project, open_project
from evalwright.cli.verbs.run import experiment_reply
from evalwright.coordinate import RunRequest, rescore
from evalwright.rundir import RunDirectory, is_experiment, read_object
from evalwright.rundir.experiment import ExperimentRecord
from evalwright.suite import load_suite
from evalwright.suite.read import suite_file

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Return the new runs, linked to those whose trials they judge."""
    options = session.options
    project = open_project(session)
    sources = _sources(project, options.run)
    layout = project.layout
    checked = project.suite(options.suite) if options.suite else load_suite(_suite_of(sources[0]), fixtures=False)
    request = RunRequest(
        checked=checked,
        layout=layout,
        settings=project.settings,
        run_id=options.run_id or f"{options.run}-rescore-{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}",
        argv=session.argv,
        environment=session.environment,
    )
    outcome = rescore(request, sources, scorers=options.scorer, judges=options.judge, warn=session.warn)
    reply = experiment_reply(project, outcome)
    reply.data = {**reply.data, "rescored_from": options.run}
    return reply


def _sources(project: Project, name: str) -> list[RunDirectory]:
    """Return the finished runs of an experiment, or the run of that id."""
    if is_experiment(project.layout, name):
        runs = [project.layout.run(run_id) for run_id in ExperimentRecord(project.layout.experiment(name)).runs()]
        return [run for run in runs if run.manifest.is_file()] or [project.run(name)]
    return [project.run(name)]


def _suite_of(source: RunDirectory) -> Path:
    """Return the directory that the run took its suite from, or the run's own snapshot where that is gone."""
    recorded = read_object(source.run_json).get("suite_dir")
    if isinstance(recorded, str) and suite_file(Path(recorded)).is_file():
        return Path(recorded)
    return source.snapshot
