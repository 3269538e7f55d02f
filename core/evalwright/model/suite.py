"""A suite and its cases, after every check has passed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

__all__ = [
    "BUILTIN_SCORERS",
    "DEFAULT_ALPHA",
    "DEFAULT_ARM",
    "METRICS",
    "AgentTable",
    "Arm",
    "Case",
    "PluginTable",
    "Retry",
    "ScorerEntry",
    "Suite",
]

DEFAULT_ARM = "default"
"""The name of the one arm of a suite that names none."""
DEFAULT_ALPHA = 0.05
"""The chance of a false alarm that a comparison accepts unless its suite says otherwise."""
METRICS = ("pass_rate", "score", "cost", "duration")
"""The metrics that every trial can have, whatever its scorers."""

NO_SERVICES: Mapping[str, str] = MappingProxyType({})

BUILTIN_SCORERS = (
    "contains",
    "regex",
    "exact",
    "json-schema",
    "numeric-threshold",
    "file-exists",
    "exit-code",
    "workspace-diff",
)
"""The eight pure scorers that a suite without ``scorers`` applies, in the order of their records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginTable:
    """A reference to a plugin with its configuration, as the suite writes it."""

    use: str
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def as_json(self) -> dict[str, Any]:
        """Return ``{"use": name, ...config}``."""
        return {"use": self.use, **self.config}

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> PluginTable:
        """Read a table written by :meth:`as_json`."""
        return PluginTable(use=record["use"], config={key: value for key, value in record.items() if key != "use"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ScorerEntry:
    """One entry of a suite's ``scorers``; ``explicit_id`` tells a written id from the scorer's own name."""

    table: PluginTable
    id: str
    required: bool = True
    explicit_id: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the entry as a TrialSpec carries it."""
        return {
            "table": self.table.as_json(),
            "id": self.id,
            "required": self.required,
            "explicit_id": self.explicit_id,
        }

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> ScorerEntry:
        """Read an entry written by :meth:`as_json`."""
        return ScorerEntry(
            table=PluginTable.from_json(record["table"]),
            id=record["id"],
            required=record["required"],
            explicit_id=record["explicit_id"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTable:
    """The keys of ``runner`` that every runner shares; times in seconds, sizes in bytes.

    ``score_on_timeout`` lets the scorers judge what an agent left that was ended at its time limit.
    ``transcript`` is ``{parser: {use, ...}, path}``; ``limits`` holds those of ``tokens``, ``cost_usd`` and
    ``turns`` that are set.
    """

    timeout: float = 300.0
    score_on_timeout: bool = False
    max_output_bytes: int = 5 * 1024 * 1024
    env_allowlist: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    redact_env_values: tuple[str, ...] = ()
    redact_patterns: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    reveal_expect: bool = False
    reveal_id: bool = False
    transcript: Mapping[str, Any] | None = None
    limits: Mapping[str, float] | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the table as a TrialSpec carries it; what is not set is left out."""
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """A named configuration of the runner under comparison: the suite's tables with the arm's overrides merged in."""

    agent: AgentTable
    runner: PluginTable
    sandbox: PluginTable
    judges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """How often an attempt that the infrastructure spoiled is made again; the wait doubles with each, in seconds."""

    infrastructure: int = 0
    backoff: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One task. ``text`` is the case as JSON in UTF-8, with its id; ``line`` where it stands in the cases file.

    A suite may have many thousands of cases, so what may be long is read from ``text`` when it is asked for.
    ``services`` maps the name of a service to the path of its seed.
    """

    id: str
    workspace: str
    text: bytes
    line: int = 0
    diff: str | None = None
    hidden: str | None = None
    gold: str | Mapping[str, Any] | None = None
    timeout: float | None = None
    tags: tuple[str, ...] = ()
    split: str | None = None
    services: Mapping[str, str] = field(default_factory=lambda: NO_SERVICES)

    @property
    def record(self) -> dict[str, Any]:
        """Return the case exactly as written, with its id: read anew each time."""
        record: dict[str, Any] = json.loads(self.text)
        return record

    @property
    def task(self) -> str:
        """Return what the agent is asked to do."""
        return str(self.record["task"])

    @property
    def expect(self) -> Mapping[str, Any]:
        """Return what the scorers expect."""
        expect: Mapping[str, Any] = self.record.get("expect", {})
        return expect


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A checked suite. ``document`` is ``suite.json`` exactly as written; ``repeats`` how often every arm passes over it.

    ``primary`` is the metric by which arms are compared; ``alpha`` the chance of a false alarm that is accepted, below 1.
    """

    name: str
    directory: Path
    document: Mapping[str, Any]
    native: bool
    cases: tuple[Case, ...]
    agent: AgentTable
    runner: PluginTable
    sandbox: PluginTable
    services: Mapping[str, PluginTable] = field(default_factory=dict[str, PluginTable])
    scorers: tuple[ScorerEntry, ...]
    requires: tuple[str, ...] = ()
    retry: Retry = Retry()
    primary: str | None = None
    alpha: float = DEFAULT_ALPHA
    acknowledged: bool = False
    cases_file: str = "cases.jsonl"
    judges: Mapping[str, Mapping[str, Any]] = field(default_factory=dict[str, Mapping[str, Any]])
    arms: Mapping[str, Arm] = field(default_factory=dict[str, Arm])
    repeats: int = 1
