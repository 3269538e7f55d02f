"""``import``: make a suite, or an experiment with runs, from a foreign format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project, table_of
from evalwright.coordinate import provenance_of, write_import
from evalwright.errors import SourceMissing
from evalwright.redaction import Redactor, credential_values
from evalwright.registry import PluginHost, Registry

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Write what the format holds and say what could not be taken over."""
    options = session.options
    layout = open_project(session).layout
    registry = Registry(Path())
    importer = registry.create("importer", options.foreign_format, table_of(options.set), PluginHost(registry))
    source = Path(options.source) if options.source else None
    if source is not None and not source.exists():
        raise SourceMissing(f"{source} does not exist", hint="give the path of what to import")
    provenance = provenance_of(session.argv, [registry.load("importer", options.foreign_format)])
    redactor = Redactor(credential_values(session.environment))
    items = importer.read(source)
    written = write_import(items, out=options.out, layout=layout, provenance=provenance, redactor=redactor)
    data = {"format": options.foreign_format, **written}
    return _runs(data) if "runs" in data else _suite(data, layout.suites)


def _suite(data: Mapping[str, Any], suites: Path) -> Reply:
    out = Path(data["out"])
    name = out.name if out.parent == suites else str(out if out.is_absolute() else f"./{out}")
    lines = [f"{data['out']}: {data['case_count']} cases from {data['format']}", *_left_out(data)]
    lines += [f"  needs: {need}" for need in data["summary"].get("needs", ())]
    lines.append(f"Check it:  evalwright audit {name}")
    reply = Reply(data=data, text="\n".join(lines) + "\n")
    return reply.then(f"evalwright audit {name} --json", "find out whether the suite can tell")


def _runs(data: Mapping[str, Any]) -> Reply:
    summary = data["summary"]
    counts = f"{_count(summary['trials'], 'trial')} in {_count(summary['runs'], 'run')} from {data['format']}"
    lines = [f"{data['experiment']}: {counts} · {summary['passed']} passed"]
    lines += [f"  {run}" for run in data["runs"]]
    lines += [*_left_out(data), f"Read one:  evalwright report {data['runs'][0]}"]
    reply = Reply(data=data, text="\n".join(lines) + "\n")
    return reply.then(f"evalwright report {data['runs'][0]} --format json", "see its verdicts")


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _left_out(data: Mapping[str, Any]) -> list[str]:
    return [f"  left out: {item['what']} ({item['why']})" for item in data["unsupported"]]
