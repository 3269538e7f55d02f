"""What a scorer sees of a finished trial, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalwright.model.manifest import Change, Manifest

__all__ = ["Finding", "Score", "ScoredTrial", "ServiceRecord"]

Finding = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One scorer's result. ``score`` is finite and in [0, 1]; ``label`` defaults to ``pass`` or ``fail``.

    ``error`` marks a scorer that could not judge: the trial becomes ``error``, never ``fail``; ``transient`` says that it may
    be able to in another attempt.
    ``metrics`` are finite numbers of any range for comparison and reports.
    """

    ok: bool
    score: float
    label: str = ""
    findings: tuple[Finding, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    error: bool = False
    transient: bool = False

    @staticmethod
    def passed(**fields: Any) -> Score:
        """Return a full score."""
        return Score(ok=True, score=1.0, **fields)

    @staticmethod
    def failed(*findings: Finding, **fields: Any) -> Score:
        """Return a zero score with its reasons."""
        return Score(ok=False, score=0.0, findings=findings, **fields)

    @staticmethod
    def decided(findings: tuple[Finding, ...]) -> Score:
        """Return a full score when there is nothing to object to, else a zero score with the objections."""
        return Score(ok=not findings, score=0.0 if findings else 1.0, findings=findings)

    @staticmethod
    def broken(why: str, *, transient: bool = False) -> Score:
        """Return the result of a scorer that could not judge."""
        return Score(ok=False, score=0.0, label="error", findings=({"why": why},), error=True, transient=transient)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceRecord:
    """What one service of a trial was asked, oldest first, and how it stood at the end, without secrets.

    ``dropped`` counts calls that came after the service's record was full. The shape of calls and state is the service's own.
    """

    calls: tuple[Mapping[str, Any], ...] = ()
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredTrial:
    """A finished trial as a scorer sees it; the agent's processes are dead.

    ``expect`` holds the expectations that the scorer owns, as written in the case and already validated against its
    ``Expect`` models. ``output`` is the redacted, bounded answer; ``native`` tells a native suite from one in evalctl form.
    ``diff`` is the unified diff of the workspace, without git's own directory, and ``transcript`` the runner's streams and
    events; both are redacted. ``services`` holds the record of each service by its name in the suite.
    """

    case_id: str
    task: str
    expect: Mapping[str, Any]
    output: str
    output_truncated: bool = False
    exit_code: int | None = None
    timed_out: bool = False
    before: Manifest = field(default_factory=Manifest)
    after: Manifest = field(default_factory=Manifest)
    changes: tuple[Change, ...] = ()
    diff: str = ""
    transcript: str = ""
    native: bool = True
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    services: Mapping[str, ServiceRecord] = field(default_factory=dict[str, ServiceRecord])
