"""``doctor``: what works here, and every effective setting with its origin."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evalwright import __version__
from evalwright.cli import machine
from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.machine import component
from evalwright.cli.project import Project, open_project
from evalwright.errors import EvalwrightError, UsageError
from evalwright.settings import FIELDS

__all__ = ["answer"]

Record = dict[str, Any]
WORDS = {"healthy": "ready", "degraded": "degraded", "unhealthy": "broken", "not_configured": "not set up"}


def answer(session: Session) -> Reply:
    """Probe every component, or one; ``--fast`` imports no plugin."""
    project = open_project(session)
    wanted = session.options.component
    if wanted is not None and wanted not in COMPONENTS:
        raise UsageError(f"no component {wanted!r}", hint=f"there are: {', '.join(COMPONENTS)}", valid_values=list(COMPONENTS))
    chosen = COMPONENTS if wanted is None else {wanted: COMPONENTS[wanted]}
    components = {name: probe(project) for name, probe in chosen.items()}
    settings = {name: _setting(project, name) for name in FIELDS}
    actions = [entry["recommended_action"] for entry in components.values() if "recommended_action" in entry]
    action = actions[0] if actions else {"command": "evalwright jobs list", "rationale": "nothing needs attention"}
    states = {entry["state"] for entry in components.values()}
    data = {
        "components": components,
        "settings": settings,
        "recommended_action": action,
        "operation_outcome": {"kind": next((bad for bad in ("unhealthy", "degraded") if bad in states), "healthy")},
    }
    return Reply(data=data, text=_text(data)).then(action["command"], action["rationale"])


def _runtime(_: Project) -> Record:
    linux = sys.platform == "linux"
    details = f"Python {platform.python_version()}, evalwright {__version__}, {platform.system()}"
    return component("healthy" if linux else "unhealthy", details if linux else f"{details}: only Linux is supported")


def _git(_: Project) -> Record:
    path = shutil.which("git")
    if path:
        return component("healthy", path)
    return component("degraded", "not installed: git fixtures and gold patches need it")


def _plugins(kind: str) -> Callable[[Project], Record]:
    """Return the probe of one kind: each installed plugin, imported and asked unless ``--fast``."""

    def probe(project: Project) -> Record:
        from evalwright.registry import Catalog

        catalog = Catalog()
        entries = {item.name: _plugin(project, item, catalog) for item in catalog.listings(kind)}
        broken = [name for name, entry in entries.items() if entry["state"] not in ("healthy", "not_configured")]
        shown = ", ".join(_shown(name, entry) for name, entry in entries.items()) or "none installed"
        found = component("degraded" if broken else "healthy" if entries else "not_configured", shown, plugins=entries)
        if broken:
            found["recommended_action"] = {"command": f"evalwright plugins check {broken[0]}", "rationale": "see why"}
        return found

    return probe


def _shown(name: str, entry: Record) -> str:
    """Return a plugin's state in a few words, and what it lacks if anything."""
    lacks = "" if entry["state"] == "healthy" else f" ({entry['details']})"
    return f"{name} {WORDS[entry['state']]}{lacks}"


def _plugin(project: Project, item: Any, catalog: Any) -> Record:
    from evalwright.registry import PluginHost, Registry

    if project.session.options.fast:
        return component("healthy", f"{item.origin}, not imported")
    registry = Registry(catalog=catalog)
    try:
        loaded = registry.load(item.kind, f"{item.distribution}:{item.name}")
        extra = sorted(loaded.cls.capabilities)
        if loaded.cls.Config is not None and item.kind in {"runner", "scorer"}:
            return component("healthy", item.origin, capabilities=extra)
        plugin = registry.create(item.kind, f"{item.distribution}:{item.name}", {}, PluginHost(registry))
        found = plugin.check("worker")
        problems = [f"{problem.message}. {problem.hint}" for problem in found]
        if found and all(str(problem.details.get("code", "")).endswith("_UNAVAILABLE") for problem in found):
            return component("not_configured", "; ".join(problems))
    except EvalwrightError as error:
        return component("unhealthy", error.message)
    return component("degraded" if problems else "healthy", "; ".join(problems) or item.origin, capabilities=extra)


def _setting(project: Project, name: str) -> Record:
    value = getattr(project.settings, name)
    return {"value": str(value) if isinstance(value, Path) else value, "origin": project.settings.origin(name)}


def _text(data: Record) -> str:
    width = max(map(len, data["components"]))
    lines = [f" {name:<{width}}  {WORDS[entry['state']]:<12} {entry['details']}" for name, entry in data["components"].items()]
    shown = [f"{name} {entry['value']} ({entry['origin']})" for name, entry in data["settings"].items()]
    lines += ["", " settings:", *(f"   {line}" for line in shown)]
    action = data["recommended_action"]
    return "\n".join([*lines, "", f"Next:  {action['command']}   ({action['rationale']})"]) + "\n"


COMPONENTS: dict[str, Callable[[Project], Record]] = {
    "runtime": _runtime,
    "git": _git,
    "runners": _plugins("runner"),
    "sandboxes": _plugins("sandbox"),
    "queues": _plugins("queue"),
    "scorers": _plugins("scorer"),
    "services": _plugins("service"),
    "importers": _plugins("importer"),
    "workspaces": machine.workspaces,
    "disk": machine.disk,
    "limits": machine.limits,
    "processes": machine.processes,
    "runs": machine.runs,
}
