"""A run's inputs in the content store: fixtures, diffs, the agent's own files, and gold apart from them."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

from evalwright.canonical import digest_json
from evalwright.model import Case, Manifest, Suite
from evalwright.rundir import Layout
from evalwright.store import DirectoryStore
from evalwright.workspace import digest_file

__all__ = ["Inputs", "left_out", "take_inputs", "with_agent_files", "without_gold"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """Digests of everything a trial needs. ``fixtures``, ``diffs`` and ``seeds`` are keyed by path inside the suite."""

    fixtures: Mapping[str, str]
    diffs: Mapping[str, str]
    gold: str
    files: str | None
    seeds: Mapping[str, str] = field(default_factory=dict[str, str])

    def as_json(self) -> dict[str, Any]:
        """Return all digests."""
        return asdict(self)

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Inputs:
        """Read a record written by :meth:`as_json`; raises ``KeyError`` or ``TypeError`` for another."""
        return Inputs(
            fixtures=dict(record["fixtures"]),
            diffs=dict(record["diffs"]),
            gold=record["gold"],
            files=record["files"],
            seeds=dict(record.get("seeds", {})),
        )

    def fixtures_hash(self) -> str:
        """Return the identity of all fixtures and diffs, and of the seeds of services where there are any."""
        held = [sorted(part.items()) for part in (self.fixtures, self.diffs, *([self.seeds] if self.seeds else []))]
        return digest_json(held)

    def hidden_hash(self, gold: Manifest, cases: Sequence[Case]) -> str:
        """Return the identity of hidden files, reference solutions and the agent's own files."""
        prefixes = tuple(
            f"{PurePosixPath(path)}/" for case in cases for path in (case.hidden, case.gold) if isinstance(path, str)
        )
        held = [[e.path, e.sha256, e.mode] for e in gold.entries if f"{e.path}/".startswith(prefixes)] if prefixes else []
        return digest_json([held, self.files])


def take_inputs(suite: Suite, cases: Sequence[Case], store: DirectoryStore, layout: Layout) -> Inputs:
    """Put everything that the trials of ``cases`` need into the store."""
    fixtures = {path: store.put_fixture(suite.directory / path) for path in sorted({case.workspace for case in cases})}
    return Inputs(
        fixtures=fixtures,
        diffs=_files(suite, {case.diff for case in cases if case.diff}, store),
        seeds=_files(suite, {path for case in cases for path in case.services.values()}, store),
        gold=store.put_tree(suite.directory, skip=left_out(suite, layout)),
        files=_agent_files(suite, store),
    )


def with_agent_files(inputs: Inputs, suite: Suite, store: DirectoryStore) -> Inputs:
    """Return the inputs with the agent's own files of one arm, which are in the store then."""
    return replace(inputs, files=_agent_files(suite, store))


def _files(suite: Suite, paths: Collection[str], store: DirectoryStore) -> dict[str, str]:
    """Put files into the store; return the digest of each by its path."""
    digests = {path: digest_file(suite.directory / path) for path in sorted(paths)}
    for path, digest in digests.items():
        store.put_file(suite.directory / path, digest)
    return digests


def left_out(suite: Suite, layout: Layout, *, fixtures: bool = True) -> Callable[[bytes], bool]:
    """Return what tells whether a path of the suite is left out of its snapshot.

    These are fixtures, which the store holds, unless ``fixtures`` is false, and results: who runs a suite from inside its own
    directory has them there.
    """
    held = {os.fsencode(str(PurePosixPath(case.workspace))) for case in suite.cases if fixtures}
    paths = held | layout.within(suite.directory)
    return lambda path: path in paths


def without_gold(suite: Suite) -> Callable[[bytes], bool]:
    """Return what tells whether a path of the suite is kept from workers until scoring, or sent by another way."""
    held = {case.workspace for case in suite.cases} | {suite.cases_file}
    held |= {
        path for case in suite.cases for path in (case.hidden, case.gold, *case.services.values()) if isinstance(path, str)
    }
    paths = {os.fsencode(str(PurePosixPath(path))) for path in held}
    return lambda path: path in paths


def _agent_files(suite: Suite, store: DirectoryStore) -> str | None:
    """Store ``runner.files`` as one tree in which each has its own name; a directory keeps what it holds."""
    files = suite.agent.files
    if not files:
        return None
    wanted = [os.fsencode(str(PurePosixPath(path))) for path in files]

    def outside(path: bytes) -> bool:
        return not any(path == f or path.startswith(f + b"/") or f.startswith(path + b"/") for f in wanted)

    return store.put_tree(suite.directory, skip=outside)
