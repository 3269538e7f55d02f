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
from evalwright.store import CachedStore, DirectoryStore
from evalwright.suite.read import case_lines
from evalwright.worker.lock import lock_of
from evalwright.workspace import Scratch

__all__ = ["Plugins", "Runtime"]

START_SECONDS = 600.0
CLOSE_SECONDS = 30.0


class Plugins:
    """The plugins of one set of tables, started."""

    def __init__(self, tables: Mapping[str, Any], registry: Registry) -> None:
        self.registry = registry
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
        self._stores: dict[str | Store, DirectoryStore] = {}
        self._registries: dict[Path, Registry] = {}
        self._suites: dict[str, Path] = {}
        self._scratch: dict[str | None, Scratch] = {}
        self._plugins: dict[str, Plugins] = {}
        self._locks: dict[str, str] = {}
        self._trees: dict[str, Manifest] = {}
        self._cases: dict[str, dict[str, dict[str, Any]]] = {}

    def plugins(self, spec: TrialSpec, store: DirectoryStore) -> Plugins:
        """Return the plugins of a spec's tables, created and started on first use."""
        key = _key(spec)
        with self._lock:
            if key not in self._plugins:
                self._plugins[key] = Plugins(spec.tables, self._registry(spec, store))
            return self._plugins[key]

    def lock(self, spec: TrialSpec, store: DirectoryStore) -> str:
        """Return the digest of the versions that would carry a spec out here."""
        key = _key(spec)
        with self._lock:
            if key not in self._locks:
                self._locks[key] = lock_of(spec.tables, self._registry(spec, store))
            return self._locks[key]

    def scratch(self, spec: TrialSpec) -> Scratch:
        """Return the scratch directories at the place that the spec wants."""
        with self._lock:
            return self._scratch_at(spec.workspaces)

    def store(self, spec: TrialSpec, given: Store | None) -> DirectoryStore:
        """Return the store of a trial as a directory of this machine."""
        if isinstance(given, DirectoryStore):
            return given
        key = spec.store if given is None else given
        if key is None:
            raise StoreError("this worker has no content store", hint="name one with --store")
        with self._lock:
            if key not in self._stores:
                self._stores[key] = (
                    DirectoryStore(Path(key)) if isinstance(key, str) else CachedStore(self._directory(spec), key)
                )
            return self._stores[key]

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

    def _registry(self, spec: TrialSpec, store: DirectoryStore) -> Registry:
        directory = Path(spec.suite_directory) if spec.suite_directory else self._suite(spec, store)
        return self._registries.setdefault(directory, Registry(directory))

    def _suite(self, spec: TrialSpec, store: DirectoryStore) -> Path:
        """Return a directory with the suite's own files, gold left out, where the snapshot itself is out of reach."""
        if spec.suite_tree is None:
            return Path()
        if spec.suite_tree not in self._suites:
            directory = self._directory(spec)
            store.restore(spec.suite_tree, directory)
            self._suites[spec.suite_tree] = directory
        return self._suites[spec.suite_tree]

    def _directory(self, spec: TrialSpec) -> Path:
        """Make a directory for as long as this process lives."""
        return self._scratch_at(spec.workspaces).place(0).workspace

    def _scratch_at(self, base: str | None) -> Scratch:
        if base not in self._scratch:
            self._scratch[base] = Scratch(Path(base) if base else None)
        return self._scratch[base]


def _key(spec: TrialSpec) -> str:
    """Return what tells the plugins of one spec from those of another."""
    return json.dumps([spec.tables, spec.suite_directory, spec.suite_tree], sort_keys=True)


def _by_id(data: bytes) -> dict[str, dict[str, Any]]:
    from evalwright.canonical import digest_json

    found: dict[str, dict[str, Any]] = {}
    for _, text in case_lines(data):
        record = json.loads(text or "")
        record["id"] = record.get("id") or digest_json(record)[7:19]
        found[record["id"]] = record
    return found
