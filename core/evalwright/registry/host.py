"""What plugins get from the core: other plugins by reference, and one event loop for asynchronous SDKs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from evalwright.errors import PluginInvalid, PluginNotFound
from evalwright.interfaces import Deadline
from evalwright.model import PluginTable

if TYPE_CHECKING:
    import asyncio

    from evalwright.registry.loading import Registry

__all__ = ["PluginHost"]

T = TypeVar("T")
Maker = Callable[[str, PluginTable, Callable[[PluginTable], Any]], Any]
NAMED_KINDS = {"sandboxes": "sandbox", "judges": "judge", "services": "service"}


class PluginHost:
    """The host of one process. Named tables (``sandboxes.grader``) are created once and shared.

    ``makers`` make plugins of a kind in a way of their own: they get the name, its table, and what creates a plugin from one.
    """

    def __init__(
        self,
        registry: Registry,
        named: Mapping[str, Mapping[str, PluginTable]] | None = None,
        makers: Mapping[str, Maker] | None = None,
    ) -> None:
        self._registry = registry
        self._named = named or {}
        self._makers = makers or {}
        self._creating: set[str] = set()
        self._created: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._loop: asyncio.AbstractEventLoop | None = None

    def with_tables(self, section: str, tables: Mapping[str, PluginTable]) -> PluginHost:
        """Return a host of its own with other tables in one section."""
        return PluginHost(self._registry, {**self._named, section: tables}, self._makers)

    def create(self, reference: str) -> Any:
        """Return the plugin behind ``sandboxes.NAME``, ``judges.NAME``, ``services.NAME`` or ``kind:reference``, a runner too.

        Raises ``PluginNotFound`` naming the tables that exist, ``PluginInvalid`` for one that needs itself.
        """
        with self._lock:
            if reference in self._creating:
                raise PluginInvalid(f"{reference} needs itself to work", hint="name another one")
            if reference not in self._created:
                self._creating.add(reference)
                try:
                    self._created[reference] = self._made(reference)
                finally:
                    self._creating.remove(reference)
            return self._created[reference]

    def resolve(self, reference: str) -> tuple[str, str]:
        """Return kind and reference of what :meth:`create` would create. Raises ``PluginNotFound``."""
        kind, table = self._table(reference)
        return kind, table.use

    def reach(self, section: str, references: Iterable[str]) -> dict[str, Any]:
        """Create the plugins of a section behind references, and those that these use in turn; return them by name.

        References to other sections are passed by. Raises as :meth:`create`.
        """
        found: dict[str, Any] = {}
        waiting = list(references)
        while waiting:
            reference = waiting.pop(0)
            of, _, name = reference.partition(".")
            if of == section and name not in found:
                found[name] = self.create(reference)
                waiting += found[name].uses()
        return found

    def file(self, name: str) -> Path:
        """Return the path of a file of the suite."""
        return (self._registry.base / name).resolve()

    def wait(self, coro: Coroutine[Any, Any, T], deadline: Deadline) -> T:
        """Run a coroutine on the process's one loop; cancels it and raises ``TimeoutError`` at the deadline."""
        import asyncio
        import concurrent.futures

        future = asyncio.run_coroutine_threadsafe(coro, self._running_loop())
        try:
            return future.result(deadline.remaining)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise TimeoutError("the deadline passed before the answer came") from None

    def close(self) -> None:
        """Stop the loop."""
        if self._loop:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def _made(self, reference: str) -> Any:
        kind, table = self._table(reference)

        def create(own: PluginTable) -> Any:
            return self._registry.create(kind, own.use, own.config, self)

        maker = self._makers.get(kind)
        return maker(reference.partition(".")[2] or reference, table, create) if maker else create(table)

    def _table(self, reference: str) -> tuple[str, PluginTable]:
        section, _, name = reference.partition(".")
        tables = self._named.get(section, {})
        if section in NAMED_KINDS and name in tables:
            return NAMED_KINDS[section], tables[name]
        kind, colon, rest = reference.partition(":")
        if colon and kind in (*NAMED_KINDS.values(), "runner"):
            return kind, PluginTable(use=rest)
        known = sorted(f"{section}.{name}" for section, entries in self._named.items() for name in entries)
        raise PluginNotFound(f'the suite has no table "{reference}"', hint=f"it has: {', '.join(known) or 'none'}")

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        import asyncio

        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._loop.run_forever, name="evalwright-loop", daemon=True).start()
            return self._loop
