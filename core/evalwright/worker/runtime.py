"""What all trials of a process share: plugins created once, the content store, the scratch directories, parsed gold."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from evalwright.errors import PluginFailed, StoreError
from evalwright.interfaces import Deadline
from evalwright.judging import Judging, Limits, judge_secrets
from evalwright.model import Manifest, PluginTable, ScorerEntry, TrialSpec
from evalwright.prices import PriceTable
from evalwright.redaction import Redactor, credential_values
from evalwright.registry import PluginHost, Registry
from evalwright.rundir import SharedFile
from evalwright.spans import NO_SPANS, Spans
from evalwright.store import CachedStore, DirectoryStore
from evalwright.worker.gold import GoldCases
from evalwright.worker.lock import lock_of
from evalwright.worker.manifests import ManifestTexts
from evalwright.worker.meter import Meter
from evalwright.workspace import Clone, Cloner, Fixture, Scratch, TrialPlace

if TYPE_CHECKING:
    from evalwright.interfaces import Judge, Plugin, Runner, Sandbox, Scorer, Service, Store, TranscriptParser

__all__ = ["Plugins", "Runtime"]

K = TypeVar("K")
V = TypeVar("V")

_ENVIRONMENT: Mapping[bytes, bytes] = getattr(os.environb, "_data", os.environb)
"""What lies behind ``os.environ``, which looks at each variable again whenever it is copied."""

START_SECONDS = 600.0
CLOSE_SECONDS = 30.0


class Plugins:
    """The plugins of one set of tables, started, and what hides the secrets that they and their trials can know."""

    def __init__(
        self, tables: Mapping[str, Any], registry: Registry, limits: Limits | None = None, judge_cache: Path | None = None
    ) -> None:
        self.registry = registry
        named = {
            section: {name: PluginTable.from_json(table) for name, table in tables.get(section, {}).items()}
            for section in ("sandboxes", "services", "judges")
        }
        self._prices = PriceTable.from_json(tables.get("prices", ()))
        judging = Judging(named["judges"], limits or Limits(), judge_cache, self._prices)
        self.host = PluginHost(self.registry, named, {"judge": judging.make})
        runner, sandbox = PluginTable.from_json(tables["runner"]), PluginTable.from_json(tables["sandbox"])
        self.runner: Runner[Any] = self._create("runner", runner)
        self.sandbox: Sandbox[Any] = self._create("sandbox", sandbox)
        entries = [ScorerEntry.from_json(record) for record in tables["scorers"]]
        self.scorers: list[tuple[ScorerEntry, Scorer[Any]]] = [
            (entry, self._create("scorer", entry.table)) for entry in entries
        ]
        self.services: dict[str, Service[Any]] = {name: self.host.create(f"services.{name}") for name in named["services"]}
        self._agent: Mapping[str, Any] = tables["agent"]
        self._transcript: Mapping[str, Any] = self._agent.get("transcript") or {}
        parser = PluginTable.from_json(self._transcript["parser"]) if self._transcript else None
        self.parser: TranscriptParser[Any] | None = self._create("transcript", parser) if parser else None
        asked = (reference for _, scorer in self.scorers for reference in scorer.uses())
        self.judges: list[Judge[Any]] = list(self.host.reach("judges", asked).values())
        deadline = Deadline.after(START_SECONDS)
        for plugin in self.all():
            for problem in plugin.check("worker"):
                if problem.fatal:
                    raise PluginFailed(problem.message, hint=problem.hint, **problem.details)
            plugin.start(deadline)
        self._judge_tables: Mapping[str, Any] = tables.get("judges", {})
        self._hidden: tuple[dict[bytes, bytes], Redactor] | None = None

    @property
    def redactor(self) -> Redactor:
        """Return what hides the secrets of this process's environment as it is now; made anew only when that has changed."""
        environment = dict(_ENVIRONMENT)
        if self._hidden is None or self._hidden[0] != environment:
            self._hidden = environment, _redactor(self._agent, self._judge_tables)
        return self._hidden[1]

    def all(self) -> list[Plugin[Any]]:
        """Return every plugin."""
        parsers = [self.parser] if self.parser else []
        beside = [*self.services.values(), *self.judges]
        return [self.runner, self.sandbox, *parsers, *(scorer for _, scorer in self.scorers), *beside]

    def meter(self, exchange: Path) -> Meter:
        """Return what watches one trial's consumption; ``exchange`` is its exchange directory on this host."""
        return Meter(
            limits=self._agent.get("limits"),
            prices=self._prices,
            parser=self.parser,
            path=self._transcript.get("path"),
            exchange=exchange,
        )

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


