"""``work import``: a foreign run is verified, copied as it is, and from then on read like one of the repository's own."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.errors import RunBusy, RunConflict, SourceMissing, UsageError
from evalwright.interfaces import VerbAnswer
from evalwright.ledger import head_of
from evalwright_plugins.workflow.commands.common import here, line_of, opened
from evalwright_plugins.workflow.commands.evidence import KEPT, checked_events, evidence_of, ledger_in
from evalwright_plugins.workflow.drive.runs import Run, Runs
from evalwright_plugins.workflow.sites import RunFiles
from evalwright_plugins.workflow.workspace.places import checked_id

__all__ = ["IMPORTING", "import_run"]

Warn = Callable[[str, str], None]
IMPORTING = "importing-"


def import_run(options: Any, warn: Warn) -> VerbAnswer:
    """Import a directory. Doing it again changes nothing.

    Raises ``SourceMissing`` for no run, ``LedgerDamaged`` for one that does not verify, ``RunConflict`` for a taken id.
    """
    if not options.target:
        raise UsageError("work import needs DIR", hint="evalwright work import DIR")
    source = Path(options.target)
    ledger = ledger_in(source)
    events, state = checked_events(ledger)
    if not events:
        raise SourceMissing(f"{ledger} holds no event", hint="name the directory of a run that has begun")
    with opened(options) as runs:
        run = Run(RunFiles(runs.path / checked_id(options.run_id or state.run)))
        created = not _known(runs, run, ledger)
        if created:
            _copied(runs, run, ledger, {"seq": state.seq, "digest": events[-1]["digest"]}, warn)
    evidence = evidence_of(run.files.path, events)
    if evidence.missing:
        warn("W_PATH_UNREADABLE", line_of(f"the ledger names what is not there: {', '.join(evidence.missing)}"))
    if evidence.changed:
        warn("W_ARTIFACT_TAMPERED", line_of(f"this is not what the ledger recorded: {', '.join(evidence.changed)}"))
    data = {"run": run.id, "work": state.work, "status": str(state.status), "events": len(events), "created": created}
    text = f"{run.id} · {state.work} · {state.status}: {'imported' if created else 'was imported already'}, to be read only\n"
    steps = here({f"evalwright work status {run.id}": "look at it"}, options)
    return VerbAnswer(data=data | {"evidence": evidence.as_json()}, text=text, next_steps=steps)


def _known(runs: Runs, run: Run, ledger: Path) -> bool:
    """Tell whether the same run was imported before."""
    if run.foreign and run.files.ledger.read_bytes() == ledger.read_bytes():
        return True
    if os.path.lexists(run.files.path) or runs.repository.has_branch(run.id):
        raise RunConflict(f"there is a run {run.id} already, or a branch run/{run.id}", hint="choose another id: --run-id ID")
    return False


def _copied(runs: Runs, run: Run, ledger: Path, head: dict[str, Any], warn: Warn) -> None:
    """Copy a run beside the others, and put it in its place as a whole."""
    runs.path.mkdir(parents=True, exist_ok=True)
    aside = RunFiles(Path(tempfile.mkdtemp(prefix=IMPORTING, dir=runs.repository.state)))
    try:
        content = ledger.read_bytes()
        aside.ledger.write_bytes(content)
        head_of(aside.ledger).write_text(json.dumps(head), encoding="utf-8")
        if checked_events(aside.ledger)[1].seq != head["seq"]:
            raise RunBusy(f"{ledger} was written while it was copied", hint="import it when nobody drives it")
        for path in _evidence(ledger.parent, warn):
            place = aside.path / path.relative_to(ledger.parent)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, place, follow_symlinks=False)
        mark = {"source": str(ledger.resolve()), "imported_at": datetime.now(UTC).isoformat(timespec="seconds")}
        aside.foreign.write_text(json.dumps(mark), encoding="utf-8")
        os.rename(aside.path, run.files.path)
    except BaseException:
        shutil.rmtree(aside.path, ignore_errors=True)
        raise


def _evidence(source: Path, warn: Warn) -> Iterator[Path]:
    """Yield the regular files of ``logs`` and ``outputs``; links could lead anywhere."""
    for name in KEPT:
        for path in sorted((source / name).rglob("*")):
            if path.is_file() and not path.is_symlink():
                yield path
            elif path.is_symlink() or not path.is_dir():
                warn("W_PATH_UNREADABLE", f"{path} is no regular file and is not copied")
