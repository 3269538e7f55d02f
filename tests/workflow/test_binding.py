"""Binding and releasing a run: idempotent, whatever was killed in between, and without a way to push."""

from __future__ import annotations

import multiprocessing
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.workflow.repositories import commit, git, made, status_of

from evalwright.errors import RunConflict, SourceMissing, UsageError
from evalwright.interfaces import Command
from evalwright.model import Completed
from evalwright.processes import Supervisor
from evalwright_plugins.workflow.workspace import GitError, Repository, Workspace


class Killed(BaseException):
    """Stands for the end of the process."""


def test_binding_twice_changes_nothing(repository: Repository, workspace: Workspace, root: Path, base: str) -> None:
    made = commit(root, src__a="work\n")
    (root / "src/b").write_text("not committed\n")
    again = repository.bind("R1", base)
    assert (again.place, again.head(), again.dirty()) == (workspace.place, made, ["src/b"])
    assert repository.worktrees() == ["R1"]
    assert git(repository.checkout, "status", "--porcelain") == ""


def test_release_removes_the_worktree_and_keeps_the_branch(repository: Repository, root: Path, base: str) -> None:
    tip = commit(root, src__a="work\n")
    closed = root / "closed"
    (closed / "deep").mkdir(parents=True)
    (closed / "deep/file").write_text("x")
    (closed / "deep").chmod(0)
    closed.chmod(0o500)
    repository.release("R1")
    repository.release("R1")
    assert not root.exists()
    assert repository.worktrees() == []
    assert git(repository.checkout, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert repository.resolve("run/R1") == tip
    assert repository.workspace("R1") is None
    assert repository.bind("R1", base).head() == tip
    repository.release("R1", keep_branch=False)
    repository.release("R1", keep_branch=False)
    with pytest.raises(UsageError):
        repository.resolve("run/R1")


STEPS = 60


def steps_of(execute: Callable[[Command], Completed], left: int) -> Callable[[Command], Completed]:
    """Return what runs ``left`` commands and then dies: once before the next one, and with odd numbers right after it."""
    count = left // 2

    def run(command: Command) -> Completed:
        nonlocal count
        if count == 0 and left % 2 == 0:
            raise Killed
        count -= 1
        done = execute(command)
        if count < 0:
            raise Killed
        return done

    return run


@pytest.mark.acceptance
def test_killed_between_any_two_steps_of_a_binding_the_next_one_finishes(tmp_path: Path, supervisor: Supervisor) -> None:
    repository, _, base = made(tmp_path / "r", supervisor, run="other")
    git(repository.checkout, "remote", "add", "origin", "/nowhere")
    for left in range(STEPS):
        run = f"R{left}"
        dying = Repository(type(repository.git)(steps_of(supervisor.run, left), "/"), repository.common, repository.checkout)
        try:
            dying.bind(run, base)
        except Killed:
            whole = repository.bind(run, base)
            assert (whole.candidate(), whole.place.branch) == (base, f"refs/heads/run/{run}")
            assert status_of(whole.place.root, "push", "origin", "HEAD") != 0
        else:
            assert left > 10
            break
    else:
        pytest.fail(f"a binding takes more than {STEPS} steps")
    for run in repository.worktrees():
        repository.release(run, keep_branch=False)
    assert git(repository.checkout, "worktree", "list", "--porcelain").count("worktree ") == 1
    assert git(repository.checkout, "branch", "--format=%(refname)") == "refs/heads/main"


def half_a_checkout(root: Path, part: Path) -> None:
    (part / "evalwright.json").unlink()
    (part / "index").unlink()
    (part / "index.lock").touch()
    (root / "src/a").unlink()


def no_directory(root: Path, part: Path) -> None:
    shutil.rmtree(root)


def no_part(root: Path, part: Path) -> None:
    shutil.rmtree(part)


def directory_without_mark(root: Path, part: Path) -> None:
    (part / "evalwright.json").unlink()
    shutil.rmtree(root / "src")


def torn_mark(root: Path, part: Path) -> None:
    (part / "evalwright.json").write_text("{")


def part_without_place(root: Path, part: Path) -> None:
    (part / "evalwright.json").unlink()
    (part / "gitdir").unlink()


@pytest.mark.parametrize(
    "damage", [half_a_checkout, no_directory, no_part, directory_without_mark, torn_mark, part_without_place]
)
def test_half_a_worktree_is_made_whole_and_can_be_released(
    repository: Repository, workspace: Workspace, root: Path, base: str, damage: Callable[[Path, Path], None]
) -> None:
    damage(root, workspace.place.git_dir)
    again = repository.bind("R1", base)
    assert (again.candidate(), again.place.root) == (base, root)
    damage(root, again.place.git_dir)
    repository.release("R1")
    assert repository.worktrees() == []
    assert not root.exists()


def test_release_killed_half_way_is_not_taken_for_a_worktree(
    repository: Repository, root: Path, base: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half(path: Path) -> None:
        shutil.rmtree(path / "src")
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("evalwright_plugins.workflow.workspace.binding._open", half)
        with pytest.raises(Killed):
            repository.release("R1")
    assert repository.worktrees() == ["R1"]
    assert repository.bind("R1", base).candidate() == base


def test_links_that_an_agent_laid_are_not_written_through(
    tmp_path: Path, repository: Repository, workspace: Workspace, root: Path, base: str
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("kept\n")
    part = workspace.place.git_dir
    for name in ("gitdir", "config.worktree", "evalwright.json"):
        for laid in (part / name, part / f"{name}.new", part / f"{name}.lock"):
            laid.unlink(missing_ok=True)
            laid.symlink_to(victim)
    (part / "evalwright.json").unlink()
    (part / "evalwright.json").write_text('{"run": "R1"}')
    (root / ".git").unlink()
    (root / ".git").symlink_to(tmp_path / "nothing")
    assert repository.bind("R1", base).dirty() == [".git"]
    shutil.rmtree(root)
    root.symlink_to(tmp_path)
    assert repository.bind("R1", base).candidate() == base
    assert victim.read_text() == "kept\n"
    assert not root.is_symlink()


def test_repository_that_was_moved_keeps_its_worktrees(
    tmp_path: Path, repository: Repository, root: Path, base: str, supervisor: Supervisor
) -> None:
    (root / "src/a").write_text("not committed\n")
    repository.checkout.rename(tmp_path / "moved")
    moved = Repository.find(tmp_path / "moved", supervisor.run).bind("R1", base)
    assert moved.dirty() == ["src/a"]
    assert git(moved.place.root, "status", "--porcelain") == "M src/a"


def bind_in_a_process(path: str, run: str, base: str) -> None:
    with Supervisor() as supervisor:
        Repository.find(Path(path), supervisor.run).bind(run, base)


@pytest.mark.parametrize("runs", [("A", "A", "A"), ("A", "B", "C")], ids=["one run", "three runs"])
def test_processes_that_bind_at_once_do_not_meet(repository: Repository, base: str, runs: tuple[str, ...]) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=bind_in_a_process, args=(str(repository.checkout), run, base)) for run in runs]
    for process in processes:
        process.start()
    for process in processes:
        process.join(100)
    assert [process.exitcode for process in processes] == [0] * len(processes)
    assert repository.worktrees() == sorted({*runs, "R1"})
    for run in set(runs):
        assert repository.bind(run, base).candidate() == base


def test_push_fails_from_the_worktree_and_works_from_the_user_s_checkout(
    tmp_path: Path, repository: Repository, root: Path, base: str
) -> None:
    for name in ("plain", "pushed", "late", "unnamed"):
        git(tmp_path, "init", "--quiet", "--bare", name)
    main = repository.checkout
    git(main, "remote", "add", "plain", str(tmp_path / "plain"))
    git(main, "remote", "add", "with.dots", str(tmp_path / "plain"))
    git(main, "config", "remote.with.dots.pushurl", str(tmp_path / "pushed"))
    git(main, "config", "--add", "remote.with.dots.pushurl", str(tmp_path / "plain"))
    git(main, "config", f"url.{tmp_path / 'plain'}.pushInsteadOf", str(tmp_path / "plain"))
    repository.bind("R1", base)
    git(main, "remote", "add", "late", str(tmp_path / "late"))
    commit(root, src__a="work\n")
    for place in ("plain", "with.dots", "late", str(tmp_path / "unnamed"), f"file://{tmp_path / 'unnamed'}", "."):
        assert status_of(root, "push", place, "HEAD:refs/heads/leaked") != 0, place
        assert status_of(root, "push", "--no-verify", place, "HEAD:refs/heads/leaked") != 0, place
    for name in ("plain", "pushed", "late", "unnamed"):
        assert git(tmp_path / name, "for-each-ref") == ""
    assert git(main, "for-each-ref", "refs/heads/leaked") == ""
    git(main, "push", "--quiet", "plain", "main")
    git(main, "push", "--quiet", "with.dots", "main")
    assert git(tmp_path / "pushed", "rev-parse", "main") == git(tmp_path / "plain", "rev-parse", "main") == base
    git(root, "fetch", "--quiet", "late")


@pytest.mark.parametrize("run", ["", "a/b", "../x", "a..b", "-a", ".a", "a.lock", "a.", "a b", "ä", "a\n", "x" * 101])
def test_id_that_cannot_be_a_branch_or_a_file_is_refused(repository: Repository, base: str, run: str) -> None:
    for act in (lambda: repository.bind(run, base), lambda: repository.release(run), lambda: repository.workspace(run)):
        with pytest.raises(UsageError):
            act()


def test_branch_of_something_else_is_refused(repository: Repository, base: str) -> None:
    main = repository.checkout
    git(main, "branch", "run/taken")
    later = commit(main, src__a="later\n")
    with pytest.raises(RunConflict, match="run/taken exists"):
        repository.bind("taken", later)
    git(main, "checkout", "--quiet", "-b", "run/mine")
    with pytest.raises(GitError, match="already checked out"):
        repository.bind("mine", later)
    git(main, "checkout", "--quiet", "main")
    assert repository.bind("mine", later).head() == later


def test_detached_head_and_a_shallow_clone_can_be_worked_on(
    tmp_path: Path, repository: Repository, supervisor: Supervisor
) -> None:
    commit(repository.checkout, src__a="later\n")
    git(tmp_path, "clone", "--quiet", "--depth=1", f"file://{repository.checkout}", "shallow")
    git(tmp_path / "shallow", "checkout", "--quiet", "--detach")
    shallow = Repository.find(tmp_path / "shallow" / "src", supervisor.run)
    bound = shallow.bind("R1", "HEAD")
    assert bound.candidate() == git(tmp_path / "shallow", "rev-parse", "HEAD")
    assert commit(bound.place.root, src__b="x") == bound.candidate()


def test_repository_is_found_from_a_worktree_of_it(repository: Repository, root: Path, supervisor: Supervisor) -> None:
    found = Repository.find(root / "src", supervisor.run)
    assert (found.common, found.checkout) == (repository.common, repository.checkout)


def test_submodule_is_a_repository_of_its_own(
    tmp_path: Path, repository: Repository, supervisor: Supervisor, base: str
) -> None:
    main = repository.checkout
    git(tmp_path, "clone", "--quiet", str(main), "library")
    git(main, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tmp_path / "library"), "lib")
    found = Repository.find(main / "lib", supervisor.run)
    assert (found.common, found.checkout) == (main / ".git/modules/lib", main / "lib")
    bound = found.bind("R1", base)
    commit(bound.place.root, src__a="in the submodule\n")
    assert bound.dirty() == []
    assert git(main / "lib", "status", "--porcelain") == ""
    assert git(main / "lib", "rev-parse", "HEAD") == base


