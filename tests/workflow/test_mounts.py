"""In bubblewrap an agent commits to its run's branch, and reaches nothing else of the repository."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import pytest
from tests.workflow.repositories import COMMITTER, commit, git, made

from evalwright.errors import SandboxError
from evalwright.interfaces import Command, Deadline, Mount, SandboxRequest, Session, give_tree
from evalwright.model import Completed
from evalwright.processes import Supervisor
from evalwright_plugins.sandboxes.bubblewrap import BubblewrapConfig, BubblewrapSandbox
from evalwright_plugins.workflow.workspace import ENVIRONMENT, Repository, Workspace, mounts_of

IDENTITY = {name: value for name, value in COMMITTER.items() if name.startswith(("GIT_AUTHOR", "GIT_COMMITTER"))}
ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", **IDENTITY}


@pytest.fixture(autouse=True)
def _component(require: Callable[[str], None]) -> None:
    require("bwrap")


@pytest.fixture
def ground() -> Iterator[Path]:
    """Return a directory that every user can traverse; pytest's own are closed."""
    with tempfile.TemporaryDirectory(prefix="evalwright-mounts-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def bound(ground: Path, supervisor: Supervisor) -> tuple[Repository, Workspace, str]:
    """Return a repository in which two runs are bound, the worktree of the first, and the commit that both began from."""
    found = made(ground / "repository", supervisor)
    found[0].bind("R2", found[2])
    git(found[0].checkout, "gc", "--quiet")
    return found


@contextmanager
def inside(workspace: Workspace, *, readonly: bool) -> Generator[Session]:
    """Open a session on the worktree as a step does."""
    sandbox = BubblewrapSandbox(BubblewrapConfig(), None)  # type: ignore[arg-type]  # it asks its host nothing
    with tempfile.TemporaryDirectory(prefix="evalwright-step-") as name:
        Path(name).chmod(0o711)
        exchange = Path(name) / "x"
        exchange.mkdir()
        root = workspace.place.root
        for directory in (root, exchange):
            give_tree(directory, sandbox.user)
        mounts = mounts_of(workspace, readonly)
        request = SandboxRequest(
            owner="w/R1/1", workspace=root, exchange=exchange, mounts=mounts, readonly=readonly, env={**ENV, **ENVIRONMENT}
        )
        session = sandbox.open(request)
        try:
            yield session
        finally:
            session.kill(Deadline.after(20))
            session.destroy(Deadline.after(20))
            sandbox.close(Deadline.after(20))


def sh(session: Session, script: str, env: Mapping[str, str] | None = None) -> Completed:
    return session.execute(Command(argv=["/bin/sh", "-c", script], env=env or {}, timeout=60))


def test_writing_step_commits_to_the_branch_of_its_run(workspace: Workspace, repository: Repository, base: str) -> None:
    before = workspace.proof()
    with inside(workspace, readonly=False) as session:
        done = sh(session, "set -e; echo new > src/a; echo x > more; git add --all; git commit -qm one; git status --short")
        assert (done.exit_code, done.stdout.text) == (0, ""), done.stderr.text
        assert (
            sh(session, "echo y > more; git commit -qam two; git commit -q --amend -m three; git log --oneline").exit_code == 0
        )
    made = workspace.candidate()
    assert repository.resolve("run/R1") == made != base
    assert workspace.changed(base) == ["more", "src/a"]
    assert before.trespasses(workspace.proof()) == []
    with inside(workspace, readonly=False) as session:
        assert sh(session, "git gc --quiet; git reset --quiet --hard HEAD^ && git checkout --quiet -- .").exit_code == 0
    assert workspace.is_ancestor(workspace.candidate(), made)
    git(repository.checkout, "fsck", "--strict")


FORBIDDEN = [
    "git config user.name x",
    "git config --worktree user.name x",
    "git update-ref refs/heads/main HEAD",
    "git update-ref refs/heads/run/R2 HEAD^{commit}",
    "git branch --force run/R2 HEAD",
    "git branch --delete --force run/R2",
    "git tag v1",
    "git branch new",
    "git stash",
    "git pack-refs --all",
    "git update-ref refs/notes/x HEAD",
    "git replace --graft HEAD",
    "git worktree add /tmp/other",
    "git push origin HEAD",
    'c=$(git rev-parse --git-common-dir); echo x > "$c/config"',
    'c=$(git rev-parse --git-common-dir); echo x > "$c/HEAD"',
    'c=$(git rev-parse --git-common-dir); echo x > "$c/hooks/post-commit"',
    'c=$(git rev-parse --git-common-dir); echo x > "$c/info/attributes"',
    'c=$(git rev-parse --git-common-dir); echo x > "$c/objects/info/alternates"',
    'c=$(git rev-parse --git-common-dir); rm -f "$c"/objects/pack/*.pack',
    'c=$(git rev-parse --git-common-dir); mv "$c/objects/pack" "$c/objects/other"',
    'c=$(git rev-parse --git-common-dir); rm -r "$c"/worktrees/R2/*',
    'c=$(git rev-parse --git-common-dir); echo x > "$c/evalwright/inbox"',
    'c=$(git rev-parse --git-common-dir); ls "$c"/evalwright/worktrees',
    'd=$(git rev-parse --git-dir); echo x > "$d/gitdir"',
    'd=$(git rev-parse --git-dir); rm -f "$d/config.worktree"',
    'd=$(git rev-parse --git-dir); mv "$d/commondir" "$d/other"',
    'd=$(git rev-parse --git-dir); echo x > "$d/evalwright.json"',
]


@pytest.mark.parametrize("readonly", [True, False], ids=["reading", "writing"])
def test_nothing_else_of_the_repository_can_be_changed(
    workspace: Workspace, repository: Repository, base: str, readonly: bool
) -> None:
    git(repository.checkout, "remote", "add", "origin", str(repository.checkout))
    repository.bind("R1", base)
    commit(workspace.place.root, src__a="one\n")
    before = workspace.proof()
    with inside(workspace, readonly=readonly) as session:
        done = [(script, sh(session, f"echo x >> src/a; {script}").exit_code) for script in FORBIDDEN]
        assert sh(session, "git worktree prune; git worktree list").exit_code == 0
    assert [script for script, status in done if status == 0] == []
    assert before.trespasses(workspace.proof()) == []
    assert repository.bind("R1", base).head() == workspace.head()
    assert repository.bind("R2", base).head() == base


def test_branch_of_another_run_that_is_overwritten_is_a_trespass(workspace: Workspace, repository: Repository) -> None:
    commit(workspace.place.root, src__a="one\n")
    before = workspace.proof()
    with inside(workspace, readonly=False) as session:
        done = sh(session, 'git rev-parse HEAD > "$(git rev-parse --git-common-dir)/refs/heads/run/R2"')
        assert done.exit_code == 0, "packed branches have no file that could be protected"
    assert before.trespasses(workspace.proof()) == ["ref: refs/heads/run/R2 changed"]


def test_read_only_step_reads_and_writes_nothing(workspace: Workspace) -> None:
    before = workspace.proof()
    with inside(workspace, readonly=True) as session:
        read = sh(session, "set -e; git status --short; git log --oneline; git diff HEAD; git show HEAD:src/a; git blame src/a")
        assert read.exit_code == 0, read.stderr.text
        scripts = [
            "echo x > src/a",
            "echo x > new",
            "mkdir new",
            "rm src/a",
            "chmod 755 src/a",
            "git add --all; git commit -qm x",
        ]
        scripts += ["git commit --allow-empty -m x", "git checkout -q --detach", "echo x | git hash-object -w --stdin"]
        assert [script for script in scripts if sh(session, script).exit_code == 0] == []
        assert sh(session, "echo x > /exchange/output").exit_code == 0
    assert before.difference(workspace.proof()) == []


def test_link_that_a_step_laid_shows_the_next_one_nothing(workspace: Workspace, repository: Repository, ground: Path) -> None:
    (ground / "secret").mkdir(mode=0o755)
    (ground / "secret/key").write_text("secret\n")
    before = workspace.proof()
    with inside(workspace, readonly=False) as session:
        laid = f'ln -s {ground}/secret "$(git rev-parse --git-common-dir)/refs/heads/run/R9"'
        assert sh(session, laid).exit_code == 0
    assert before.trespasses(workspace.proof()) == ["repository: refs/heads/run/R9 added"]
    with inside(workspace, readonly=False) as session:
        done = sh(session, 'cat "$(git rev-parse --git-common-dir)/refs/heads/run/R9/key"')
    assert done.exit_code != 0


def test_tidying_by_the_user_does_not_take_the_branch_from_under_a_step(workspace: Workspace, repository: Repository) -> None:
    with inside(workspace, readonly=False) as session:
        assert sh(session, "echo newer > src/a; git commit -qam zero").exit_code == 0
        for words in (["pack-refs", "--all", "--prune"], ["repack", "-adq"], ["prune", "--expire=now"]):
            git(repository.checkout, *words)
        done = sh(session, "echo new > src/a; git commit -qam one")
        assert done.exit_code == 0, done.stderr.text
    assert workspace.candidate() == repository.resolve("run/R1")


def test_refs_in_one_table_are_refused(workspace: Workspace) -> None:
    (workspace.place.common / "reftable").mkdir()
    with pytest.raises(SandboxError, match="reftable"):
        mounts_of(workspace, readonly=True)


def test_mount_over_the_workspace_is_refused(workspace: Workspace, ground: Path) -> None:
    (ground / "x").mkdir()
    sandbox = BubblewrapSandbox(BubblewrapConfig(), None)  # type: ignore[arg-type]  # it asks its host nothing
    give_tree(workspace.place.root, sandbox.user)
    mounts = [Mount(source=ground, target=PurePosixPath("/workspace/project/.git"))]
    with pytest.raises(SandboxError, match=r"/workspace/project/\.git lies where"):
        sandbox.open(SandboxRequest(owner="w", workspace=workspace.place.root, exchange=ground / "x", mounts=mounts))
    sandbox.close(Deadline.after(20))
