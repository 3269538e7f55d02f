"""The profile of a run: the coordinator's own spans around those of its workers, written trial by trial."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evalwright.canonical import is_array
from evalwright.errors import RunCorrupt
from evalwright.ledger import Event
from evalwright.rundir import RunDirectory, disk_errors, write_text
from evalwright.spans import TRIAL, Moment, Span

__all__ = ["Profile", "profile_files"]

Attempt = tuple[str, int]

SUFFIXES = {"table": ".txt", "picture": ".svg", "spans": ".jsonl"}


class Profile:
    """Writes ``profile.jsonl``: a line for each span, with the case and the attempt that it belongs to.

    Not thread-safe: the thread that drives the run owns it. What is measured of an attempt is written when that has ended.
    """

    def __init__(self, run: RunDirectory) -> None:
        self._path = run.profile
        self._begun: dict[Attempt, Moment] = {}
        self._waiting: dict[Attempt, list[Span]] = {}
        with disk_errors(self._path), self._path.open("a+b") as file:
            _end_line(file)

    def begun(self, attempt: Attempt, moment: Moment) -> None:
        """Note that an attempt was written down and is about to be submitted."""
        self._begun[attempt] = moment
        self._waiting[attempt] = [Span.since("begin", moment)]

    def taken(self, attempt: Attempt, result: Mapping[str, Any], moment: Moment, *, counts: bool) -> None:
        """Note what a worker told of an attempt, and that it was taken in since ``moment``.

        One that does not count has ended with that; any other ends with :meth:`durable`.
        """
        if attempt not in self._begun:
            return
        spans = self._waiting[attempt]
        spans += _travelled(spans[0], [Span(*span) for span in _told(result)], moment[0])
        spans.append(Span.since("take", moment))
        if not counts:
            self._end(attempt)

    def durable(self, finished: Iterable[Event], moment: Moment) -> None:
        """Note that results became durable together, in a commit that began at ``moment``."""
        commit = Span.since("commit", moment)
        for event in finished:
            attempt = (event["data"]["case"], event["data"]["attempt"])
            if attempt in self._begun:
                self._waiting[attempt].append(commit)
                self._end(attempt)

    def publish(self) -> None:
        """Write the summary and the picture of a run that is finished, unless no attempt was left to measure."""
        from evalwright.report.figures.spans import RunSpans
        from evalwright.report.forms.profile import profile_picture, profile_text

        try:
            spans = RunSpans.read(self._path)
        except RunCorrupt:
            return
        write_text(self._path.with_suffix(SUFFIXES["table"]), profile_text(spans))
        write_text(self._path.with_suffix(SUFFIXES["picture"]), profile_picture(spans))

    def _end(self, attempt: Attempt) -> None:
        case_id, number = attempt
        parts = self._waiting.pop(attempt)
        used = sum(span.cpu_ns for span in parts if "/" not in span.name)
        spans = [*parts, Span.since(TRIAL, self._begun.pop(attempt))._replace(cpu_ns=used)]
        lines = [json.dumps({"case": case_id, "attempt": number, **span._asdict()}) + "\n" for span in spans]
        with disk_errors(self._path), self._path.open("ab", buffering=0) as file:
            file.write("".join(lines).encode())


def profile_files(run: RunDirectory) -> dict[str, str]:
    """Return the paths of a run's ``table``, ``picture`` and ``spans``, of those that are there."""
    paths = {key: run.profile.with_suffix(suffix) for key, suffix in SUFFIXES.items()}
    return {key: str(path) for key, path in paths.items() if path.is_file()}


def _told(result: Mapping[str, Any]) -> Sequence[Any]:
    told = result.get("spans")
    return told if is_array(told) else []


def _travelled(begin: Span, told: Sequence[Span], taken_ns: int) -> list[Span]:
    """Return a worker's spans with the time between its and the coordinator's.

    The clock of another machine begins elsewhere: its spans are moved behind the submission, and the time between is not known.
    """
    if not told:
        return []
    submitted = begin.start_ns + begin.duration_ns
    first, last = min(span.start_ns for span in told), max(span.start_ns + span.duration_ns for span in told)
    if not submitted - begin.duration_ns <= first <= last <= taken_ns:
        return [span._replace(start_ns=span.start_ns - first + submitted) for span in told]
    ways = (("queue", submitted, first), ("return", last, taken_ns))
    return [*(Span(name, start, max(0, end - start), 0, begin.thread) for name, start, end in ways), *told]


def _end_line(file: Any) -> None:
    """Let a line begin here: a crash may have cut the last one."""
    end = file.seek(0, 2)
    file.seek(max(0, end - 1))
    if file.read(1) not in (b"", b"\n"):
        file.write(b"\n")
