"""A private project in which every place of gold holds a canary: the suite of the leak test."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright.audit.canaries import PLACES, token
from evalwright.canonical import is_object
from evalwright.coordinate.inputs import without_gold
from evalwright.errors import SuiteError
from evalwright.interfaces import Command
from evalwright.model import Case, Suite
from evalwright.processes import Supervisor
from evalwright.rundir import Layout, RunDirectory
from evalwright.suite.shape import AGENT_KEYS
from evalwright.workspace import copy_tree, digest_file, find_repositories

__all__ = ["ROLES", "Planted", "gold_digests"]

ROLES = ("finished", "graded", "spy")
AGENTS = "evalwright.audit.leak_agents"
OURS = frozenset({"timeout_seconds", "max_output_bytes", "redact_env_values", "redact_patterns", "transcript", "limits"})
PLACE = "leak-test"
SMALLEST_BYTES = 64
GIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Planted:
    """The directories of one leak test below ``root``, and the canaries' codes."""

    root: Path
    codes: Mapping[str, str]

    @property
    def layout(self) -> Layout:
        """Return the private project."""
        return Layout(self.root / "evals", self.root / "evals" / "runs")

    @property
    def run(self) -> RunDirectory:
        """Return where its only run lies."""
        return self.layout.run(PLACE)

    @property
    def suite(self) -> Path:
        """Return the directory of its only suite."""
        return self.layout.suites / PLACE

    @property
    def signals(self) -> Path:
        """Return the directory in which the three trials wait for one another."""
        return self.root / "signals"

    def case_id(self, role: str) -> str:
        """Return the id of a trial's case."""
        return f"{token(self.codes, 'case-id')}.{role}"

    def plant(self, suite: Suite, case: Case, outer: Layout, *, seconds: float, since: float) -> list[str]:
        """Write a suite of three cases like ``case``, in the place of the user's own gold a canary.

        ``outer`` is the project around it, whose results are left out. Return the places that this suite has.
        """
        for directory in (self.layout.runs, self.layout.store, self.signals):
            directory.mkdir(parents=True)
        gold = without_gold(suite)
        other = outer.within(suite.directory) | {b".git"}
        copy_tree(suite.directory, self.suite, skip=lambda path: path in other or gold(path), special=True)
        fixture = self.suite / case.workspace
        fixture.parent.mkdir(parents=True, exist_ok=True)
        copy_tree(suite.directory / case.workspace, fixture)
        repositories = find_repositories(fixture)
        for repository in repositories:
            self._commit(repository)
        for place in ("hidden", "gold"):
            (self.suite / PLACE / place).mkdir(parents=True)
            (self.suite / PLACE / place / "canary.txt").write_text(token(self.codes, place), encoding="utf-8")
        self._write(suite, case, seconds=seconds, since=since)
        own = [place for place in PLACES if place in self.codes and (repositories or place != "history")]
        return ["suite", *own]

    def _write(self, suite: Suite, case: Case, *, seconds: float, since: float) -> None:
        config = {
            "codes": dict(self.codes),
            "run": str(self.run.path),
            "store": str(self.layout.store),
            "signals": str(self.signals),
            "known": str(self.root / "known.json"),
            "seconds": seconds,
            "since": since,
        }
        runner = suite.document["runner"]
        shared = {key: runner[key] for key in AGENT_KEYS if key in runner and key not in OURS} if is_object(runner) else {}
        tables = {key: suite.document[key] for key in ("sandbox", "sandboxes") if key in suite.document}
        document: dict[str, Any] = {
            "schema_version": 2,
            "name": PLACE,
            "runner": {"use": f"{AGENTS}:LeakRunner", **shared, **config},
            "scorers": [{"use": f"{AGENTS}:LeakScorer", "id": "neighbour", **config}],
            **tables,
        }
        lines = [json.dumps(self._case(case, role)) for role in ROLES]
        (self.suite / "suite.json").write_text(json.dumps(document), encoding="utf-8")
        (self.suite / "cases.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        known = gold_digests(suite)
        (self.root / "known.json").write_text(json.dumps(known), encoding="utf-8")

    def _case(self, case: Case, role: str) -> dict[str, Any]:
        kept = {"workspace": case.workspace, "diff": case.diff, "sandbox": case.record.get("sandbox")}
        return {
            **{key: value for key, value in kept.items() if value},
            "id": self.case_id(role),
            "task": role,
            "expect": {"canary": token(self.codes, "expect")},
            "hidden": f"{PLACE}/hidden",
            "gold": f"{PLACE}/gold",
        }

    def _commit(self, repository: Path) -> None:
        """Add a commit that HEAD does not reach."""
        canary = token(self.codes, "history")
        script = (
            f"commit refs/heads/{PLACE}\ncommitter {PLACE} <{PLACE}@example.org> 0 +0000\n"
            f"data {len(canary)}\n{canary}\nM 644 inline canary.txt\ndata {len(canary)}\n{canary}\n"
        )
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CEILING_DIRECTORIES": str(repository.parent),
        }
        argv = ["git", "-c", "safe.directory=*", "fast-import", "--quiet"]
        command = Command(argv=argv, cwd=str(repository), env=environment, stdin=script.encode(), timeout=GIT_SECONDS)
        with Supervisor() as supervisor:
            done = supervisor.run(command)
        if done.exit_code != 0:
            why = done.spawn_error or done.stderr.text.strip()[-300:]
            raise SuiteError(f"no commit can be added to a copy of {repository.name}: {why}", hint="install or repair git")


