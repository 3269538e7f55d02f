"""What certainly keeps a run from being driven here: looked for before anything of it is made."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.canonical import is_array
from evalwright.errors import EvalwrightError, UsageError
from evalwright.interfaces import Plugin
from evalwright.registry import PluginHost, Registry, configuration_problems
from evalwright_plugins.workflow.model.config import Gate
from evalwright_plugins.workflow.model.loading import Plan
from evalwright_plugins.workflow.sites.repository import BASE, worker_environment
from evalwright_plugins.workflow.workspace import Repository

__all__ = ["in_commit", "missing_programs", "problem", "start_problems"]

Record = dict[str, Any]


def start_problems(repository: Repository, plan: Plan) -> list[Record]:
    """Return every problem of base, plugins and programs, as envelope records with the ``key`` that holds it."""
    found = [*_base_problems(repository, plan), *_plugin_problems(repository, plan), *_gate_problems(plan)]
    if not found:
        hint = "install it, or correct the name, or the PATH of env or env_allowlist"
        base = repository.resolve(plan.config.base)
        found = [problem(key, f"{key}: {what}", hint) for key, what in missing_programs(repository, plan, base, certain=True)]
    return found


def missing_programs(repository: Repository, plan: Plan, base: str, *, certain: bool) -> Iterator[tuple[str, str]]:
    """Yield the places of workers' programs that are neither installed nor in the commit ``base``, and what is missing.

    It is ``certain`` of a name that is looked up in this host's directories only. What is missing in the commit may be made
    by a step, and in a sandbox other programs may be installed.
    """
    path = worker_environment(plan.config)["PATH"]
    fixed = plan.config.sandbox.get("use") == "subprocess" and all(entry.startswith("/") for entry in path.split(":"))
    for name, table in plan.config.workers.items():
        words: Any = table.get("argv")
        if table.get("use", "command") != "command" or not is_array(words) or not words or "$" in str(words[0]):
            continue
        program = str(words[0])
        if "/" in program and not program.startswith("/"):
            if not certain and not in_commit(repository, base, program):
                yield f"workers.{name}", f"{program} is not in {base[:12]}"
        elif certain == (fixed and "/" not in program) and shutil.which(program, path=path) is None:
            yield f"workers.{name}", f"{program} is not installed here"


def in_commit(repository: Repository, commit: str, file: str) -> bool:
    """Tell whether a commit has a file."""
    return bool(repository.git.find("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}:{file}"))


def problem(key: str, message: str, hint: str) -> Record:
    """Return a problem of a configuration as an envelope has it."""
    return {"code": "E_SCHEMA_VIOLATION", "message": message, "key": key, "hint": hint}


def _base_problems(repository: Repository, plan: Plan) -> Iterator[Record]:
    """Name a base that leads nowhere."""
    try:
        repository.resolve(plan.config.base)
    except UsageError as error:
        yield problem("base", error.message, error.hint)


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
        yield problem(f"{place}.use", f"{place} does not say which plugin to use", f"add use: and a {kind}'s name")
        return
    config = {key: value for key, value in table.items() if key != "use"}
    try:
        wrong = configuration_problems(registry.load(kind, table["use"]).cls, config, place)
        if wrong:
            yield from wrong
            return
        if kind == "sandbox" and not getattr(registry.load(kind, table["use"]).cls, "in_place", True):
            yield problem(
                place, f"{table['use']} keeps the work tree where git cannot work on it", "use bubblewrap or subprocess"
            )
            return
        plugin: Plugin[Any] = registry.create(kind, table["use"], config, host)
        for found in plugin.check("worker"):
            if found.fatal:
                yield problem(place, found.message, found.hint)
    except EvalwrightError as error:
        yield problem(place, error.message, error.hint)


def _gate_problems(plan: Plan) -> Iterator[Record]:
    """Name a program of the gate that cannot be started."""
    gate = plan.config.on_gate
    if isinstance(gate, Gate) and shutil.which(gate.script[0], path=BASE["PATH"]) is None:
        hint = f"name a program in {BASE['PATH']}, or its path from here"
        yield problem("on_gate.script", f"the gate's program {gate.script[0]} is not there", hint)
