"""What all trials of a process share: plugins created once, the content store, the scratch directories, parsed gold."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.errors import PluginFailed, StoreError
from evalwright.interfaces import Deadline, Plugin, Runner, Sandbox, Scorer, Store
from evalwright.model import Manifest, PluginTable, ScorerEntry, TrialSpec
from evalwright.registry import PluginHost, Registry
from evalwright.store import DirectoryStore
from evalwright.suite.read import case_lines
from evalwright.workspace import Scratch

__all__ = ["Plugins", "Runtime"]

START_SECONDS = 600.0
CLOSE_SECONDS = 30.0


class Plugins:
    """The plugins of one set of tables, started."""

    def __init__(self, tables: Mapping[str, Any], directory: Path) -> None:
        self.registry = Registry(directory)
        named = {name: PluginTable.from_json(table) for name, table in tables.get("sandboxes", {}).items()}
        self.host = PluginHost(self.registry, {"sandboxes": named})
        runner, sandbox = PluginTable.from_json(tables["runner"]), PluginTable.from_json(tables["sandbox"])
        self.runner: Runner[Any] = self._create("runner", runner)
        self.sandbox: Sandbox[Any] = self._create("sandbox", sandbox)
        entries = [ScorerEntry.from_json(record) for record in tables["scorers"]]
        self.scorers: list[tuple[ScorerEntry, Scorer[Any]]] = [
            (entry, self._create("scorer", entry.table)) for entry in entries
        ]
        deadline = Deadline.after(START_SECONDS)
        for plugin in self.all():
            for problem in plugin.check("worker"):
                if problem.fatal:
                    raise PluginFailed(problem.message, hint=problem.hint, **problem.details)
            plugin.start(deadline)

    def all(self) -> list[Plugin[Any]]:
        """Return every plugin."""
        return [self.runner, self.sandbox, *(scorer for _, scorer in self.scorers)]

    def origin(self, kind: str, use: str) -> str:
        """Return the distribution behind a plugin, for the record of a failure."""
        loaded = self.registry.load(kind, use)
        return f"{loaded.distribution} {loaded.version}"

    def close(self) -> None:
        """Close every plugin; one that fails does not keep the others open."""
        deadline = Deadline.after(CLOSE_SECONDS)
        for plugin in self.all():
            with contextlib.suppress(Exception):
                plugin.close(deadline)
        self.host.close()

    def _create(self, kind: str, table: PluginTable) -> Any:
        return self.registry.create(kind, table.use, table.config, self.host)


class Runtime:
    """The shared state of one process. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stores: dict[str, DirectoryStore] = {}
        self._scratch: dict[str | None, Scratch] = {}
        self._plugins: dict[str, Plugins] = {}
        self._trees: dict[str, Manifest] = {}
        self._cases: dict[str, dict[str, dict[str, Any]]] = {}

    def plugins(self, spec: TrialSpec) -> Plugins:
        """Return the plugins of a spec's tables, created and started on first use."""
        key = json.dumps([spec.tables, spec.suite_directory], sort_keys=True)
        with self._lock:
            if key not in self._plugins:
                self._plugins[key] = Plugins(spec.tables, Path(spec.suite_directory or "."))
            return self._plugins[key]

    def scratch(self, spec: TrialSpec) -> Scratch:
        """Return the scratch directories at the place that the spec wants."""
        with self._lock:
            if spec.workspaces not in self._scratch:
                self._scratch[spec.workspaces] = Scratch(Path(spec.workspaces) if spec.workspaces else None)
            return self._scratch[spec.workspaces]

    def store(self, spec: TrialSpec, given: Store | None) -> DirectoryStore:
        """Return the store of a trial as a directory of this machine."""
        if isinstance(given, DirectoryStore):
            return given
        if given is None and spec.store is not None:
            with self._lock:
                return self._stores.setdefault(spec.store, DirectoryStore(Path(spec.store)))
        raise StoreError("this worker has no content store", hint="start it on the coordinator's file system")

    def tree(self, store: DirectoryStore, digest: str) -> Manifest:
        """Return a tree's manifest, read once."""
        with self._lock:
            if digest not in self._trees:
                self._trees[digest] = store.tree(digest)
            return self._trees[digest]

    def gold_case(self, store: DirectoryStore, spec: TrialSpec) -> dict[str, Any]:
        """Return the full case from the gold tree, parsed once."""
        tree = self.tree(store, spec.gold_digest)
        with self._lock:
            if spec.gold_digest not in self._cases:
                name = spec.tables.get("cases_file", "cases.jsonl")
                digest = next(entry.sha256 for entry in tree.entries if entry.path == name)
                with store.verified(digest or "").open("rb") as file:
                    self._cases[spec.gold_digest] = _by_id(file.read())
            return self._cases[spec.gold_digest][spec.case_id]

    def close(self) -> None:
        """Close all plugins and remove the scratch directories."""
        with self._lock:
            for plugins in self._plugins.values():
                plugins.close()
            self._plugins.clear()
            for scratch in self._scratch.values():
                scratch.close()
            self._scratch.clear()


def _by_id(data: bytes) -> dict[str, dict[str, Any]]:
    from evalwright.canonical import digest_json

    found: dict[str, dict[str, Any]] = {}
    for _, text in case_lines(data):
        record = json.loads(text or "")
        record["id"] = record.get("id") or digest_json(record)[7:19]
        found[record["id"]] = record
    return found
