"""Steps on the user's repository: in the run's worktree, each in a session of the configured sandbox."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.canonical import digest_bytes
from evalwright.errors import PluginError, SandboxError, UsageError
from evalwright.interfaces import Deadline, Mount, SandboxRequest, Session, give_tree
from evalwright.model import Completed
from evalwright.processes import ProcessJournal, Supervisor, end_strays
from evalwright.redaction import Redactor, credential_values
from evalwright_plugins.workflow.model.config import WorkConfig
from evalwright_plugins.workflow.sites.log import StepLog
from evalwright_plugins.workflow.sites.plugins import Plugins
from evalwright_plugins.workflow.sites.site import RunFiles, StepCall, StepResult
from evalwright_plugins.workflow.sites.worker import StepContext, carry_out
from evalwright_plugins.workflow.workspace import Proof, Repository, Workspace
from evalwright_plugins.workflow.workspace.mounts import ENVIRONMENT, mounts_of

__all__ = ["BASE", "RepositorySite", "adopted", "digests_below", "executor", "worker_environment"]

PRIVATE = ("exchange", "home", "temporary")
BASE = {"LANG": "C.UTF-8", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}


class RepositorySite:
    """The site of one run of ``work``. ``supervisor`` starts git and gates; workers are started by their sandbox."""

    def __init__(self, repository: Repository, files: RunFiles, config: WorkConfig, base: str, plugins: Plugins) -> None:
        self.repository = repository
        self._files = files
        self._config = config
        self._base = base
        self._plugins = plugins
        self._journal = ProcessJournal(files.processes)
        self._workspace: Workspace | None = None

    @property
    def tree(self) -> Workspace:
        """Return the run's worktree."""
        if self._workspace is None:
            self._workspace = self.repository.bind(self._files.path.name, self._base)
        return self._workspace

    def proof(self) -> Proof:
        """Return the proof of the worktree; the branches of other runs may move."""
        return self.tree.proof(beside=self.repository.worktrees())

    def bind(self) -> Mapping[str, Any]:
        """Make the worktree, and end what a dead driver's workers have left."""
        end_strays(self._files.processes)
        self._journal.make()
        place = self.tree.place
        return {
            "workspaceId": place.run,
            "repo": ".",
            "branch": place.branch.removeprefix("refs/heads/"),
            "worktreePath": os.path.relpath(place.root, place.checkout),
            "base": self._base,
        }

    def run(self, call: StepCall, canceled: Callable[[], bool]) -> StepResult:
        """Carry out an attempt in a session of its own."""
        try:
            runner = self._plugins.runner(call.step.table, call.table)
            redactor = Redactor(credential_values(worker_environment(self._config)))
            with self._session(call) as (session, variables), StepLog(call.log, redactor) as log:
                context = StepContext(
                    inner=session,
                    variables=variables,
                    deadline=Deadline.after(call.timeout),
                    log=log,
                    canceled=canceled,
                    started=self._started,
                )
                return carry_out(call, runner, context)
        except (PluginError, SandboxError) as error:
            return StepResult(exit_code=None, seconds=0.0, command=call.step.table, lost=f"{error.message}; {error.hint}")

    def digests(self, names: Sequence[str]) -> Mapping[str, str]:
        """Return the digests of files of the worktree."""
        return digests_below(self.tree.place.root, names)

    def adopt(self, commit: str) -> str:
        """Check out a commit on the run's branch."""
        return adopted(self.repository, self.tree, commit)

    def _started(self, pids: Sequence[int]) -> None:
        self._journal.note(self._files.path, pids)

    @contextlib.contextmanager
    def _session(self, call: StepCall) -> Generator[tuple[Session, dict[str, str]]]:
        sandbox = self._plugins.sandbox(self._config.sandbox)
        private = {name: self._files.path / "steps" / f"{call.step.id}-{call.attempt}" / name for name in PRIVATE}
        for path in private.values():
            path.mkdir(parents=True, exist_ok=True)
        mounts = mounts_of(self.tree, call.step.readonly) if "writable-mounts" in sandbox.capabilities else []
        if sandbox.user is not None:
            _hand_over(sandbox.user, [self.tree.place.root, *private.values()], mounts)
        request = SandboxRequest(
            owner=f"{self._files.path.name}/{call.step.id}/{call.attempt}",
            workspace=self.tree.place.root,
            exchange=private["exchange"],
            mounts=mounts,
            readonly=call.step.readonly,
            deadline=Deadline.after(call.timeout),
        )
        session = sandbox.open(request)
        try:
            yield session, self._variables(session, private)
        finally:
            for end in (session.kill, session.collect, session.destroy):
                end(Deadline.after(session.ending_seconds))
            shutil.rmtree(private["temporary"], ignore_errors=True)

    def _variables(self, session: Session, private: Mapping[str, Path]) -> dict[str, str]:
        own = {"HOME": str(session.home or private["home"]), "TMPDIR": str(session.temporary or private["temporary"])}
        return {**own, **worker_environment(self._config), "EVALWRIGHT_WORKSPACE": str(session.workspace)}


def worker_environment(config: WorkConfig) -> dict[str, str]:
    """Return the variables that every worker gets, but for those of its session."""
    allowed = {name: os.environ[name] for name in config.env_allowlist if name in os.environ}
    return {**BASE, **ENVIRONMENT, **allowed, **config.env}


def digests_below(root: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the digests of regular files below a directory, those that do not exist left out; links are not followed out."""
    found: dict[str, str] = {}
    for name in names:
        path = (root / name).resolve()
        if path.is_relative_to(root.resolve()) and path.is_file():
            found[name] = digest_bytes(path.read_bytes())
    return found


def adopted(repository: Repository, tree: Workspace, commit: str) -> str:
    """Check out a commit on a run's branch and return its id. Raises ``UsageError`` where that would lose changes."""
    wanted = repository.resolve(commit)
    dirty = tree.dirty()
    if dirty and wanted != tree.head():
        raise UsageError(f"{tree.place.root} has changes that are not committed", hint="commit them, or remove them")
    if not tree.is_ancestor(tree.git.text("merge-base", wanted, tree.head()), wanted):
        raise UsageError(f"{commit} has nothing in common with the run", hint="name a commit that comes from the run's base")
    tree.git.run("reset", "--hard", "--quiet", wanted)
    return wanted


def executor(supervisor: Supervisor) -> Callable[[Any], Completed]:
    """Return what runs a command on this host."""
    return lambda command: supervisor.run(replace(command, env=command.env or dict(BASE)))


def _hand_over(user: int, places: Sequence[Path], mounts: Sequence[Mount]) -> None:
    """Make what a sandbox's own user shall write its."""
    for path in [*places, *(mount.source for mount in mounts if mount.writable)]:
        give_tree(path, user)
