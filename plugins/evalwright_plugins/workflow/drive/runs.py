"""The runs of a repository: made, found, locked, and driven."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

from evalwright.errors import LedgerDamaged, RunBusy, RunConflict, RunCorrupt, RunNotFound
from evalwright.ledger import Event
from evalwright.processes import Supervisor
from evalwright_plugins.workflow.approvals.webhook import Webhook
from evalwright_plugins.workflow.drive.creation import creation
from evalwright_plugins.workflow.drive.drive import Drive, Gate
from evalwright_plugins.workflow.drive.gates import gate_of
from evalwright_plugins.workflow.drive.turn import Turn
from evalwright_plugins.workflow.drive.unattended import Unattended
from evalwright_plugins.workflow.evidence import EvidenceIndex
from evalwright_plugins.workflow.findings.book import Book
from evalwright_plugins.workflow.model.loading import Plan, unpinned
from evalwright_plugins.workflow.record import Journal, State, Status, state_of
from evalwright_plugins.workflow.sites import RunFiles
from evalwright_plugins.workflow.sites.plugins import Plugins
from evalwright_plugins.workflow.sites.repository import RepositorySite, executor
from evalwright_plugins.workflow.workspace import Repository, hold
from evalwright_plugins.workflow.workspace.places import checked_id

__all__ = ["Run", "Runs"]

GRACE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Run:
    """One run on file."""

    files: RunFiles

    @property
    def id(self) -> str:
        """Return its id."""
        return self.files.path.name

    @property
    def foreign(self) -> bool:
        """Tell whether it was imported, to be read and never driven."""
        return self.files.foreign.is_file()

    def state(self) -> State:
        """Return where it stands. Raises ``LedgerDamaged``."""
        return state_of(self.files.ledger)

    def plan(self, state: State) -> Plan:
        """Return what it does, as it was pinned. Raises ``RunCorrupt`` when that was changed, ``RunConflict`` if imported."""
        if self.foreign:
            raise RunConflict(f"{self.id} was imported, to be read only", hint=f"look at it: evalwright work status {self.id}")
        try:
            plan = unpinned(json.loads(self.files.plan.read_bytes()))
        except (OSError, ValueError, KeyError) as error:
            raise RunCorrupt(f"{self.files.plan} cannot be read: {error}", hint="restore it from a copy") from error
        if plan.digest != state.created["configDigest"]:
            raise RunCorrupt(f"{self.files.plan} is not what the run was started with", hint="restore it from a copy")
        return plan


class Runs:
    """The runs that lie in a repository's git directory. ``warn`` is told by a code and in words what went wrong without
    harm, ``heard`` of every event of a run that is driven.
    """

    def __init__(
        self,
        repository: Repository,
        warn: Callable[[str, str], None] = lambda _code, _text: None,
        heard: Callable[[Event], object] | None = None,
    ) -> None:
        self.repository = repository
        self._heard = heard
        self._warn = warn
        self.path = repository.state / "runs"

    def __iter__(self) -> Iterator[Run]:
        """Yield every run that has begun, by id."""
        names = sorted(os.listdir(self.path)) if self.path.is_dir() else []
        for name in names:
            run = Run(RunFiles(self.path / name))
            if run.files.ledger.is_file():
                yield run

    def find(self, name: str | None) -> Run:
        """Return a run by id, or the only one that has not ended. Raises ``RunNotFound`` naming those that there are."""
        if name is not None:
            run = Run(RunFiles(self.path / checked_id(name)))
            if run.files.ledger.is_file():
                return run
            known = ", ".join(one.id for one in self) or "none yet"
            raise RunNotFound(f"there is no run {name}", hint=f"there are: {known}")
        live: list[Run] = []
        for run in self:
            with contextlib.suppress(LedgerDamaged):
                live += [run] if not run.foreign and not run.state().status.terminal else []
        if len(live) == 1:
            return live[0]
        hint = f"name one of: {', '.join(run.id for run in live)}" if live else "start one: evalwright work start --config FILE"
        raise RunNotFound(f"{len(live)} runs have not ended", hint=hint)

    def of_work(self, work: str) -> list[tuple[Run, State]]:
        """Return the runs of a work with their states; those whose ledger is damaged are passed by."""
        found: list[tuple[Run, State]] = []
        for run in self:
            with contextlib.suppress(LedgerDamaged):
                state = run.state()
                if state.work == work and not run.foreign:
                    found.append((run, state))
        return found

    def start(self, plan: Plan, run_id: str | None, prompt: Gate, canceled: Callable[[], bool]) -> tuple[Run, State]:
        """Make a run and drive it. Waiting runs of the same work are superseded.

        Raises ``RunBusy`` naming whoever drives this work, or drives in this repository alone; ``RunConflict`` for an id that
        is taken, and for a branch in the way of all runs.
        """
        with self._alone(plan):
            self.repository.check_branches()
            base, waiting = self.repository.resolve(plan.config.base), self._waiting(plan.config.work)
            run = self._made(plan, run_id)
            self._create(run, plan, base, waiting)
            return run, self._driven(run, plan, prompt, canceled)

    def resume(self, run: Run, prompt: Gate, canceled: Callable[[], bool]) -> State:
        """Drive a run on. Raises as :meth:`start`."""
        state = run.state()
        if state.status.terminal:
            self.leave(run, state)
            return state
        plan = run.plan(state)
        with self._alone(plan):
            return self._driven(run, plan, prompt, canceled)

    def leave(self, run: Run, state: State) -> None:
        """Remove the worktree of a run that has ended; one with changes that are not committed stays until ``gc``."""
        workspace = self.repository.workspace(run.id) if state.status.terminal else None
        if workspace and not workspace.dirty():
            self.repository.release(run.id)

    @contextlib.contextmanager
    def at_rest(self, run: Run) -> Generator[Turn]:
        """Give a turn of a run that nobody drives, to record a decision. Raises ``RunBusy`` while somebody drives it."""
        with hold(run.files.driver), Journal(run.files.ledger, run=run.id, work=run.state().work) as journal:
            plan = run.plan(journal.state)
            with Plugins(self.repository.checkout) as plugins:
                yield self._turn(run, plan, journal, plugins)

    @contextlib.contextmanager
    def _alone(self, plan: Plan) -> Generator[None]:
        state = self.repository.state
        with (
            hold(state / "works" / plan.config.work / "lock", patience=GRACE_SECONDS),
            hold(state / "repository.lock", shared=plan.config.parallel, patience=GRACE_SECONDS),
        ):
            yield

    def _made(self, plan: Plan, run_id: str | None) -> Run:
        """Make the directory of a new run; its id is the next free one of the work unless one is given."""
        for number in itertools.count(1):
            name = checked_id(run_id or f"{plan.config.work}-{number}")
            run = Run(RunFiles(self.path / name))
            run.files.path.mkdir(parents=True, exist_ok=True)
            if not run.files.ledger.is_file() and not self.repository.has_branch(name):
                return run
            if run_id is not None:
                hint = f"resume it: evalwright work resume {name}, or choose another id"
                raise RunConflict(f"there is a run {name} already, or a branch run/{name}", hint=hint)
        raise AssertionError

    def _waiting(self, work: str) -> list[str]:
        """Return the runs of a work that wait. Raises ``RunBusy`` for one that was interrupted, whose work must not be lost."""
        live = [(run, state) for run, state in self.of_work(work) if not state.status.terminal]
        for run, state in live:
            if state.status is Status.RUNNING:
                hint = f"resume it: evalwright work resume {run.id}, or end it: evalwright work stop {run.id}"
                raise RunBusy(f"run {run.id} of {work} was interrupted", hint=hint)
        return [run.id for run, _ in live]

    def _supersede(self, by: Run, work: str, names: Sequence[str]) -> None:
        """End the runs that another one was made to supersede, those that have not ended yet."""
        for run in map(self.find, names):
            with Journal(run.files.ledger, run=run.id, work=work) as journal:
                if not journal.state.status.terminal:
                    reason = f"superseded by {by.id} (same work {work})"
                    journal.write("RUN_TERMINAL", {"status": "SUPERSEDED", "reason": reason})
                self.leave(run, journal.state)

    def _create(self, run: Run, plan: Plan, base: str, superseded: list[str]) -> None:
        aside = run.files.plan.with_name("plan.json.new")
        aside.write_text(json.dumps(plan.document, ensure_ascii=False), encoding="utf-8")
        os.replace(aside, run.files.plan)
        with Plugins(self.repository.checkout) as plugins:
            versions = plugins.versions(plan.config)
        data = creation(plan, base, self.repository.checkout, versions) | ({"supersedes": superseded} if superseded else {})
        with Journal(run.files.ledger, run=run.id, work=plan.config.work) as journal:
            journal.write("RUN_CREATED", data)

    def _driven(self, run: Run, plan: Plan, prompt: Gate, canceled: Callable[[], bool]) -> State:
        with (
            hold(run.files.driver),
            Journal(run.files.ledger, run=run.id, work=plan.config.work, heard=self._heard) as journal,
            Plugins(self.repository.checkout) as plugins,
            Supervisor() as supervisor,
        ):
            self._supersede(run, plan.config.work, journal.state.created.get("supersedes", ()))
            turn = self._turn(run, plan, journal, plugins)
            self._compare(run, journal.state.created.get("plugins", turn.versions), turn.versions)
            notify = plan.config.notify
            hook = Webhook(notify.webhook, timeout=notify.timeout_seconds) if notify else None

            def tell(event: str, kind: str) -> None:
                if hook:
                    hook.notify(event, run=run.id, work=plan.config.work, kind=kind)

            wanted = plan.config.on_gate
            answered = Unattended(gate_of(turn, executor(supervisor)), fixed=isinstance(wanted, str), waits=True)
            gate = prompt if wanted == "ask" else answered
            index = EvidenceIndex(self.repository.state / "evidence")
            drive = Drive(turn=turn, index=index, gate=gate, canceled=canceled, notify=tell)
            try:
                state = drive.run()
            finally:
                for problem in hook.close() if hook else ():
                    self._warn("W_NOTIFY_FAILED", problem)
            self.leave(run, state)
            return state

    def _turn(self, run: Run, plan: Plan, journal: Journal, plugins: Plugins) -> Turn:
        work = plan.config.work
        site = RepositorySite(self.repository, run.files, plan.config, journal.state.created["base"], plugins)
        rounds = sum(state.review_rounds for other, state in self.of_work(work) if other.id != run.id)
        book = Book(self.repository.state / "works" / work / "findings.jsonl", work)
        return Turn(plan, run.files, journal, site, book, rounds, plugins.versions(plan.config))

    def _compare(self, run: Run, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        """Say which plugins are others than those that the run was begun with: its steps are not all done by the same."""
        names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
        changed = [f"{name} ({before.get(name, 'none')}, now {now.get(name, 'none')})" for name in names]
        if changed:
            self._warn("W_PLUGIN_DRIFT", f"{run.id} was begun with other versions: {', '.join(changed)}")
