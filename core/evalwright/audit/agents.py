"""The two agents of an audit: one that does nothing, and one that knows the answer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict

from evalwright.canonical import is_object
from evalwright.errors import TrialError
from evalwright.interfaces import Command, Runner, RunnerContext, Session
from evalwright.model import Completed, Entry, RunnerResult, TrialView
from evalwright.store import DirectoryStore

__all__ = ["GoldConfig", "GoldRunner", "NoOpRunner"]

APPLY_SECONDS = 60.0
DELETED = ".deleted"


class NoOpRunner(Runner[None]):
    """Exits with 0 and changes nothing."""

    api = "runner/1.0"

    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        """Do nothing."""
        return RunnerResult(completed=Completed(exit_code=0), output="")


class GoldConfig(BaseModel):
    """``solutions`` maps each case to its ``gold``; ``tree`` is the digest of the tree in ``store`` that holds the files."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    store: str
    tree: str
    solutions: dict[str, Any]


class GoldRunner(Runner[GoldConfig]):
    """Puts the reference solution in place: an overlay directory, a patch, or the right answer as text."""

    api = "runner/1.0"
    Config = GoldConfig

    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        """Apply the case's gold. Raises ``TrialError`` when it cannot be applied."""
        gold = self.config.solutions[trial.id]
        if is_object(gold):
            return RunnerResult(completed=Completed(exit_code=0), output=str(gold["output"]))
        session = context.session()
        store = DirectoryStore(Path(self.config.store))
        if gold.endswith((".patch", ".diff")):
            self._patch(gold, store, session, context.environment())
        else:
            self._overlay(gold, store, session, context.environment())
        return RunnerResult(completed=Completed(exit_code=0), output="")

    def _patch(self, gold: str, store: DirectoryStore, session: Session, environment: Mapping[str, str]) -> None:
        path = str(PurePosixPath(gold))
        entry = next(entry for entry in store.tree(self.config.tree).entries if entry.path == path)
        patch = store.path(entry.sha256 or "").read_bytes()
        patch += b"" if patch.endswith(b"\n") else b"\n"
        argv = ["git", "apply", "--whitespace=nowarn", "-"]
        done = session.execute(Command(argv=argv, env=environment, stdin=patch, timeout=APPLY_SECONDS))
        if done.exit_code != 0:
            why = done.spawn_error or done.stderr.text.strip()[-500:]
            raise TrialError("patch_apply", f"gold {gold} cannot be applied: {why}")

    def _overlay(self, gold: str, store: DirectoryStore, session: Session, environment: Mapping[str, str]) -> None:
        prefix = f"{PurePosixPath(gold)}/"
        entries = [entry for entry in store.tree(self.config.tree).entries if entry.path.startswith(prefix)]
        for entry in entries:
            relative = entry.path.removeprefix(prefix)
            if relative == DELETED:
                _delete(store.path(entry.sha256 or ""), session, environment)
            elif entry.kind == "file":
                _place(entry, relative, store, session, environment)


def _place(entry: Entry, relative: str, store: DirectoryStore, session: Session, environment: Mapping[str, str]) -> None:
    target = session.workspace / relative
    session.put(store.path(entry.sha256 or "").read_bytes(), target)
    if (entry.mode or 0) & 0o111:
        _checked(session, ["chmod", f"{entry.mode:o}", str(target)], environment)


def _delete(listing: Path, session: Session, environment: Mapping[str, str]) -> None:
    for line in listing.read_text(encoding="utf-8").splitlines():
        if line.strip():
            _checked(session, ["rm", "-rf", "--", line.strip()], environment)


def _checked(session: Session, argv: list[str], environment: Mapping[str, str]) -> None:
    done = session.execute(Command(argv=argv, env=environment, timeout=APPLY_SECONDS))
    if done.exit_code != 0:
        raise TrialError("gold_apply", f"{argv[0]} failed: {done.spawn_error or done.stderr.text.strip()[-300:]}")
