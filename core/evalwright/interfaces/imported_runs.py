"""What an importer says about runs that another harness carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evalwright.model import Score, Usage

__all__ = ["ImportedRun", "ImportedScore", "ImportedSummary", "ImportedTrial"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """One pass of one arm over the suite; the trials that follow belong to it.

    ``experiment`` names what the runs are read in, the same for all of one import. ``created`` is a UTC time in ISO 8601.
    ``evidence`` is ``full`` when the trials bring what the agent left, ``scores-only`` when nobody can look again.
    ``settings`` says what ran, as far as it is known: the arm's identity. ``source`` is the run's name in its own harness.
    """

    experiment: str
    arm: str
    repeat: int
    created: str
    evidence: Literal["full", "scores-only"]
    source: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedScore:
    """One result of the other harness's graders under the name of a scorer.

    One that is not ``required`` never makes a trial fail; an ``advisory`` one does not make it pass either.
    """

    scorer: str
    score: Score
    required: bool = True
    advisory: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTrial:
    """One case of the run before it, as it was. Its status is folded from its scores as for a trial of our own.

    ``error`` says what kept the trial from being done; the other harness is at fault unless ``fault`` is ``agent``.
    ``duration`` is in seconds; it and ``usage`` are ``None`` where unknown, never zero. ``output`` is the answer, ``diff`` the
    unified diff of the workspace. ``artifacts`` are further files to keep, by relative path.
    """

    case_id: str
    scores: Sequence[ImportedScore] = ()
    error: str | None = None
    fault: Literal["agent", "harness"] = "harness"
    output: str = ""
    diff: bytes = b""
    usage: Usage | None = None
    duration: float | None = None
    artifacts: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(frozen=True, slots=True)
class ImportedSummary:
    """Figures of the whole import for its answer; they must be JSON. People are shown ``needs``, a list of texts."""

    values: Mapping[str, Any]
