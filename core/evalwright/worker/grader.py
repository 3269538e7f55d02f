"""The grader's side: gold arrives, fresh clones are made, scorers get their sessions."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Literal

from evalwright.errors import JudgeError
from evalwright.interfaces import (
    Deadline,
    Mount,
    Sandbox,
    SandboxRequest,
    Session,
    give_tree,
)
from evalwright.judging import Tally
from evalwright.model import Manifest, ScorerEntry, TrialSpec
from evalwright.redaction import Redactor
from evalwright.spans import NO_SPANS, Spans
from evalwright.store import DirectoryStore
from evalwright.worker.agent import WatchedSession, bounded, journal_of
from evalwright.worker.bounded import unless
from evalwright.worker.environment import base_environment, case_variables, expand_prefixes
from evalwright.worker.runtime import Plugins, Runtime
from evalwright.workspace import Clone, TrialPlace

if TYPE_CHECKING:
    from evalwright.interfaces import Judge, JudgeReply, JudgeRequest

__all__ = ["Grader", "GraderContext"]

SCORE_SECONDS = 3600.0
SUITE = PurePosixPath("/suite")


@dataclass(frozen=True, kw_only=True)
class Grader:
    """What all scorers of one trial share. ``case`` is the full case; ``clone`` is the agent's final workspace."""

    spec: TrialSpec
    case: Mapping[str, Any]
    output: str
    clone: Clone
    plugins: Plugins
    runtime: Runtime
    store: DirectoryStore
    redactor: Redactor
    gold: Manifest
    canceled: Callable[[], bool]
    keep: Callable[[str, bytes], None]
    warn: Callable[[str], None]
    tallies: dict[str, Tally]
    spans: Spans = NO_SPANS

    def context(self, entry: ScorerEntry) -> GraderContext:
        """Return the context of one scorer."""
        return GraderContext(self, entry)

    def spent(self, entry: ScorerEntry) -> dict[str, Any] | None:
        """Return what the questions of one scorer cost, ``None`` if it asked none."""
        return self.tallies[entry.id].record() if entry.id in self.tallies else None


class GraderContext:
    """What a scorer gets: see :class:`evalwright.interfaces.ScoreContext`."""

    def __init__(self, grader: Grader, entry: ScorerEntry) -> None:
        self.deadline = Deadline.after(SCORE_SECONDS)
        self._grader = grader
        self._entry = entry
        self._places: dict[Session, tuple[TrialPlace, Path | None]] = {}

    def judge(self, name: str, request: JudgeRequest) -> JudgeReply:
        """Ask a judge of the suite. Raises ``JudgeError``, or ``PluginNotFound`` naming the judges that there are."""
        grader = self._grader
        judge: Judge[Any] = grader.plugins.host.create(f"judges.{name}")
        tally = grader.tallies.setdefault(self._entry.id, Tally())
        try:
            asked = replace(request, repeat=grader.spec.repeat)
            reply = unless(grader.canceled, lambda: judge.ask(asked, self.deadline))
        except JudgeError as error:
            tally.failed(error.cost)
            raise
        tally.answered(reply)
        return reply

    @contextlib.contextmanager
    def session(
        self,
        sandbox: str | None = None,
        *,
        workspace: Literal["final", "fixture", "empty"] = "final",
        hidden: bool = False,
    ) -> Generator[Session]:
        """Open a session on a private clone; everything of it is gone after the block."""
        grader = self._grader
        plugin: Sandbox[Any] = grader.plugins.host.create(f"sandboxes.{sandbox}") if sandbox else grader.plugins.sandbox
        place = grader.runtime.scratch(grader.spec).place(
            grader.runtime.fixture(grader.spec, grader.store).size_bytes, owner=plugin.user
        )
        try:
            with grader.spans.span("fill"):
                self._fill(place, workspace, hidden=hidden)
            suite = None if hidden else self._suite(place)
            with self._opened(plugin, place, suite) as session:
                self._places[session] = place, suite
                yield session
        finally:
            grader.runtime.scratch(grader.spec).discard(place)

    def environment(self, session: Session) -> Mapping[str, str]:
        """Return the environment of a grader's command; ``CASE_FILE`` is the full case."""
        grader = self._grader
        spec = grader.spec
        place, suite = self._places[session]
        extra = expand_prefixes({"SUITE": str(session.inside(suite)) if suite else ""})
        variables = case_variables(session, has_diff=spec.diff_digest is not None)
        return base_environment(spec.tables["agent"], session, place) | variables | extra

    def keep(self, name: str, content: bytes) -> None:
        """Keep evidence beside the score."""
        self._grader.keep(f"scorers/{self._entry.id}.{name}", self._grader.redactor.bytes(content))

    def _fill(self, place: TrialPlace, workspace: str, *, hidden: bool) -> None:
        grader = self._grader
        if workspace == "final":
            grader.clone.copy_to(place)
        elif workspace == "fixture":
            grader.runtime.clone(grader.spec, grader.store, place)
        if hidden:
            from evalwright.worker.hidden import lay_hidden, neutralise

            # The code under test runs here: it gets neither the full case nor the agent's answer.
            fixture = grader.runtime.tree(grader.store, grader.spec.fixture_digest)
            neutralise(place.workspace, fixture, grader.store)
            if grader.spec.hidden:
                lay_hidden(grader.spec.hidden, grader.gold, fixture, grader.store, place.workspace)
            give_tree(place.workspace, place.owner)
        else:
            _fill_exchange(grader, place)
            if grader.spec.suite_directory is None:
                (place.root / "s").mkdir()
                grader.store.restore(grader.spec.gold_digest, place.root / "s", owner=place.owner)
        (place.exchange / "empty").mkdir()
        give_tree(place.exchange, place.owner)

    def _suite(self, place: TrialPlace) -> Path:
        """Return where the whole suite lies on this host."""
        directory = self._grader.spec.suite_directory
        return Path(directory) if directory else place.root / "s"

    @contextlib.contextmanager
    def _opened(self, plugin: Sandbox[Any], place: TrialPlace, suite: Path | None) -> Generator[Session]:
        grader = self._grader
        spec = grader.spec
        mounts = [Mount(source=suite, target=SUITE)] if suite else []
        request = SandboxRequest(
            owner=f"{spec.run_id}/{spec.case_id}/{spec.attempt}/{self._entry.id}",
            workspace=place.workspace,
            exchange=place.exchange,
            role="grader",
            mounts=mounts,
            options=spec.case.get("sandbox", {}),
            deadline=self.deadline,
        )
        sinks = grader.redactor.sinks(spec.tables["agent"]["max_output_bytes"])
        with grader.spans.span("open"):
            inner = plugin.open(request)
        session = WatchedSession(inner, sinks, grader.canceled, journal_of(spec, place), spans=grader.spans)
        try:
            yield session
        finally:
            try:
                bounded(session, session.kill)
                bounded(session, session.destroy)
            except Exception as error:
                grader.warn(f"the grader's session was not released: {error}")


def _fill_exchange(grader: Grader, place: TrialPlace) -> None:
    """Write what a grader's command may read: the full case, task, diff and the agent's redacted answer."""
    exchange = place.exchange
    (exchange / "case.json").write_text(json.dumps(grader.case, indent=2, sort_keys=True), encoding="utf-8")
    (exchange / "task.txt").write_text(str(grader.case["task"]), encoding="utf-8", newline="")
    (exchange / "output.txt").write_text(grader.output, encoding="utf-8", newline="")
    if grader.spec.diff_digest:
        with grader.store.open(grader.spec.diff_digest) as file:
            (exchange / "input.diff").write_bytes(file.read())