def test_place_without_a_usable_repository_says_why(tmp_path: Path, supervisor: Supervisor, repository: Repository) -> None:
    with pytest.raises(SourceMissing, match="is not a directory"):
        Repository.find(tmp_path / "nothing", supervisor.run)
    (tmp_path / "plain").mkdir()
    with pytest.raises(UsageError, match="lies in no git repository"):
        Repository.find(tmp_path / "plain", supervisor.run)
    git(tmp_path, "init", "--quiet", "empty")
    with pytest.raises(UsageError, match="has no commit"):
        Repository.find(tmp_path / "empty", supervisor.run)
    git(tmp_path, "clone", "--quiet", "--bare", str(repository.checkout), "bare")
    with pytest.raises(UsageError, match="bare repository"):
        Repository.find(tmp_path / "bare", supervisor.run)
    git(tmp_path / "bare", "worktree", "add", "--quiet", str(tmp_path / "tree"), "main")
    with pytest.raises(UsageError, match="bare repository"):
        Repository.find(tmp_path / "tree", supervisor.run)


def test_work_tree_apart_from_its_git_directory_is_found(tmp_path: Path, supervisor: Supervisor) -> None:
    git(tmp_path, "init", "--quiet", f"--separate-git-dir={tmp_path / 'apart'}", "files")
    base = commit(tmp_path / "files", a="x\n")
    found = Repository.find(tmp_path / "files", supervisor.run)
    assert (found.common, found.checkout) == (tmp_path / "apart", tmp_path / "files")
    assert found.bind("R1", base).candidate() == base


def test_odd_place_and_odd_names_of_files_do_not_matter(tmp_path: Path, supervisor: Supervisor) -> None:
    repository, workspace, base = made(tmp_path / "new\nline 'quoted' ä", supervisor)
    commit(workspace.place.root, x="1")
    assert repository.bind("R1", base).changed(base) == ["x"]
    assert repository.bind("R2", base).candidate() == base
    repository.release("R1")
    assert repository.worktrees() == ["R2"]
