"""``replay --failed``: what did not pass, once more."""

from __future__ import annotations

from pathlib import Path

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project
from evalwright.cli.verbs.run import outcome_reply
from evalwright.coordinate import RunRequest, Selection, Stop, run_suite
from evalwright.errors import UsageError
from evalwright.replay import check_target, failed_cases, replay_id, split_absent
from evalwright.rundir import RunDirectory, read_object
from evalwright.suite.read import suite_file

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Run the failed cases of the *present* suite into a new run that is linked to its source."""
    options = session.options
    if not options.failed:
        raise UsageError("replay needs --failed", hint="evalwright replay --failed RUN")
    project = open_project(session)
    source = project.run(options.run, options.run_dir)
    source_id, suite_name, failed = failed_cases(source)
    if not failed:
        session.warn("W_NOTHING_TO_REPLAY", "every case of the run passed")
        return _nothing(source_id)
    checked = project.suite(options.suite or _suite_of(source, suite_name, project.layout.suites))
    chosen, absent = split_absent(failed, [case.id for case in checked.suite.cases])
    for case_id in absent:
        session.warn("W_REPLAY_CASE_ABSENT", f"the suite has no case {case_id} any more")
    if not chosen:
        session.warn("W_NOTHING_TO_REPLAY", "none of the failed cases is in the suite any more")
        return _nothing(source_id)
    target = project.layout.run(replay_id(project.layout, source_id, options.run_id))
    check_target(target, source, force=options.force)
    stop = Stop()
    stop.listen()
    request = RunRequest(
        checked=checked,
        layout=project.layout,
        settings=project.settings,
        run_id=target.path.name,
        selection=Selection(cases=chosen),
        replayed_from=source_id,
        replace=options.force,
        argv=session.argv,
        environment=session.environment,
    )
    outcome = run_suite(request, stop=stop, observers=project.observers, warn=session.warn)
    return outcome_reply(session, outcome, replayed_from=source_id, cases_replayed=len(chosen))


def _suite_of(source: RunDirectory, name: str, suites: Path) -> str:
    """Return the suite of that name, or else the directory from which the run took it."""
    recorded = read_object(source.run_json).get("suite_dir") if source.run_json.is_file() else None
    if suite_file(suites / name).is_file() or not isinstance(recorded, str) or not suite_file(Path(recorded)).is_file():
        return name
    return recorded if "/" in recorded else f"./{recorded}"


def _nothing(source_id: str) -> Reply:
    return Reply(data={"replayed_from": source_id, "cases_replayed": 0}, text=f"{source_id}: nothing to replay\n")
