"""What a work tree says of itself when an agent has tried to hide something."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.workflow.repositories import COMMITTER, commit, git

from evalwright.errors import UsageError
from evalwright_plugins.workflow.workspace import CandidateUnfit, GitError, Repository, Workspace, printable


def test_clean_commit_on_the_run_s_branch_is_the_candidate(workspace: Workspace, root: Path, base: str) -> None:
    made = commit(root, src__a="new\n")
    assert workspace.candidate() == made == workspace.head()
    assert workspace.is_ancestor(base, made)
    assert not workspace.is_ancestor(made, base)
    assert workspace.tree(made) == git(root, "rev-parse", "HEAD^{tree}")
    assert workspace.dirty() == []


def swap(root: Path) -> None:
    (root / "src/a").unlink()
    (root / "src/a").mkdir()
    (root / "src/a/inner").write_text("x")


def assume_unchanged(root: Path) -> None:
    git(root, "update-index", "--assume-unchanged", "src/a")
    (root / "src/a").write_text("hidden\n")


def skip_worktree(root: Path) -> None:
    git(root, "update-index", "--skip-worktree", "src/a")
    (root / "src/a").write_text("hidden\n")


def same_size_same_time(root: Path) -> None:
    git(root, "config", "core.trustctime", "false")
    git(root, "config", "core.checkStat", "minimal")
    before = (root / "src/a").stat()
    (root / "src/a").write_text("z\n")
    os.utime(root / "src/a", ns=(before.st_atime_ns, before.st_mtime_ns))


def sparse(root: Path) -> None:
    git(root, "config", "--worktree", "core.sparseCheckout", "true")
    place = Path(git(root, "rev-parse", "--git-path", "info/sparse-checkout"))
    place.parent.mkdir(exist_ok=True)
    place.write_text("/docs/\n")
    (root / "src/a").write_text("hidden\n")


def staged_only(root: Path) -> None:
    (root / "src/a").write_text("staged\n")
    git(root, "add", "src/a")
    (root / "src/a").write_text("a\n")


def no_file_modes(root: Path) -> None:
    git(root, "config", "core.fileMode", "false")
    (root / "src/a").chmod(0o755)


def to_link(root: Path) -> None:
    (root / "src/a").unlink()
    (root / "src/a").symlink_to("b")


def silent_status(root: Path) -> None:
    git(root, "config", "status.showUntrackedFiles", "no")
    git(root, "config", "core.excludesFile", "/dev/stdin")
    (root / "src/a").write_text("x\n")


def elsewhere(root: Path) -> None:
    """Point git to a clean copy of the files."""
    copy = root.parent / "copy"
    git(root, "worktree", "add", "--quiet", "--detach", str(copy))
    git(root, "config", "--worktree", "core.worktree", str(copy))
    (root / "src/a").write_text("x\n")


HIDDEN: list[tuple[Callable[[Path], object], str]] = [
    (assume_unchanged, "src/a"),
    (skip_worktree, "src/a"),
    (same_size_same_time, "src/a"),
    (sparse, "src/a"),
    (staged_only, "src/a"),
    (no_file_modes, "src/a"),
    (to_link, "src/a"),
    (silent_status, "src/a"),
    (elsewhere, "src/a"),
    (lambda root: (root / "src/a").unlink(), "src/a"),
    (lambda root: (root / "new").write_text("x"), "new"),
    (swap, "src/a"),
]


@pytest.mark.parametrize(("hide", "path"), HIDDEN, ids=[str(number) for number in range(len(HIDDEN))])
def test_no_change_is_hidden_from_the_candidate(
    workspace: Workspace, root: Path, hide: Callable[[Path], object], path: str
) -> None:
    hide(root)
    assert path in workspace.dirty()
    with pytest.raises(CandidateUnfit, match=path):
        workspace.candidate()


def test_ignored_files_do_not_spoil_the_candidate(workspace: Workspace, root: Path, base: str) -> None:
    (root / "trace.log").write_text("x")
    assert workspace.candidate() == base


def test_rename_across_the_border_of_the_scope_shows_both_sides(workspace: Workspace, root: Path, base: str) -> None:
    git(root, "mv", "docs/text", "src/text")
    assert workspace.out_of_scope(base, ["src"]) == ["docs/text"]
    git(root, "commit", "--quiet", "-m", "moved")
    git(root, "config", "diff.renames", "copies")
    assert workspace.changed(base) == ["docs/text", "src/text"]
    assert workspace.out_of_scope(base, ["src"]) == ["docs/text"]
    assert workspace.out_of_scope(base, ["docs/"]) == ["src/text"]
    assert workspace.out_of_scope(base, ["."]) == []


def test_scope_is_made_of_whole_names(workspace: Workspace, root: Path, base: str) -> None:
    commit(root, srcs__a="x", src__a="y")
    assert workspace.out_of_scope(base, ["src"]) == ["srcs/a"]
    assert workspace.out_of_scope(base, []) == ["src/a", "srcs/a"]


@pytest.mark.parametrize("prefix", ["/etc", "../other", "src/../..", "", "a\0b"])
def test_scope_that_leads_out_is_refused(workspace: Workspace, base: str, prefix: str) -> None:
    with pytest.raises(UsageError):
        workspace.out_of_scope(base, [prefix])


def test_ignored_file_out_of_scope_counts_with_a_proof_from_before(workspace: Workspace, root: Path, base: str) -> None:
    before = workspace.proof()
    (root / "docs/secret.log").write_text("x")
    (root / "src/fine.log").write_text("x")
    assert workspace.out_of_scope(base, ["src"]) == []
    assert workspace.out_of_scope(base, ["src"], since=before) == ["docs/secret.log"]


def test_forced_ignored_file_is_out_of_scope_once_staged(workspace: Workspace, root: Path, base: str) -> None:
    (root / "docs/secret.log").write_text("x")
    git(root, "add", "--force", "docs/secret.log")
    assert workspace.out_of_scope(base, ["src"]) == ["docs/secret.log"]


def test_names_with_newlines_and_other_bytes_are_told_apart(workspace: Workspace, root: Path, base: str) -> None:
    names = ["new\nline", "tab\tname", os.fsdecode(b"latin-\xe9"), " lead", "-dash", 'quo"te']
    for name in names:
        (root / name).write_text("x")
    assert workspace.changed(base) == sorted(names)
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "odd")
    assert workspace.changed(base) == sorted(names)
    assert workspace.candidate() == workspace.head()
    assert [printable(name) for name in names[:3]] == ["new\\nline", "tab\\tname", "latin-\\xe9"]


def test_digest_tells_committed_and_uncommitted_states_apart(workspace: Workspace, root: Path, base: str) -> None:
    seen = [workspace.diff_digest(base)]
    (root / "src/a").write_text("one\n")
    seen.append(workspace.diff_digest(base))
    (root / "src/a").write_text("two\n")
    seen.append(workspace.diff_digest(base))
    assert workspace.diff_digest(base) == seen[-1]
    (root / "src/a").chmod(0o755)
    seen.append(workspace.diff_digest(base))
    commit(root)
    seen.append(workspace.diff_digest(base))
    (root / "nested").mkdir()
    git(root / "nested", "init", "--quiet")
    (root / "nested/x").write_text("1")
    seen.append(workspace.diff_digest(base))
    (root / "nested/x").write_text("2")
    seen.append(workspace.diff_digest(base))
    assert len(set(seen)) == len(seen)
    assert all(digest.startswith("sha256:") for digest in seen)


def test_head_on_another_branch_or_none_is_no_candidate(workspace: Workspace, root: Path) -> None:
    git(root, "checkout", "--quiet", "--detach")
    with pytest.raises(CandidateUnfit, match="on no branch"):
        workspace.candidate()
    git(root, "checkout", "--quiet", "-b", "other")
    with pytest.raises(CandidateUnfit, match="refs/heads/other"):
        workspace.candidate()


def test_branch_that_is_another_name_is_no_candidate_and_released_alone(
    repository: Repository, workspace: Workspace, base: str
) -> None:
    (workspace.place.common / workspace.place.branch).write_text("ref: refs/heads/main\n")
    with pytest.raises(CandidateUnfit, match="is on refs/heads/main"):
        workspace.candidate()
    repository.release("R1", keep_branch=False)
    assert git(repository.checkout, "for-each-ref", "--format=%(refname) %(objectname)") == f"refs/heads/main {base}"


def test_commit_is_told_anew_however_it_moves(repository: Repository, workspace: Workspace, root: Path, base: str) -> None:
    """By a commit, by packing, by a branch that is another name, and by another one that is checked out."""
    assert workspace.head() == base
    first = commit(root, src__a="one\n")
    assert workspace.head() == first
    git(repository.checkout, "pack-refs", "--all")
    assert workspace.head() == first
    second = commit(root, src__a="two\n")
    assert workspace.head() == second
    branch = workspace.place.common / workspace.place.branch
    branch.write_text("ref: refs/heads/main\n")
    assert workspace.head() == base
    moved = commit(repository.checkout, src__b="three\n")
    assert workspace.head() == moved
    git(root, "checkout", "--quiet", "--detach", second)
    assert workspace.head() == second


def test_branch_that_is_a_link_is_read_by_git(workspace: Workspace, root: Path, base: str) -> None:
    commit(root, src__a="one\n")
    branch = workspace.place.common / workspace.place.branch
    branch.unlink()
    branch.symlink_to("../main")

    assert workspace.head() == base


def test_index_lock_that_was_left_is_in_nobody_s_way(workspace: Workspace, root: Path, base: str) -> None:
    (workspace.place.git_dir / "index.lock").touch()
    assert workspace.candidate() == base
    (root / "src/a").write_text("x\n")
    assert workspace.changed(base) == ["src/a"]


def test_garbage_collection_at_the_same_time_is_in_nobody_s_way(
    repository: Repository, workspace: Workspace, root: Path, base: str
) -> None:
    made = [commit(root, src__a=f"{number}\n") for number in range(5)][-1]
    for _ in range(3):
        words = ["git", "gc", "--quiet", "--force", "--aggressive", "--prune=now"]
        with subprocess.Popen(words, cwd=repository.checkout, env=COMMITTER) as gc:
            while gc.poll() is None:
                assert workspace.candidate() == made
                assert workspace.changed(base) == ["src/a"]
                workspace.proof()
        assert gc.returncode == 0


def test_unfinished_merge_is_no_candidate(workspace: Workspace, root: Path, base: str) -> None:
    commit(root, src__a="one\n")
    git(root, "checkout", "--quiet", "-b", "side", base)
    commit(root, src__b="two\n")
    git(root, "checkout", "--quiet", "run/R1")
    git(root, "merge", "--quiet", "--no-commit", "--no-ff", "side")
    with pytest.raises(CandidateUnfit, match="MERGE_HEAD"):
        workspace.candidate()


def test_commit_with_a_missing_object_is_no_candidate(workspace: Workspace, root: Path) -> None:
    commit(root, src__a="to be lost\n")
    lost = git(root, "rev-parse", "HEAD:src/a")
    (workspace.place.common / "objects" / lost[:2] / lost[2:]).unlink()
    with pytest.raises(GitError):
        workspace.candidate()


def test_nested_repository_is_dirty_and_its_history_is_not_ours(workspace: Workspace, root: Path, base: str) -> None:
    (root / "nested").mkdir()
    git(root / "nested", "init", "--quiet")
    commit(root / "nested", inner="x")
    assert workspace.dirty() == ["nested/"]
    assert workspace.out_of_scope(base, ["src"]) == ["nested/"]


def test_replaced_git_file_leads_nobody_elsewhere(workspace: Workspace, root: Path, base: str) -> None:
    (root / ".git").unlink()
    git(root, "init", "--quiet")
    (root / "src/a").write_text("x\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "of another repository")
    assert workspace.head() == base
    assert workspace.dirty() == [".git", "src/a"]


def test_change_inside_a_submodule_is_seen(tmp_path: Path, workspace: Workspace, root: Path) -> None:
    library = tmp_path / "library"
    library.mkdir()
    git(library, "init", "--quiet")
    commit(library, inner="x")
    git(root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    git(root, "config", "submodule.lib.ignore", "all")
    commit(root)
    assert workspace.candidate() == workspace.head()
    (root / "lib/inner").write_text("y")
    assert workspace.dirty() == ["lib/inner"]
    commit(root / "lib")
    assert workspace.dirty() == ["lib"]
    (root / "lib/.git").write_text("gitdir: /nonexistent\n")
    assert "lib" in workspace.dirty()


def test_newest_reviewed_commit_is_the_last_that_head_comes_from(workspace: Workspace, root: Path, base: str) -> None:
    first = commit(root, src__a="1")
    second = commit(root, src__a="2")
    git(root, "reset", "--quiet", "--hard", first)
    third = commit(root, src__a="3")
    assert workspace.newest_reviewed([base, first, second]) == (first, f"{first}..{third}")
    assert workspace.newest_reviewed([base, first, third]) == (third, f"{third}..{third}")
    assert workspace.newest_reviewed([second, "0" * 40]) is None
    assert workspace.newest_reviewed([]) is None


def test_replacement_objects_and_grafts_are_not_believed(workspace: Workspace, root: Path, base: str) -> None:
    made = commit(root, src__a="x", docs__text="out of scope")
    git(root, "replace", "--graft", made)
    (workspace.place.common / "info/grafts").write_text(f"{made}\n")
    assert workspace.is_ancestor(base, made)
    git(root, "replace", "--force", base, made)
    assert workspace.changed(base) == ["docs/text", "src/a"]


def test_repository_says_what_it_cannot_do(repository: Repository) -> None:
    with pytest.raises(UsageError, match="names no commit"):
        repository.resolve("--output=/tmp/x")
    with pytest.raises(UsageError, match="names no commit"):
        repository.resolve("")
