"""From what a trial left to the files of its bundle: answer, streams, manifests, diff, facts."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright.errors import TrialError
from evalwright.interfaces import Session
from evalwright.model import Change, Output, RunnerResult
from evalwright.redaction import Redactor
from evalwright.rundir import BundleWriter
from evalwright.store import DirectoryStore
from evalwright.workspace import open_readable, unified_diff

__all__ = [
    "answer_of",
    "event_lines",
    "redact_tree",
    "runner_record",
    "shown_record",
    "text_diff",
    "transcript_of",
    "write_streams",
]

SLACK_BYTES = 1 << 17
MAX_DIFF_FILE = 4 << 20


def answer_of(result: RunnerResult, session: Session | None, redactor: Redactor, max_bytes: int) -> Output:
    """Return the redacted answer: the runner's own, else the regular file at ``OUTPUT_FILE``, else stdout.

    Raises ``TrialError`` when something else than a regular file lies there: a link, a FIFO, a directory.
    """
    if result.output is not None:
        data: bytes | None = result.output.encode("utf-8", "replace")
    else:
        data = _output_file(session, max_bytes + SLACK_BYTES) if session else None
    if data is None:
        return result.completed.stdout
    sink = redactor.output(max_bytes)
    sink.feed(data)
    size = (session.size(session.exchange / "output.txt") or 0) if session and result.output is None else 0
    output = sink.finish(complete=size <= len(data))
    return replace(output, total_bytes=max(size, output.total_bytes))


def runner_record(
    result: RunnerResult, answer: Output, session: Any, error: Mapping[str, Any] | None, redactor: Redactor
) -> dict[str, Any]:
    """Return ``runner.json``."""
    done = result.completed
    return {
        "exit_code": done.exit_code,
        "signal": done.signal,
        "timed_out": done.timed_out,
        "spawn_failed": done.spawn_error is not None,
        "error_code": error["code"] if error else None,
        "error": dict(error) if error else None,
        "duration_ms": round(done.duration * 1000),
        "stdout_truncated": done.stdout.truncated,
        "stderr_truncated": done.stderr.truncated,
        "output_truncated": answer.truncated,
        "stdout_redacted": done.stdout.redacted,
        "stderr_redacted": done.stderr.redacted,
        "output_redacted": answer.redacted,
        "stdout_bytes": done.stdout.total_bytes,
        "stderr_bytes": done.stderr.total_bytes,
        "output_bytes": answer.total_bytes,
        "limit": done.limit,
        "limit_source": done.limit_source,
        "leaked_processes": session.leaked_processes if session else done.leaked_processes,
        "isolation": session.isolation if session else "none",
        "sandbox": redactor.json(dict(session.account())) if session else {},
        "usage": result.usage.as_json() if result.usage else None,
        "runner": redactor.json(result.details),
    }


def write_streams(bundle: BundleWriter, result: RunnerResult, redactor: Redactor) -> None:
    """Write stdout and stderr, the tail of a truncated one, and the raw head where it is no UTF-8 and holds no secret."""
    done = result.completed
    spawn_error = redactor.text(done.spawn_error or "")
    for name, output in (("stdout", done.stdout), ("stderr", done.stderr)):
        if name == "stderr" and spawn_error:
            bundle.write_text("runner.stderr.txt", spawn_error)
        else:
            bundle.write_bytes(f"runner.{name}.txt", output.encoded)
        if output.truncated:
            bundle.write_bytes(f"runner.{name}.tail.txt", output.tail)
        elif not output.redacted and output.head != output.encoded:
            bundle.write_bytes(f"runner.{name}.raw", output.head)


def event_lines(events: Sequence[Mapping[str, Any]]) -> str:
    """Return ``events.jsonl``."""
    return "".join(json.dumps(event, ensure_ascii=False) + "\n" for event in events)


def transcript_of(result: RunnerResult, events: Sequence[Mapping[str, Any]]) -> str:
    """Return what is on record of the agent's doings: stdout, stderr and events, as far as there are any."""
    done = result.completed
    return "\n".join(filter(None, (done.stdout.text, done.stderr.text, event_lines(events))))


def text_diff(changes: tuple[Change, ...], store: DirectoryStore, workspace: Path, redactor: Redactor) -> bytes:
    """Return the unified diff of the workspace's changes; git's own directory is not part of it.

    Contents are redacted before they are compared, since a secret of several lines is in no single line of a diff.
    """
    digests = {os.fsdecode(change.raw_path): change.sha256_before for change in changes if change.kind_before == "file"}

    def old(path: str) -> bytes | None:
        digest = digests.get(path)
        return _redacted(_bounded(store.path(digest)), redactor) if digest else None

    def new(path: str) -> bytes | None:
        return _redacted(_bounded(workspace / path), redactor)

    shown = [change for change in changes if ".git" not in PurePosixPath(change.path).parts]
    return redactor.bytes(unified_diff(shown, old, new))


def _output_file(session: Session, max_bytes: int) -> bytes | None:
    try:
        return session.get(session.exchange / "output.txt", max_bytes=max_bytes)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise TrialError("output_file", f"the output file is no regular file: {error}") from error


def _redacted(data: bytes | None, redactor: Redactor) -> bytes | None:
    return None if data is None else redactor.bytes(data)


def _bounded(path: Path) -> bytes | None:
    try:
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return None
        descriptor = open_readable(path)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        data = file.read(MAX_DIFF_FILE + 1)
    return data if len(data) <= MAX_DIFF_FILE else None


def shown_record(record: Mapping[str, Any], redactor: Redactor) -> Mapping[str, Any]:
    """Return the record of a manifest's entry, or of a change, without secrets in its name and link target."""
    if redactor.idle:
        return record
    shown = {**record, **{name: redactor.text(record[name]) for name in ("path", "target") if name in record}}
    if shown["path"] != record["path"]:
        shown.pop("path_b64", None)
    return shown


def redact_tree(directory: Path, redactor: Redactor) -> None:
    """Take the secrets out of every file of a tree of ours; one too large to be read whole is removed."""
    if redactor.idle:
        return
    for path in sorted(directory.rglob("*")):
        if path.is_symlink() or not path.is_file():
            continue
        data = _bounded(path)
        if data is None:
            path.unlink()
        elif (redacted := redactor.bytes(data)) != data:
            path.unlink()
            path.write_bytes(redacted)
