"""What a command and a runner leave behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evalwright.model.usage import Usage

__all__ = ["Completed", "Output", "RunnerResult"]


@dataclass(frozen=True, kw_only=True)
class Output:
    """One captured stream: its first bytes, its last bytes, and how many there were.

    ``head`` is redacted when a redactor was at work (``redacted`` says whether it found anything). ``tail`` is set only
    for a truncated stream. It has no slots, so that its text, which many ask for and which may be long, is held once.
    """

    head: bytes = b""
    tail: bytes = b""
    total_bytes: int = 0
    truncated: bool = False
    redacted: bool = False

    @cached_property
    def text(self) -> str:
        """Return the head as UTF-8, with U+FFFD for what is not."""
        return self.head.decode("utf-8", "replace")

    @property
    def encoded(self) -> bytes:
        """Return the text in UTF-8: the head itself where that is ASCII."""
        return self.head if self.head.isascii() else self.text.encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How one command ended.

    ``exit_code`` is negative for a death by signal (``-9``), as Python's own ``subprocess`` has it, and ``None`` when the
    command was cut (``timed_out``, ``canceled``) or never started (``spawn_error``, and ``spawn_errno`` where the system
    gave a number). ``duration`` is in seconds.
    ``limit`` names the resource limit that ended it (``oom_killed``, ``pids_limit``, ``cpu_limit``, ``file_size_limit``);
    ``limit_source`` says what kept memory and processes within their limits (``cgroup-v2``, ``cgroup-v1``, ``rlimit``).
    ``leaked_processes`` counts what it left running and was killed.
    """

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    canceled: bool = False
    spawn_error: str | None = None
    spawn_errno: int | None = None
    limit: str | None = None
    limit_source: str | None = None
    duration: float = 0.0
    stdout: Output = field(default_factory=Output)
    stderr: Output = field(default_factory=Output)
    leaked_processes: int = 0
    survivors: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerResult:
    """What a runner returns: how the agent ended and what it said. An agent's failure is a result, not an exception.

    ``output`` is the answer when the runner has it itself; ``None`` means the regular file at ``OUTPUT_FILE``, else stdout.
    ``details`` go into ``runner.json`` under ``runner``.
    """

    completed: Completed = field(default_factory=Completed)
    output: str | None = None
    usage: Usage | None = None
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
