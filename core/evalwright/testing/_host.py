"""A host for tests: plugins given by reference, everything else as the core does it."""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from evalwright.interfaces import Deadline
from evalwright.registry import PluginHost, Registry

__all__ = ["FakeHost"]

T = TypeVar("T")


class FakeHost:
    """Answers :meth:`create` from ``plugins``, then from what is installed. A context manager that stops its loop."""

    def __init__(self, plugins: Mapping[str, Any] | None = None) -> None:
        self.plugins = dict(plugins or {})
        self._host = PluginHost(Registry())

    def create(self, reference: str) -> Any:
        """Return the plugin given for that reference, else an installed one: ``sandbox:subprocess``."""
        return self.plugins[reference] if reference in self.plugins else self._host.create(reference)

    def file(self, name: str) -> Path:
        """Return the path of a file, taken from the working directory."""
        return self._host.file(name)

    def wait(self, coro: Coroutine[Any, Any, T], deadline: Deadline) -> T:
        """Run a coroutine on one event loop and return its result; ``TimeoutError`` at the deadline."""
        return self._host.wait(coro, deadline)

    def __enter__(self) -> FakeHost:
        """Return self."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Stop the loop."""
        self._host.close()
