"""Tell every observer about an event: pluggy lives here and in ``hookspecs``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pluggy

from evalwright.hookspecs import HookSpecs

__all__ = ["Observers"]

Complain = Callable[[str], None]


class Observers:
    """The observers of one run. An observer that fails is complained about once per hook and never breaks the run."""

    def __init__(self, plugins: Iterable[tuple[str, object]], complain: Complain) -> None:
        self._manager = pluggy.PluginManager("evalwright")
        self._manager.add_hookspecs(HookSpecs)
        self._complain = complain
        self._failed: set[str] = set()
        for name, plugin in plugins:
            self._register(name, plugin)

    def call(self, hook: str, **arguments: Any) -> None:
        """Call one hook on every observer."""
        for implementation in getattr(self._manager.hook, hook).get_hookimpls():
            self._call(hook, implementation, arguments)

    def _register(self, name: str, plugin: object) -> None:
        if self._manager.is_registered(plugin):
            return
        try:
            self._manager.register(plugin, name=self._free(name))
            self._manager.check_pending()
        except (pluggy.PluginValidationError, ValueError) as error:
            if self._manager.is_registered(plugin):
                self._manager.unregister(plugin)
            self._complain(f"observer {name} is left out: {error}")

    def _free(self, name: str) -> str:
        """Return the name, with a number behind it where another observer has it."""
        names = [name, *(f"{name}-{number}" for number in range(2, 100))]
        return next(candidate for candidate in names if not self._manager.has_plugin(candidate))

    def _call(self, hook: str, implementation: pluggy.HookImpl, arguments: Mapping[str, Any]) -> None:
        try:
            implementation.function(*(arguments[name] for name in implementation.argnames))
        except (Exception, SystemExit) as error:
            place = f"{implementation.plugin_name}.{hook}"
            if place not in self._failed:
                self._failed.add(place)
                self._complain(f"observer {place} failed: {type(error).__name__}: {error}")
