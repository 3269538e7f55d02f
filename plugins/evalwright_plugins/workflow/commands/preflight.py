"""``work preflight``: everything that could keep a run from starting or surprise who starts it, without starting it."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.canonical import is_array
from evalwright.errors import EvalwrightError, RunConflict, UsageError
from evalwright.interfaces import Plugin, VerbAnswer
from evalwright.registry import PluginHost, Registry, configuration_problems
from evalwright_plugins.workflow.commands.common import here, line_of, opened
from evalwright_plugins.workflow.drive.runs import Runs
from evalwright_plugins.workflow.model.config import Gate
from evalwright_plugins.workflow.model.loading import Plan, invalid, load_plan
from evalwright_plugins.workflow.record import Status
from evalwright_plugins.workflow.sites.repository import BASE
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
            *_base_problems(runs.repository, plan),
            *_plugin_problems(runs.repository, plan),
            *_gate_problems(plan),
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


def _base_problems(repository: Repository, plan: Plan) -> Iterator[Record]:
    """Name a base that leads nowhere, and documents that it does not have."""
    config = plan.config
    try:
        base = repository.resolve(config.base)
    except EvalwrightError as error:
        yield _problem("base", error.message, error.hint)
        return
    for name, file in config.artifacts.items():
        if not _in_commit(repository, base, file):
            yield _problem(f"artifacts.{name}", f"{file} is not in {config.base}", "commit it, or correct the path")


def _plugin_problems(repository: Repository, plan: Plan) -> Iterator[Record]:
    """Name what is wrong with the tables of workers and of the sandbox, by making what they describe."""
    registry = Registry(repository.checkout)
    host = PluginHost(registry)
    try:
        yield from _table_problems(registry, host, "sandbox", "sandbox", plan.config.sandbox)
        for name, table in plan.config.workers.items():
            yield from _table_problems(registry, host, "runner", f"workers.{name}", {"use": "command", **table})
    finally:
        host.close()


def _table_problems(registry: Registry, host: PluginHost, kind: str, place: str, table: Mapping[str, Any]) -> Iterator[Record]:
    if not isinstance(table.get("use"), str):
        yield _problem(f"{place}.use", f"{place} does not say which plugin to use", f"add use: and a {kind}'s name")
        return
    config = {key: value for key, value in table.items() if key != "use"}
    try:
        wrong = configuration_problems(registry.load(kind, table["use"]).cls, config, place)
        if wrong:
            yield from wrong
            return
        plugin: Plugin[Any] = registry.create(kind, table["use"], config, host)
        for found in plugin.check("worker"):
            if found.fatal:
                yield _problem(place, found.message, found.hint)
    except EvalwrightError as error:
        yield _problem(place, error.message, error.hint)


def _gate_problems(plan: Plan) -> Iterator[Record]:
    """Name a program of the gate that cannot be started."""
    gate = plan.config.on_gate
    if isinstance(gate, Gate) and shutil.which(gate.script[0], path=BASE["PATH"]) is None:
        hint = f"name a program in {BASE['PATH']}, or its path from here"
        yield _problem("on_gate.script", f"the gate's program {gate.script[0]} is not there", hint)


def _missing_programs(repository: Repository, plan: Plan, base: str) -> Iterator[str]:
    """Say which workers' programs are neither installed nor in the commit that the run begins from."""
    for name, table in plan.config.workers.items():
        words: Any = table.get("argv")
        if table.get("use", "command") != "command" or not is_array(words) or not words:
            continue
        program = str(words[0])
        own = "/" in program and not program.startswith("/")
        if not (_in_commit(repository, base, program) if own else shutil.which(program)):
            yield f"workers.{name}: {program} is not {f'in {base[:12]}' if own else 'installed here'}"


def _run_problems(runs: Runs, plan: Plan) -> Iterator[Record]:
    """Name a branch in the way of all runs, and a run of the same work that must be ended or resumed first."""
    try:
        runs.repository.check_branches()
    except RunConflict as error:
        yield _problem("work", error.message, error.hint)
    for run, state in runs.of_work(plan.config.work):
        if state.status is Status.RUNNING:
            driven = owner_of(run.files.driver) is not None
            what = "is driven now" if driven else "was interrupted"
            hint = f"wait for it: evalwright work status {run.id} --watch" if driven else f"evalwright work resume {run.id}"
            yield _problem("work", f"run {run.id} of {plan.config.work} {what}", hint)


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
    yield from _missing_programs(repository, plan, base)
    for file in config.toolchain:
        if not _in_commit(repository, base, file):
            yield f"toolchain: {file} is not in {base[:12]}"
    for run, state in runs.of_work(config.work):
        if state.status is Status.WAITING_HUMAN:
            yield f"run {run.id} of {config.work} waits, and would be superseded"
    for run in runs if not config.parallel else ():
        owner = owner_of(run.files.driver)
        if owner:
            yield f"process {owner['pid']} drives {run.id}, beside which this run cannot start (parallel is false)"


def _uncommitted(repository: Repository) -> list[str]:
    listed = repository.git.run("status", "--porcelain", "-z", "--no-renames").decode("utf-8", "replace")
    return [entry[3:] for entry in listed.split("\0") if entry]


def _in_commit(repository: Repository, commit: str, file: str) -> bool:
    return bool(repository.git.find("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}:{file}"))


def _problem(key: str, message: str, hint: str) -> Record:
    return {"code": "E_SCHEMA_VIOLATION", "message": message, "key": key, "hint": hint}
