"""How trials reach their workers and their evidence comes back: on a shared file system, or through the queue's store."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright.coordinate.inputs import Inputs, without_gold
from evalwright.coordinate.plan import Plan
from evalwright.errors import StoreError
from evalwright.interfaces import Job, Outcome, Store
from evalwright.model import Case, TrialSpec
from evalwright.processes import ProcessJournal
from evalwright.rundir import Layout, RunDirectory, changed_artifacts, disk_errors, sealed_digests
from evalwright.rundir.documents import render_compact
from evalwright.store import CachedStore, DirectoryStore, transfer
from evalwright.workspace import digest_file, remove_tree

__all__ = ["Delivery"]


class Delivery:
    """The way of one run's trials out and back. ``remote`` is the queue's store, ``None`` where workers share the disk."""

    def __init__(self, run: RunDirectory, layout: Layout, plan: Plan, inputs: Inputs, remote: Store | None) -> None:
        self.store = DirectoryStore(layout.store.resolve())
        self._run = run
        self._plan = plan
        self._inputs = inputs
        self._remote = remote
        self._attempts = run.attempts.resolve()
        if remote is None:
            with disk_errors(run.journal):
                ProcessJournal(run.journal).make()
                self._attempts.mkdir(exist_ok=True)
            own = {"store": self.store.root, "suite_directory": run.snapshot.resolve(), "journal": run.journal.resolve()}
            own["judge_cache"] = layout.evals.resolve() / "cache" / "judge"
            self._places = {name: str(path) for name, path in own.items()}
        else:
            self._places = {"suite_tree": self.store.put_tree(run.snapshot, skip=without_gold(plan.suite))}

    def spec(self, case: Case, attempt: int, former: Sequence[dict[str, Any]] = ()) -> TrialSpec:
        """Return the spec of one attempt."""
        return self._plan.spec(
            case, attempt, run_id=self._run.path.name, inputs=self._inputs, former_attempts=tuple(former), **self._places
        )

    def job(self, spec: TrialSpec) -> Job:
        """Return the job of an attempt, after its inputs are where its worker finds them."""
        bundle = self._run.attempt(spec.case_id, spec.attempt)
        if self._remote is not None:
            self._send(spec, self._remote)
        return Job(
            key=f"{spec.run_id}/{spec.case_id}/{spec.attempt}",
            spec=spec.to_bytes(),
            lock=self._plan.lock,
            bundle=self._attempts / bundle.name if self._remote is None else None,
        )

    def fetch(self, spec: TrialSpec, outcome: Outcome, seal: str) -> None:
        """Bring an attempt's bundle here and check it.

        Raises ``StoreError`` when it is not the one that was sealed, or cannot be had.
        """
        bundle = self._run.attempt(spec.case_id, spec.attempt)
        if self._remote is not None and outcome.bundle is not None:
            self._receive(outcome.bundle, bundle, self._remote)
        try:
            whole = digest_file(f"{bundle}/bundle.json") == seal
        except OSError as error:
            raise StoreError(f"the bundle of {outcome.key} is missing: {error.strerror}") from error
        if self._remote is not None:
            whole = whole and not changed_artifacts(bundle, sealed_digests(bundle) or {})
        if not whole:
            raise StoreError(f"the bundle of {outcome.key} is not the one that its worker sealed")

    def settle(self, spec: TrialSpec, state: Mapping[str, Any]) -> None:
        """Make an attempt's bundle, with this ``state.json``, the evidence of its case."""
        bundle, place = self._run.attempt(spec.case_id, spec.attempt), self._run.case(spec.case_id)
        with disk_errors(place):
            with open(f"{bundle}/state.json", "wb", buffering=0) as file:
                file.write(render_compact(state).encode())
            try:
                os.rename(bundle, place)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                remove_tree(place, inside=self._run.cases)
                os.rename(bundle, place)

    def take_back(self, spec: TrialSpec) -> None:
        """Undo :meth:`settle` for an attempt whose result did not become durable, so that it can be taken again."""
        bundle, place = self._run.attempt(spec.case_id, spec.attempt), self._run.case(spec.case_id)
        if place.exists() and not bundle.exists():
            with disk_errors(place):
                self._attempts.mkdir(exist_ok=True)
                os.rename(place, bundle)

    def discard(self, case_id: str, attempt: int) -> None:
        """Remove what an attempt that does not count has written."""
        remove_tree(self._run.attempt(case_id, attempt), inside=self._run.path)

    def _send(self, spec: TrialSpec, remote: Store) -> None:
        for tree in (spec.suite_tree, spec.fixture_digest, spec.files_digest, spec.gold_digest):
            if tree:
                transfer(tree, self.store, remote)
        files = {digest for digest in (spec.diff_digest, *spec.seeds.values()) if digest}
        for digest in sorted(remote.missing(files)):
            with self.store.open(digest) as file:
                remote.put(digest, file)

    def _receive(self, tree: str, bundle: Path, remote: Store) -> None:
        with disk_errors(bundle):
            remove_tree(bundle, inside=self._run.path)
            bundle.mkdir(parents=True)
            with tempfile.TemporaryDirectory(dir=self._run.attempts, prefix=".incoming-") as place:
                cache = CachedStore(Path(place), remote)
                if any(_climbs(entry.path) for entry in cache.tree(tree).entries):
                    raise StoreError(f"the bundle {tree} holds a path that leads out of it")
                cache.restore(tree, bundle)


def _climbs(path: str) -> bool:
    return path.startswith("/") or ".." in PurePosixPath(path).parts
