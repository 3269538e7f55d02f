"""Runners and sandboxes of a run, made from their tables once, started and closed with the site."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from evalwright import __version__
from evalwright.errors import PluginError
from evalwright.interfaces import Deadline, Plugin, Runner, Sandbox
from evalwright.registry import PluginHost, Registry
from evalwright_plugins.workflow.model.config import WorkConfig

__all__ = ["Plugins"]

START_SECONDS = 120.0
CLOSE_SECONDS = 10.0


class Plugins:
    """Makes plugins by reference; relative files are taken from ``base``."""

    def __init__(self, base: Path) -> None:
        self._registry = Registry(base)
        self._host = PluginHost(self._registry)
        self._made: dict[tuple[str, str], Plugin[Any]] = {}

    def runner(self, name: str, table: Mapping[str, Any]) -> Runner[Any]:
        """Return the worker of a table; ``use`` is ``command`` where it is not said. Raises ``PluginError``."""
        runner: Runner[Any] = self._plugin("runner", name, {"use": "command", **table})
        return runner

    def sandbox(self, table: Mapping[str, Any]) -> Sandbox[Any]:
        """Return the sandbox of a table. Raises ``PluginError``."""
        sandbox: Sandbox[Any] = self._plugin("sandbox", "", table)
        return sandbox

    def versions(self, config: WorkConfig) -> dict[str, str]:
        """Return which version of which distribution each plugin of a run comes from, and whether it is there at all."""
        used = [("runner", str(table.get("use", "command"))) for table in config.workers.values()]
        found = {
            f"{kind} {use}": self._version(kind, use) for kind, use in [("sandbox", str(config.sandbox.get("use"))), *used]
        }
        return {"evalwright": __version__, **found}

    def _version(self, kind: str, use: str) -> str:
        try:
            loaded = self._registry.load(kind, use)
        except PluginError:
            return "none"
        return f"{loaded.distribution} {loaded.version}"

    def close(self) -> None:
        """Release everything that was made."""
        for plugin in reversed(self._made.values()):
            plugin.close(Deadline.after(CLOSE_SECONDS))
        self._made.clear()
        self._host.close()

    def __enter__(self) -> Plugins:
        """Return self."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close."""
        self.close()

    def _plugin(self, kind: str, name: str, table: Mapping[str, Any]) -> Any:
        if (kind, name) not in self._made:
            config = {key: value for key, value in table.items() if key != "use"}
            plugin: Plugin[Any] = self._registry.create(kind, str(table["use"]), config, self._host)
            fatal = [problem for problem in plugin.check("worker") if problem.fatal]
            if fatal:
                raise PluginError(f"{kind} {table['use']}: {fatal[0].message}", hint=fatal[0].hint)
            plugin.start(Deadline.after(START_SECONDS))
            self._made[kind, name] = plugin
        return self._made[kind, name]
