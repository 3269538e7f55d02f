"""Ways to the answer: history, names, environment, paths. A runner sees its task and its workspace, and nothing of the gold."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.coordinate import RunRequest, Stop, run_suite
from evalwright.errors import SuiteError
from evalwright.hooks import Observers
from evalwright.report import Projection
from evalwright.rundir import Layout
from evalwright.settings import Settings
from evalwright.store import DirectoryStore
from evalwright.suite import load_suite

if TYPE_CHECKING:
    from tests.conftest import Project

Shell = Callable[..., dict[str, Any]]
GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"} | {
    f"GIT_{who}_{what}": f"{what.lower()}@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def ignored(code: str, message: str) -> None:
    """Take a warning and do nothing."""


def carry_out(project: Project, suite: Path, **settings: Any) -> Projection:
    """Run a suite in this process."""
    evals = project.path / "evals"
    request = RunRequest(
        checked=load_suite(suite),
        layout=Layout(evals, evals / "runs"),
        settings=Settings(evals=evals, jobs=4, **settings),
        run_id="r",
    )
    return run_suite(request, stop=Stop(), observers=lambda complain: Observers((), complain), warn=ignored).report


def said(project: Project, case_id: str = "a") -> str:
    return project.artifact("r", case_id, "runner.stdout.txt").read_text()


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *words], cwd=directory, env={**GIT, "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def committed(directory: Path, message: str) -> str:
    git(directory, "add", "-A")
    git(directory, "commit", "-q", "--allow-empty", "-m", message)
    return git(directory, "rev-parse", "HEAD")


@pytest.fixture
def repository(project: Project, require: Callable[[str], None]) -> Path:
    """Return the fixture of a suite ``demo`` (not yet written) as a repository with one commit."""
    require("git")
    directory = project.path / "evals" / "suites" / "demo" / "fixtures" / "w"
    directory.mkdir(parents=True)
    git(directory, "init", "-q", "-b", "main")
    (directory / "a.txt").write_text("base\n")
    committed(directory, "base")
    return directory


def suite_on(repository: Path, runner: dict[str, Any]) -> Path:
    suite = repository.parent.parent
    document = {"schema_version": 2, "name": "demo", "runner": runner, "scorers": [{"use": "exact"}]}
    (suite / "suite.json").write_text(json.dumps(document))
    case = {"id": "a", "task": "t", "workspace": "fixtures/w", "expect": {"exact": "never"}}
    (suite / "cases.jsonl").write_text(json.dumps(case) + "\n")
    return suite


SEARCH = """
git log --all --reflog --format=%H%n%B; git reflog --all; git show ORIG_HEAD; git show FETCH_HEAD; git stash list
git fsck --lost-found --unreachable --full; git tag; git remote -v; git branch -a; git notes list; git worktree list
git rev-list --all --objects; git config --list --local; ls -R .git; cat .git/packed-refs .git/HEAD .git/config
for o in $(git cat-file --batch-check --batch-all-objects | cut -d' ' -f1); do git cat-file -p $o; done
grep -ra GOLD . && echo FOUND-GREP
git cat-file -e $(cat "$EVALWRIGHT_TASK_FILE") 2>/dev/null && echo FOUND-OBJECT
git status --short; echo status=$?; git rev-parse HEAD
"""


def test_gold_commit_that_was_reset_away_is_nowhere_in_the_workspace(
    project: Project, shell_runner: Shell, repository: Path
) -> None:
    base = git(repository, "rev-parse", "HEAD")
    (repository / "a.txt").write_text("GOLD solution\n")
    gold = committed(repository, "GOLD commit")
    git(repository, "tag", "later", gold)
    git(repository, "branch", "fixed", gold)
    git(repository, "notes", "add", "-m", "GOLD note", base)
    git(repository, "remote", "add", "origin", "https://user:GOLDtoken@example.org/x.git")
    git(repository, "update-ref", "refs/remotes/origin/main", gold)
    git(repository, "reset", "-q", "--hard", base)
    (repository / "stashed.txt").write_text("GOLD stash\n")
    git(repository, "stash", "-u", "-q")
    (repository / ".git" / "hooks" / "post-checkout").write_text("#!/bin/sh\necho GOLD hook\n")
    (repository / ".git" / "description").write_text("GOLD description\n")
    suite = suite_on(repository, shell_runner(SEARCH))
    line = (suite / "cases.jsonl").read_text().replace('"t"', json.dumps(gold))
    (suite / "cases.jsonl").write_text(line)

    carry_out(project, suite)

    text = said(project)
    assert "GOLD" not in text
    assert "FOUND" not in text
    assert gold not in text
    assert "later" not in text
    assert "status=0" in text
    assert text.rstrip().endswith(base)


def test_uncommitted_and_staged_changes_of_a_fixture_arrive_in_the_working_tree(
    project: Project, shell_runner: Shell, repository: Path
) -> None:
    (repository / "a.txt").write_text("edited\n")
    (repository / "staged.txt").write_text("staged\n")
    git(repository, "add", "staged.txt")

    carry_out(project, suite_on(repository, shell_runner("cat a.txt staged.txt; git diff --stat; git log --oneline")))

    assert "edited\nstaged\n" in said(project)
    assert "a.txt | 2 +-" in said(project)


def test_repository_of_a_suite_that_is_named_by_a_relative_path_works_in_the_workspace(
    project: Project, shell_runner: Shell, repository: Path
) -> None:
    suite_on(repository, shell_runner("git log --oneline; git status --short; echo status=$?"))

    answer = project.call("run", "demo", "--run-id", "r")

    assert answer.exit_code == 0
    assert "base" in said(project)
    assert "status=0" in said(project)


def test_index_and_working_tree_have_the_state_that_the_fixture_has(
    project: Project, shell_runner: Shell, repository: Path
) -> None:
    for name in ("kept.txt", "gone.txt", "cached.txt", "edited.txt", "both.txt"):
        (repository / name).write_text(f"{name}\n")
    committed(repository, "more")
    (repository / ".git" / "info" / "exclude").write_text("*.log\n")
    (repository / "noise.log").write_text("ignored\n")
    (repository / "new \u00e9.txt").write_text("new\n")
    (repository / "untracked.txt").write_text("untracked\n")
    (repository / "both.txt").write_text("staged\n")
    git(repository, "add", "new \u00e9.txt", "both.txt")
    git(repository, "rm", "-q", "gone.txt")
    git(repository, "rm", "-q", "--cached", "cached.txt")
    (repository / "edited.txt").write_text("edited\n")
    wanted = git(repository, "status", "--short")

    carry_out(project, suite_on(repository, shell_runner("git status --short; git fsck --full --strict && echo sound")))

    assert said(project).splitlines() == [*wanted.splitlines(), "sound"]
    assert {"A ", "M ", "D ", "??"} <= {line[:2] for line in said(project).splitlines()}


def test_what_is_only_in_the_index_does_not_reach_the_workspace(
    project: Project, shell_runner: Shell, repository: Path
) -> None:
    for name in ("a.txt", "new.txt"):
        (repository / name).write_text("GOLD staged\n")
    git(repository, "add", "-A")
    (repository / "a.txt").write_text("base\n")
    (repository / "new.txt").unlink()

    carry_out(project, suite_on(repository, shell_runner(SEARCH)))

    assert "GOLD" not in said(project)
    assert "FOUND" not in said(project)


def test_first_commit_may_be_staged_and_not_made(project: Project, shell_runner: Shell, require: Callable[[str], None]) -> None:
    require("git")
    directory = project.path / "evals" / "suites" / "demo" / "fixtures" / "w"
    directory.mkdir(parents=True)
    git(directory, "init", "-q", "-b", "main")
    (directory / "a.txt").write_text("a\n")
    git(directory, "add", "a.txt")

    carry_out(
        project,
        suite_on(directory, shell_runner("git status --short; git commit -qm x --author 'a <a@b>' 2>&1; git show :a.txt")),
    )

    assert said(project).startswith("A  a.txt\n")
    assert said(project).endswith("a\n")


def test_every_other_place_that_can_hold_gold_is_gone(
    project: Project, shell_runner: Shell, repository: Path, tmp_path: Path
) -> None:
    base = git(repository, "rev-parse", "HEAD")
    other = tmp_path / "other"
    git(tmp_path, "clone", "-q", str(repository), str(other))
    (other / "a.txt").write_text("GOLD elsewhere\n")
    gold = committed(other, "GOLD commit")
    inside = repository / ".git"
    (inside / "objects" / "info" / "alternates").write_text(f"{other}/.git/objects\n")
    git(repository, "replace", base, gold)
    (inside / "packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted\n{gold} refs/heads/GOLD\n")
    for name in ("ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "CHERRY_PICK_HEAD", "BISECT_LOG"):
        (inside / name).write_text(f"{gold}\n")
    for name in ("hooks/post-checkout", "lfs/objects/x", "modules/m/HEAD", "worktrees/w/HEAD", "rr-cache/x", "info/GOLD"):
        (inside / name).parent.mkdir(parents=True, exist_ok=True)
        (inside / name).write_text("GOLD\n")
    git(repository, "config", "http.extraHeader", "Authorization: GOLD")
    git(repository, "config", "alias.x", "!echo GOLD")
    suite = suite_on(repository, shell_runner(SEARCH + "ls .git .git/hooks; git x\n"))
    (suite / "cases.jsonl").write_text((suite / "cases.jsonl").read_text().replace('"t"', json.dumps(gold)))

    carry_out(project, suite)

    text = said(project)
    assert "GOLD" not in text
    assert "FOUND" not in text
    assert gold not in text
    assert "status=0" in text
    for name in ("ORIG_HEAD", "FETCH_HEAD", "hooks", "lfs", "modules", "worktrees", "logs"):
        assert name not in text.split()


def test_prepared_repository_depends_on_nothing_but_the_fixture(repository: Path, tmp_path: Path) -> None:
    (repository / "staged.txt").write_text("staged\n")
    git(repository, "add", "staged.txt")
    first = DirectoryStore(tmp_path / "one").put_fixture(repository)
    for path in repository.rglob("*"):
        os.utime(path, (1, 1), follow_symlinks=False)
    git(repository, "gc", "-q")

    assert DirectoryStore(tmp_path / "two").put_fixture(repository) == first


@pytest.mark.parametrize(("kind", "why"), [("pointer", "pointer to a git directory"), ("link", "link to a git directory")])
def test_repository_whose_git_directory_lies_elsewhere_is_refused(repository: Path, kind: str, why: str) -> None:
    suite = suite_on(repository, {"argv": ["true"]})
    (repository / ".git").rename(repository / "real")
    if kind == "pointer":
        (repository / ".git").write_text("gitdir: real\n")
    else:
        (repository / ".git").symlink_to("real")

    with pytest.raises(SuiteError) as caught:
        load_suite(suite)

    assert why in " ".join(record["message"] for record in caught.value.records())


def test_shallow_clone_works_in_the_workspace(project: Project, shell_runner: Shell, repository: Path, tmp_path: Path) -> None:
    origin = tmp_path / "origin"
    repository.rename(origin)
    committed(origin, "second")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{origin}", str(repository))

    carry_out(project, suite_on(repository, shell_runner("git log --oneline; echo log=$?; git status --short; echo status=$?")))

    assert "second" in said(project)
    assert "log=0" in said(project)
    assert "status=0" in said(project)


@pytest.mark.parametrize(("words", "commits"), [(["--object-format=sha256"], 1), ([], 0)], ids=["sha256", "no commit"])
def test_unusual_repository_works_in_the_workspace(
    project: Project, shell_runner: Shell, require: Callable[[str], None], words: list[str], commits: int
) -> None:
    require("git")
    directory = project.path / "evals" / "suites" / "demo" / "fixtures" / "w"
    directory.mkdir(parents=True)
    git(directory, "init", "-q", "-b", "main", *words)
    (directory / "a.txt").write_text("a\n")
    if commits:
        committed(directory, "first")

    carry_out(project, suite_on(directory, shell_runner("git status --short --branch; echo status=$?; ls a.txt")))

    assert "status=0" in said(project)
    assert "main" in said(project)
    assert "a.txt" in said(project)


def test_agent_finds_no_repository_around_its_workspace(project: Project, shell_runner: Shell, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    place = tmp_path / "workspaces"
    place.mkdir()
    runner = shell_runner("pwd; ls; git rev-parse --show-toplevel; git log; echo code=$?")
    suite = project.suite(runner=runner, cases=[{"id": "a", "expect": {"exact": "never"}}])

    carry_out(project, suite, workspaces=place)

    assert said(project).startswith(str(place))
    assert said(project).splitlines()[1:] == ["a.txt", "code=128"]


LOOK = """
echo "== env"; env
echo "== cwd"; pwd; readlink /proc/self/cwd
echo "== self"; tr '\\0' '\\n' < /proc/self/environ; tr '\\0' ' ' < /proc/self/cmdline; cat /proc/self/cgroup
echo "== case"; cat "$EVALWRIGHT_CASE_FILE" "$EVALCTL_CASE_FILE"
echo "== exchange"; ls -R "$(dirname "$EVALWRIGHT_CASE_FILE")/.."; cat "$EVALWRIGHT_TASK_FILE"
hostname
"""


@pytest.mark.parametrize("sandbox", ["subprocess", "spoolctl"])
def test_nothing_shown_to_the_agent_names_case_suite_run_or_answer(
    project: Project, shell_runner: Shell, require: Callable[[str], None], sandbox: str
) -> None:
    require("python:spoolctl" if sandbox == "spoolctl" else "sh")
    case = {
        "id": "two-reverts-004",
        "expect": {"exact": "the-expected-answer", "text_contains": ["contained-words"]},
        "workspace": "fixtures/two-reverts-004",
        "tags": ["tag-of-it"],
        "split": "split-of-it",
        "human": {"verdict": "human-said"},
        "hidden": "hidden/two-reverts-004",
        "gold": "gold/two-reverts-004",
    }
    files = {
        "fixtures/two-reverts-004/f.txt": "f\n",
        "hidden/two-reverts-004/test_it.py": "hidden-content\n",
        "gold/two-reverts-004/f.txt": "gold-content\n",
    }
    runner = shell_runner(LOOK)
    suite = project.suite("secret-suite-name", runner=runner, cases=[case], files=files, sandbox=sandbox)

    carry_out(project, suite)

    text = said(project, "two-reverts-004")
    assert "== exchange" in text
    for word in ("the-expected-answer", "contained-words", "human-said", "hidden-content", "gold-content", "secret-suite-name"):
        assert word not in text
    assert "two-reverts-004" not in text, [line for line in text.splitlines() if "two-reverts-004" in line]
    for word in ("tag-of-it", "split-of-it"):
        assert word not in text.partition("== case")[0]


def test_revealing_is_a_choice_of_the_suite_and_warned_about(project: Project, shell_runner: Shell) -> None:
    runner = shell_runner('cat "$EVALWRIGHT_CASE_FILE"', reveal_expect=True, reveal_id=True)
    suite = project.suite(runner=runner, cases=[{"id": "open-case", "expect": {"exact": "shown-answer"}}])

    carry_out(project, suite)

    assert "shown-answer" in said(project, "open-case")
    assert "open-case" in said(project, "open-case")
    assert [warning["code"] for warning in load_suite(suite).warnings] == ["W_GOLD_REVEALED"]


@pytest.mark.parametrize("allowed", [[], ["DATABASE_URL"]])
def test_agent_gets_the_documented_base_and_what_is_allowed_and_nothing_else(project: Project, allowed: list[str]) -> None:
    planted = {"DATABASE_URL": "x://db", "CI_TOKEN": "abcdefghij", "GIT_DIR": "/x", "PYTHONPATH": "/y", "LD_DEBUG_NO": "z"}
    suite = project.suite(
        runner={"argv": ["/usr/bin/env"], "env_allowlist": allowed}, cases=[{"id": "a", "expect": {"exact": ""}}]
    )
    os.environ.update(planted)
    try:
        carry_out(project, suite)
    finally:
        for name in planted:
            del os.environ[name]

    names = {line.partition("=")[0] for line in said(project).splitlines()}
    ours = {name for name in names if name.startswith(("EVALWRIGHT_", "EVALCTL_"))}
    assert names - ours == {"HOME", "LANG", "PATH", "TMPDIR", "GIT_CEILING_DIRECTORIES", *allowed}
    paths = {"CASE_FILE", "DIFF_FILE", "OUTPUT_FILE", "TASK_FILE", "TRANSCRIPT_FILE", "USAGE_FILE", "WORKSPACE"}
    assert {name.partition("_")[2] for name in ours} == {*paths, "REPEAT", "SEED"}


def test_run_directory_and_suite_are_at_no_relative_path_from_the_workspace(project: Project, shell_runner: Shell) -> None:
    look = 'd=.; for i in 1 2 3 4; do d=$d/..; ls "$d"; ls "$d"/*suite* "$d"/cases* 2>/dev/null; done; pwd'
    suite = project.suite(runner=shell_runner(look), cases=[{"id": "a", "expect": {"exact": "never"}}])

    carry_out(project, suite)

    workspace = Path(said(project).splitlines()[-1])
    run = project.run_dir("r").resolve()
    assert not {"suite-snapshot", "cases.jsonl", "suite.json", "run.json"} & set(said(project).split())
    assert not run.is_relative_to(workspace.parent)
    assert not workspace.is_relative_to(run)
    assert not workspace.exists()


def test_trials_of_one_run_share_no_directory_and_no_temporary_file(project: Project, shell_runner: Shell) -> None:
    line = 'ls -A "$HOME" "$TMPDIR" .; echo mine > "$HOME/h"; echo mine > "$TMPDIR/t"; echo mine > w'
    cases = [{"id": f"c{number}", "expect": {"exact": "never"}} for number in range(3)]
    suite = project.suite(runner=shell_runner(line), cases=cases)

    carry_out(project, suite)

    for number in range(3):
        assert "mine" not in said(project, f"c{number}")
        words = [word for word in said(project, f"c{number}").split() if not word.startswith("/") and word != ".:"]
        assert words == ["a.txt"]


def test_change_of_one_trial_never_reaches_the_fixture_or_another_trial(project: Project, shell_runner: Shell) -> None:
    line = "cat a.txt; chmod u+w a.txt; echo changed >> a.txt; python3 -c \"open('a.txt','r+').write('X')\""
    cases = [{"id": f"c{number}", "expect": {"exact": "a\n"}} for number in range(4)]
    suite = project.suite(runner=shell_runner(line), cases=cases)

    report = carry_out(project, suite)

    assert report.ok
    assert (suite / "fixtures/w/a.txt").read_text() == "a\n"


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("peek", "../case2/expected.json"),
        ("abs", "/etc/passwd"),
        ("loop", "."),
        ("sub/up", "../../case2"),
        ("sub/self", "../sub"),
        ("through", "sub/../../case2/expected.json"),
        ("chain", "peer"),
    ],
)
def test_fixture_link_that_leads_out_is_named_before_any_run(project: Project, name: str, target: str) -> None:
    suite = project.suite(cases=[{"id": "a", "expect": {"exact": ""}}], files={"fixtures/case2/expected.json": "{}"})
    fixture = suite / "fixtures" / "w"
    (fixture / "sub").mkdir()
    (fixture / "ok").symlink_to("./a.txt")
    if name == "chain":
        (fixture / "peer").symlink_to("../case2")
    (fixture / name).symlink_to(target)

    with pytest.raises(SuiteError) as caught:
        load_suite(suite)

    messages = " ".join(record["message"] for record in caught.value.records())
    assert name in messages
    assert "ok" not in [word.strip(":,") for word in messages.split()]


def test_link_inside_a_fixture_works_in_the_workspace(project: Project, shell_runner: Shell) -> None:
    suite = project.suite(
        runner=shell_runner("cat ok; readlink ok; readlink none"), cases=[{"id": "a", "expect": {"exact": "x"}}]
    )
    (suite / "fixtures/w/ok").symlink_to("./a.txt")
    (suite / "fixtures/w/none").symlink_to("not-there-yet")

    carry_out(project, suite)

    assert said(project) == "a\n./a.txt\nnot-there-yet\n"


def test_resumable_record_and_snapshot_are_closed_to_other_users(project: Project, shell_runner: Shell) -> None:
    suite = project.suite(runner=shell_runner("true"), cases=[{"id": "a", "expect": {"exact": ""}}])

    carry_out(project, suite)

    assert project.run_dir("r").stat().st_mode & 0o077 == 0
