"""``import``: make a suite from a foreign format."""

from __future__ import annotations

from pathlib import Path

from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.cli.project import open_project
from evalwright.errors import SourceMissing
from evalwright.registry import PluginHost, Registry
from evalwright.suite import write_imported

__all__ = ["answer"]


def answer(session: Session) -> Reply:
    """Write the suite and say what could not be taken over."""
    options = session.options
    layout = open_project(session).layout
    registry = Registry(Path())
    importer = registry.create("importer", options.format, {}, PluginHost(registry))
    source = Path(options.source) if options.source else None
    if source is not None and not source.exists():
        raise SourceMissing(f"{source} does not exist", hint="give the path of what to import")
    written = write_imported(importer.read(source), Path(options.out) if options.out else None, layout.suites)
    data = {"format": options.format, **written, "summary": {"cases": written["case_count"]}}
    out = Path(written["out"])
    name = out.name if out.parent == layout.suites else str(out if out.is_absolute() else f"./{out}")
    lines = [f"{written['out']}: {written['case_count']} cases from {options.format}"]
    lines += [f"  left out: {item['what']} ({item['why']})" for item in written["unsupported"]]
    lines.append(f"Check it:  evalwright audit {name}")
    reply = Reply(data=data, text="\n".join(lines) + "\n")
    return reply.then(f"evalwright audit {name} --json", "find out whether the suite can tell")
