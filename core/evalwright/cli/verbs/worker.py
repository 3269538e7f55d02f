"""``worker``: one trial from a spec file, in a process of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from evalwright.canonical import is_object
from evalwright.cli.dispatch import Session
from evalwright.cli.envelope import Reply
from evalwright.errors import UsageError
from evalwright.interfaces import Job
from evalwright.model import TrialSpec
from evalwright.processes import ProcessIdentity, Stop, current_process
from evalwright.rundir import write_document
from evalwright.store import DirectoryStore
from evalwright.worker import attempt, outcome_record, shut_down

__all__ = ["answer"]

EXIT = {"done": 0, "canceled": 130, "refused": 3, "lost": 3}


def answer(session: Session) -> Reply:
    """Carry the trial out and return its outcome. It ends early when its coordinator is gone or its spec file is removed."""
    options = session.options
    spec = Path(options.spec)
    job = Job(
        key=_key(spec),
        spec=spec.read_bytes(),
        lock=options.lock or "",
        bundle=Path(options.bundle) if options.bundle else None,
    )
    _check_places(options.out, options.bundle)
    stop = Stop()
    stop.listen()
    me = current_process()
    try:
        outcome = attempt(
            job,
            worker=f"{me.host}-{me.pid}",
            beat=_beat(spec, stop, _coordinator(options.coordinator)),
            store=DirectoryStore(Path(options.store)) if options.store else None,
        )
    finally:
        shut_down()
    data = outcome_record(outcome)
    if options.out:
        write_document(Path(options.out), data)
        data = {key: data[key] for key in ("key", "ended", "worker", "reason")} | {"out": options.out}
    text = f"{job.key}: {outcome.ended}\n" + (f"  {outcome.reason}\n" if outcome.reason else "")
    return Reply(data=data, text=text, exit_code=EXIT[outcome.ended])


def _key(path: Path) -> str:
    """Return the key of a spec file's trial. Raises ``UsageError`` for a file that holds no spec."""
    try:
        spec = TrialSpec.from_bytes(path.read_bytes())
        return f"{spec.run_id}/{spec.case_id}/{spec.attempt}"
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint="give a file that a coordinator wrote") from error
    except (ValueError, TypeError) as error:
        why = str(error).replace("TrialSpec.__init__() ", "it is ")
        raise UsageError(f"{path} is no spec of a trial: {why}", hint="give a file that a coordinator wrote") from error


def _check_places(out: str | None, bundle: str | None) -> None:
    """Raise ``UsageError`` for what could not be written once the trial is done."""
    if out is not None and (Path(out).is_dir() or not os.access(Path(out).resolve().parent, os.W_OK)):
        raise UsageError(f"--out {out}: no file can be written there", hint="name a file in a writable directory", key="out")
    if bundle is not None and os.path.lexists(bundle) and (not Path(bundle).is_dir() or any(Path(bundle).iterdir())):
        raise UsageError(f"--bundle {bundle} is there already", hint="name a new directory", key="bundle")


def _coordinator(text: str | None) -> ProcessIdentity | None:
    if text is None:
        return None
    try:
        record = json.loads(text)
        if not is_object(record):
            raise TypeError("not an object")
        return ProcessIdentity.from_json(record)
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"--coordinator {text!r} names no process", hint="give pid, start_time, boot_id and host") from error


def _beat(spec: Path, stop: Stop, coordinator: ProcessIdentity | None) -> Callable[[], Literal["continue", "cancel"]]:
    """Return what tells whether to go on; a coordinator on another host is never taken for dead."""
    watched = coordinator if coordinator and coordinator.local else None

    def beat() -> Literal["continue", "cancel"]:
        gone = stop.requested or not os.path.exists(spec) or (watched is not None and not watched.alive)
        return "cancel" if gone else "continue"

    return beat
