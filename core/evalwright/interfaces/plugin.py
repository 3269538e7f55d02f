"""What all plugin kinds share: versioned interface, configuration, preflight and life cycle."""

from __future__ import annotations

import time
from abc import ABC
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Protocol, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["API", "Deadline", "Host", "Plugin", "Problem"]

C = TypeVar("C")
T = TypeVar("T")

API: Mapping[str, str] = MappingProxyType(
    {
        "runner": "runner/1.0",
        "scorer": "scorer/1.0",
        "sandbox": "sandbox/1.0",
        "queue": "queue/1.0",
        "judge": "judge/1.0",
        "service": "service/1.0",
        "importer": "importer/1.0",
        "exporter": "exporter/1.0",
        "transcript": "transcript/1.0",
    }
)


@dataclass(frozen=True, slots=True)
class Deadline:
    """A moment of the monotonic clock by which a call must return."""

    at: float

    @staticmethod
    def after(seconds: float) -> Deadline:
        """Return the deadline that lies ``seconds`` from now."""
        return Deadline(time.monotonic() + seconds)

    @property
    def remaining(self) -> float:
        """Return the seconds left, never below zero."""
        return max(0.0, self.at - time.monotonic())

    @property
    def expired(self) -> bool:
        """Tell whether the moment has passed."""
        return time.monotonic() >= self.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding of a preflight check: what is wrong and what to do. ``fatal`` stops the run before its first trial."""

    message: str
    hint: str = ""
    fatal: bool = True
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])


class Host(Protocol):
    """What the core offers to a plugin."""

    def create(self, reference: str) -> Any:
        """Return another plugin by reference: ``sandboxes.grader`` (a table of the suite) or ``module:Class``."""
        ...

    def wait(self, coro: Coroutine[Any, Any, T], deadline: Deadline) -> T:
        """Run a coroutine on the process's one event loop and return its result; ``TimeoutError`` at the deadline."""
        ...


class Plugin(ABC, Generic[C]):
    """The base of every kind. A plugin is constructed once per process and must be thread-safe.

    ``api`` names the interface version that the author wrote against (``"scorer/1.0"``); it has no default on purpose.
    ``Config`` validates the plugin's table in the suite; without one the table must be empty.
    """

    api: ClassVar[str]
    Config: ClassVar[type[BaseModel] | None] = None
    capabilities: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, config: C, host: Host) -> None:
        self.config = config
        self.host = host

    def uses(self) -> Sequence[str]:
        """Name the other plugins that this one will ask the host for, so that they are planned and recorded."""
        return ()

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Say before the first trial what would keep the plugin from working. Never raises."""
        return ()

    def start(self, deadline: Deadline) -> None:
        """Prepare once per process: pull an image here rather than in the first trial's time."""
        return

    def close(self, deadline: Deadline) -> None:
        """Release what :meth:`start` and the plugin's work acquired."""
        return
