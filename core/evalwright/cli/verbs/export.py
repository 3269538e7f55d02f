"""``export``: write a finished run in a foreign format."""

from __future__ import annotations

from pathlib import Path

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project, table_of
from evalwright.errors import RunConflict
from evalwright.interfaces import Exporter
from evalwright.registry import PluginHost, Registry
from evalwright.report import StoredRun

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Write the run and say where. What exists at the target is never replaced."""
    options = session.options
    directory = open_project(session).run(options.run, options.run_dir)
    registry = Registry(Path())
    exporter: Exporter[object] = registry.create(
        "exporter", options.foreign_format, table_of(options.set), PluginHost(registry)
    )
    run = StoredRun(directory)
    for warning in run.warnings:
        session.warn(warning["code"], warning["message"])
    target = Path(options.out or f"{run.run_id}.{options.foreign_format}{exporter.suffix}")
    if target.exists():
        raise RunConflict(f"{target} exists already", hint="choose another --out")
    target.parent.mkdir(parents=True, exist_ok=True)
    exporter.write(run, target)
    count = len(run.report["cases"])
    data = {"format": options.foreign_format, "out": str(target), "run_id": run.run_id, "suite": run.suite, "case_count": count}
    return Reply(data=data, text=f"{target}: {count} cases of {run.run_id} as {options.foreign_format}\n")