class Once(Generic[K, V]):
    """Values that are made once each, by the first thread that asks; whoever finds one made does not wait for a lock."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._made: dict[K, V] = {}

    def get(self, key: K, make: Callable[[], V]) -> V:
        """Return the value of a key, made now if it is not yet."""
        try:
            return self._made[key]
        except KeyError:
            with self._lock:
                if key not in self._made:
                    self._made[key] = make()
                return self._made[key]

    def clear(self) -> list[V]:
        """Forget all values and return them."""
        with self._lock:
            made = list(self._made.values())
            self._made.clear()
            return made


class Runtime:
    """The shared state of one process. Thread-safe."""

    def __init__(self) -> None:
        self._turns: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in range(len(os.sched_getaffinity(0))):
            self._turns.put(number)
        self._limits = Limits()
        self._stores: Once[str | Store, DirectoryStore] = Once()
        self._registries: Once[Path, Registry] = Once()
        self._suites: Once[str, Path] = Once()
        self._scratch: Once[str | None, Scratch] = Once()
        self._cloners: Once[str, Cloner] = Once()
        self._plugins: Once[str, Plugins] = Once()
        self._locks: Once[str, str] = Once()
        self._trees: Once[str, Manifest] = Once()
        self._fixtures: Once[tuple[Path, str], Fixture] = Once()
        self._texts: Once[tuple[str, Redactor], ManifestTexts] = Once()
        self._documents: Once[tuple[Path, str, str, Redactor], SharedFile] = Once()
        self._cases: Once[str, GoldCases] = Once()

    @contextlib.contextmanager
    def turn(self, spans: Spans = NO_SPANS) -> Generator[None]:
        """Let as many trials as there are processors do work of their own at once; the others wait without getting in the way.

        Hundreds of threads that all want the interpreter spend more time on handing it over than on the work. Nothing that
        waits for a command belongs into the block.
        """
        with spans.span("turn"):
            token = self._turns.get()
        try:
            yield
        finally:
            self._turns.put(token)

    def plugins(self, spec: TrialSpec, store: DirectoryStore) -> Plugins:
        """Return the plugins of a spec's tables, created and started on first use."""

        def make() -> Plugins:
            cache = Path(spec.judge_cache) if spec.judge_cache else None
            return Plugins(spec.tables, self._registry(spec, store), self._limits, cache)

        return self._plugins.get(_key(spec), make)

    def lock(self, spec: TrialSpec, store: DirectoryStore) -> str:
        """Return the digest of the versions that would carry a spec out here."""
        return self._locks.get(_key(spec), lambda: lock_of(spec.tables, self._registry(spec, store)))

    def scratch(self, spec: TrialSpec) -> Scratch:
        """Return the scratch directories at the place that the spec wants."""
        base = spec.workspaces
        return self._scratch.get(base, lambda: Scratch(Path(base) if base else None))

    def clone(self, spec: TrialSpec, store: DirectoryStore, place: TrialPlace) -> Clone:
        """Fill the workspace of a place with the fixture."""
        return self._cloners.get(spec.clone, lambda: Cloner(spec.clone)).clone(self.fixture(spec, store), place)

    def fixture(self, spec: TrialSpec, store: DirectoryStore) -> Fixture:
        """Return the fixture of a trial."""
        digest = spec.fixture_digest
        key = store.root, digest
        return self._fixtures.get(key, lambda: Fixture(digest, self.tree(store, digest), store.verified))

    def manifest_bytes(
        self, spec: TrialSpec, store: DirectoryStore, manifest: Manifest, redactor: Redactor
    ) -> bytes | SharedFile:
        """Return the document of a manifest that may share entries with the trial's fixture.

        That of the fixture itself, if it is large, is one file for all trials of a run.
        """
        fixture = self.fixture(spec, store)
        if fixture.is_small:
            return ManifestTexts(Manifest(), redactor).document(manifest)
        key = fixture.digest, redactor
        texts = self._texts.get(key, lambda: ManifestTexts(fixture.manifest, redactor))
        if manifest is not fixture.manifest:
            return texts.document(manifest)
        return self._documents.get((store.root, spec.run_id, *key), lambda: SharedFile(texts.document(manifest)))

    def store(self, spec: TrialSpec, given: Store | None) -> DirectoryStore:
        """Return the store of a trial as a directory of this machine."""
        if isinstance(given, DirectoryStore):
            return given
        if given is not None:
            return self._stores.get(given, lambda: CachedStore(self._directory(spec), given))
        path = spec.store
        if path is None:
            raise StoreError("this worker has no content store", hint="name one with --store")
        return self._stores.get(path, lambda: DirectoryStore(Path(path)))

    def tree(self, store: DirectoryStore, digest: str) -> Manifest:
        """Return a tree's manifest, read once."""
        return self._trees.get(digest, lambda: store.tree(digest))

    def gold_case(self, store: DirectoryStore, spec: TrialSpec) -> dict[str, Any]:
        """Return the full case from the gold tree."""
        name, gold = spec.tables.get("cases_file", "cases.jsonl"), spec.gold_digest
        return self._cases.get(gold, lambda: GoldCases(store, self.tree(store, gold), name)).case(spec.case_id, spec.line)

    def close(self) -> None:
        """Close all plugins and files, and remove the scratch directories."""
        for document in self._documents.clear():
            document.close()
        for plugins in self._plugins.clear():
            plugins.close()
        for scratch in self._scratch.clear():
            scratch.close()

    def _registry(self, spec: TrialSpec, store: DirectoryStore) -> Registry:
        directory = Path(spec.suite_directory) if spec.suite_directory else self._suite(spec, store)
        return self._registries.get(directory, lambda: Registry(directory))

    def _suite(self, spec: TrialSpec, store: DirectoryStore) -> Path:
        """Return a directory with the suite's own files, gold left out, where the snapshot itself is out of reach."""
        tree = spec.suite_tree
        return Path() if tree is None else self._suites.get(tree, lambda: self._restored(spec, store, tree))

    def _restored(self, spec: TrialSpec, store: DirectoryStore, tree: str) -> Path:
        directory = self._directory(spec)
        store.restore(tree, directory)
        return directory

    def _directory(self, spec: TrialSpec) -> Path:
        """Make a directory for as long as this process lives."""
        return self.scratch(spec).place(0).workspace


def _redactor(agent: Mapping[str, Any], judges: Mapping[str, Any]) -> Redactor:
    """Return what hides the secrets of this worker's environment and of ``runner.env``, and the suite's patterns."""
    named = [*agent["redact_env_values"], *judge_secrets(judges.values())]
    values = credential_values(dict(os.environ) | dict(agent["env"]), named)
    return Redactor(values, agent["redact_patterns"])


def _key(spec: TrialSpec) -> str:
    """Return what tells the plugins of one spec from those of another."""
    return json.dumps([spec.tables, spec.suite_directory, spec.suite_tree, spec.judge_cache], sort_keys=True)
