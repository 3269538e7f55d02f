"""``work doctor`` and ``work gc``: what works here, what is left of ended runs and dead processes, and its removal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from evalwright.errors import EvalwrightError, UsageError
from evalwright.interfaces import VerbAnswer
from evalwright.processes import Supervisor, living_strays
from evalwright.registry import Catalog, PluginHost, Registry
from evalwright_plugins.workflow.commands.common import here, line_of, opened
from evalwright_plugins.workflow.commands.leftovers import Leftover, leftovers, remove
from evalwright_plugins.workflow.drive.runs import Runs
from evalwright_plugins.workflow.record import State
from evalwright_plugins.workflow.sites.repository import executor
from evalwright_plugins.workflow.workspace import Git, GitError, owner_of

__all__ = ["doctor", "gc"]

Warn = Callable[[str, str], None]
Record = dict[str, Any]
GIT = (2, 36)
WORDS = {"healthy": "ready", "degraded": "look here", "unhealthy": "broken", "not_configured": "not set up"}


def doctor(options: Any, warn: Warn) -> VerbAnswer:
    """Probe git, the sandboxes, and what lies in the repository, if there is one."""
    del warn
    components = {"git": _git(), "sandboxes": _sandboxes()}
    try:
        with opened(options) as runs:
            components |= _repository(runs)
    except UsageError as error:
        components["repository"] = _entry("unhealthy", f"{error.message}: {error.hint}")
    width = max(map(len, components))
    lines = [f" {name:<{width}}  {WORDS[one['state']]:<10} {one['details']}" for name, one in components.items()]
    commands = {one["command"]: one["details"] for one in components.values() if one.get("command")}
    lines += [f"Next:  {command}" for command in list(here(commands, options))[:1]]
    return VerbAnswer(data={"components": components}, text="\n".join(lines) + "\n", next_steps=here(commands, options))


def gc(options: Any, warn: Warn) -> VerbAnswer:
    """Say what can be removed; with ``--yes`` remove it. Ledgers, logs, outputs and branches are never touched."""
    with opened(options) as runs:
        found = leftovers(runs)
        done: list[Leftover] = []
        for one in found if options.yes else ():
            try:
                remove(runs, one)
                done.append(one)
            except (EvalwrightError, OSError) as error:
                warn("W_SANDBOX_LEFT", f"{one.path} is not removed: {error}")
    size = sum(one.size_bytes for one in (done if options.yes else found))
    verb = "removed" if options.yes else "would remove"
    lines = [f"{verb} {one.what}: {line_of(one.path)}" for one in (done if options.yes else found)]
    lines = [*lines, f"{verb} {len(lines)} in all, {_size(size)}"] if lines else ["nothing to remove"]
    data = {"removed": options.yes, "items": [one.as_json() for one in (done if options.yes else found)], "size_bytes": size}
    steps = {} if options.yes or not found else here({"evalwright work gc --yes": "remove it"}, options)
    return VerbAnswer(data=data, text="\n".join(lines) + "\n", next_steps=steps)


def _git() -> Record:
    with Supervisor() as supervisor:
        git = Git(executor(supervisor), "/")
        try:
            said = git.text("version")
        except GitError as error:
            return _entry("unhealthy", f"{error.message}: {error.hint}")
    found = re.search(r"(\d+)\.(\d+)", said)
    if not found or (int(found[1]), int(found[2])) < GIT:
        return _entry("unhealthy", f"{said}: worktrees need {GIT[0]}.{GIT[1]} or newer")
    return _entry("healthy", f"{said}, worktrees")


def _sandboxes() -> Record:
    states = {listing.name: _sandbox(listing.name) for listing in Catalog().listings("sandbox")}
    shown = ", ".join(f"{name} {'ready' if why is None else f'not usable ({why})'}" for name, why in states.items())
    usable = [name for name, why in states.items() if why is None]
    return _entry("healthy" if usable else "unhealthy", shown or "none installed", usable=usable)


def _sandbox(name: str) -> str | None:
    """Return why a sandbox cannot be used with its defaults, ``None`` when it can."""
    registry = Registry()
    host = PluginHost(registry)
    try:
        found = registry.create("sandbox", name, {}, host).check("worker")
    except EvalwrightError as error:
        return line_of(error.message)
    finally:
        host.close()
    return next((line_of(problem.message) for problem in found if problem.fatal), None)


def _repository(runs: Runs) -> dict[str, Record]:
    states, damaged = _states(runs)
    rubbish = leftovers(runs)
    trees = [one for one in rubbish if one.kind == "worktree"]
    found = {"repository": _entry("healthy", str(runs.repository.checkout)), "locks": _locks(runs), "runs": _runs(runs, states)}
    if damaged:
        details = f"their ledgers are damaged: {', '.join(damaged)}"
        found["ledgers"] = _entry("unhealthy", details, command=f"evalwright work verify {damaged[0]}")
    found["worktrees"] = _entry("healthy", f"{len(runs.repository.worktrees())}, all of runs that go on")
    if trees:
        names = ", ".join(one.run for one in trees)
        found["worktrees"] = _entry("degraded", f"left of runs that have ended: {names}", command="evalwright work gc")
    size = sum(one.size_bytes for one in rubbish)
    found["leftovers"] = _entry("healthy", "none")
    if rubbish:
        found["leftovers"] = _entry("degraded", f"{len(rubbish)} ({_size(size)})", command="evalwright work gc")
    return found


def _states(runs: Runs) -> tuple[dict[str, State], list[str]]:
    states: dict[str, State] = {}
    damaged: list[str] = []
    for run in runs:
        try:
            states[run.id] = run.state()
        except (EvalwrightError, OSError):
            damaged.append(run.id)
    return states, damaged


def _locks(runs: Runs) -> Record:
    """Say who holds what; a lock of a dead process holds nobody up."""
    held = [f"{name} by process {owner['pid']} on {line_of(owner['host'])}" for name, owner in _owners(runs)]
    return _entry("healthy", f"held: {', '.join(held)}" if held else "none is held", held=held)


def _owners(runs: Runs) -> Iterator[tuple[str, Record]]:
    state = runs.repository.state
    for path in sorted([*state.glob("*.lock"), *state.glob("works/*/lock"), *state.glob("runs/*/driver.lock")]):
        owner = owner_of(path)
        if owner:
            yield path.relative_to(state).as_posix(), owner


def _runs(runs: Runs, states: dict[str, State]) -> Record:
    """Say how runs stand, whose driver died, and what that has left running."""
    counts: dict[str, int] = {}
    dead: list[str] = []
    strays: list[str] = []
    for run in runs:
        state = states.get(run.id)
        if state is None or run.foreign:
            continue
        counts[str(state.status)] = counts.get(str(state.status), 0) + 1
        driven = owner_of(run.files.driver) is not None
        if not driven and not state.status.terminal and (state.request is None or state.decision):
            dead.append(run.id)
        if not driven and run.files.processes.is_file() and living_strays(run.files.processes):
            strays.append(run.id)
    details = ", ".join(f"{count} {status}" for status, count in counts.items()) or "none yet"
    if not dead and not strays:
        return _entry("healthy", details)
    details += f"; nobody drives {', '.join(dead)}" if dead else ""
    details += f"; processes are left of {', '.join(strays)}" if strays else ""
    return _entry("degraded", details, command=f"evalwright work resume {(dead or strays)[0]}")


def _entry(state: str, details: str, **more: Any) -> Record:
    return {"state": state, "details": details, **more}


def _size(size_bytes: int) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if size_bytes < 1024:
            return f"{size_bytes:g} {unit}"
        size_bytes = round(size_bytes / 1024)
    return f"{size_bytes} GiB"
