"""``work preflight``: everything that could keep a run from starting or surprise who starts it, without starting it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evalwright.errors import RunConflict, UsageError
from evalwright.interfaces import VerbAnswer
from evalwright_plugins.workflow.commands.common import here, line_of, opened
from evalwright_plugins.workflow.commands.readiness import in_commit, missing_programs, problem, start_problems
from evalwright_plugins.workflow.drive.runs import Runs
from evalwright_plugins.workflow.model.loading import Plan, invalid, load_plan
from evalwright_plugins.workflow.record import Status
from evalwright_plugins.workflow.workspace import Repository, owner_of

__all__ = ["preflight"]

Warn = Callable[[str, str], None]
Record = dict[str, Any]
CODE = "W_PREFLIGHT"
SHOWN_PATHS = 5


def preflight(options: Any, warn: Warn) -> VerbAnswer:
    """Check a configuration. Raises ``SuiteError`` with every problem that is found."""
    if not options.config:
        raise UsageError("work preflight needs --config FILE", hint="see: docs/how-to/run-a-workflow.md", key="config")
    path = Path(options.config)
    plan = load_plan(path)
    with opened(options) as runs:
        problems = [
            *start_problems(runs.repository, plan),
            *_run_problems(runs, plan),
        ]
        if problems:
            raise invalid(path, problems)
        base = runs.repository.resolve(plan.config.base)
        for notice in _notices(runs, plan, base):
            warn(CODE, notice)
    config, workflow = plan.config, plan.workflow
    steps = [{"step": step.id, "worker": step.table if step.table in config.workers else None} for step in workflow.steps]
    data: Record = {"config": str(path), "work": config.work, "workflow": workflow.name, "digest": plan.digest}
    data |= {"base": base, "steps": steps, "sandbox": config.sandbox["use"]}
    shown = ", ".join(f"{step['step']} ({step['worker'] or 'by people'})" for step in steps)
    text = f"{config.work} can start: {workflow.name} from {base[:12]} in {config.sandbox['use']}\n  {line_of(shown)}\n"
    start = {f"evalwright work start --config {shlex.quote(options.config)}": "start it"}
    return VerbAnswer(data=data, text=text, next_steps=here(start, options))


def _run_problems(runs: Runs, plan: Plan) -> Iterator[Record]:
    """Name a branch in the way of all runs, and a run of the same work that must be ended or resumed first."""
    try:
        runs.repository.check_branches()
    except RunConflict as error:
        yield problem("work", error.message, error.hint)
    for run, state in runs.of_work(plan.config.work):
        if state.status is Status.RUNNING:
            driven = owner_of(run.files.driver) is not None
            what = "is driven now" if driven else "was interrupted"
            hint = f"wait for it: evalwright work status {run.id} --watch" if driven else f"evalwright work resume {run.id}"
            yield problem("work", f"run {run.id} of {plan.config.work} {what}", hint)


def _notices(runs: Runs, plan: Plan, base: str) -> Iterator[str]:
    """Say what is allowed, and yet may not be what is meant."""
    repository, config = runs.repository, plan.config
    dirty = _uncommitted(repository)
    if dirty:
        more = f" and {len(dirty) - SHOWN_PATHS} more" if len(dirty) > SHOWN_PATHS else ""
        shown = ", ".join(map(line_of, dirty[:SHOWN_PATHS]))
        yield f"the run begins from {base[:12]}, without what is not committed in {repository.checkout}: {shown}{more}"
    for step in plan.workflow.steps:
        if step.table not in config.workers:
            yield f"step {step.id} has no worker ({step.table}): the run will wait there for people"
    yield from _missing(repository, plan, base)
    for run, state in runs.of_work(config.work):
        if state.status is Status.WAITING_HUMAN:
            yield f"run {run.id} of {config.work} waits, and would be superseded"
    for run in runs if not config.parallel else ():
        owner = owner_of(run.files.driver)
        if owner:
            yield f"process {owner['pid']} drives {run.id}, beside which this run cannot start (parallel is false)"


def _missing(repository: Repository, plan: Plan, base: str) -> Iterator[str]:
    """Say which programs and files are not there before the first step."""
    for key, what in missing_programs(repository, plan, base, certain=False):
        yield f"{key}: {what}"
    for name, file in plan.config.artifacts.items():
        if not in_commit(repository, base, file):
            yield f"artifacts.{name}: {file} is not in {base[:12]}: until a step makes it there is nothing to accept"
    for file in plan.config.toolchain:
        if not in_commit(repository, base, file):
            yield f"toolchain: {file} is not in {base[:12]}"


def _uncommitted(repository: Repository) -> list[str]:
    listed = repository.git.run("status", "--porcelain", "-z", "--no-renames").decode("utf-8", "replace")
    return [entry[3:] for entry in listed.split("\0") if entry]