def gold_digests(suite: Suite) -> dict[str, list[str]]:
    """Return the SHA-256 of every gold file of a suite by size in bytes: cases, hidden files, reference solutions, seeds.

    Very small files tell nothing and are left out; so is what a fixture shows anyway (:func:`_shown`).
    """
    found: dict[str, list[str]] = {}
    for _, digest, size in _files(suite.directory / suite.cases_file):
        found.setdefault(str(size), []).append(digest)
    shown = _shown(suite)
    for case in suite.cases:
        for _, digest, size in _gold(suite, case):
            if digest not in shown and size >= SMALLEST_BYTES and digest not in found.get(str(size), ()):
                found.setdefault(str(size), []).append(digest)
    return {size: sorted(digests) for size, digests in found.items()}


def _shown(suite: Suite) -> set[str]:
    """Return digests of gold files that are no secret: their case's fixture has the same content at the same path, so that
    they change nothing, or only the fixtures of other cases have it, as where one case begins with what another one ends.

    Content that lies elsewhere in its own case's fixture is a copy of the answer.
    """
    fixtures = {path: list(_files(suite.directory / path)) for path in {case.workspace for case in suite.cases}}
    shown: set[str] = set()
    copied: set[str] = set()
    for case in suite.cases:
        place = {name: digest for name, digest, _ in fixtures[case.workspace]}
        for name, digest, _ in _gold(suite, case):
            if place.get(name) == digest:
                shown.add(digest)
            elif digest in place.values():
                copied.add(digest)
    everywhere = {digest for files in fixtures.values() for _, digest, _ in files}
    return shown | (everywhere - copied)


def _gold(suite: Suite, case: Case) -> Iterator[tuple[str, str, int]]:
    for path in (case.hidden, case.gold, *case.services.values()):
        if isinstance(path, str):
            yield from _files(suite.directory / PurePosixPath(path))


def _files(path: Path) -> Iterator[tuple[str, str, int]]:
    """Yield relative path, bare SHA-256 and size of a file, or of each file below a directory; links are left out."""
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file() and not file.is_symlink():
            name = str(file.relative_to(path)) if file != path else ""
            yield name, digest_file(file).removeprefix("sha256:"), file.stat().st_size
