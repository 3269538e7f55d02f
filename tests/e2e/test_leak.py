"""``audit --leak``: a clean sandbox comes out clean, a leaky one is caught at each place, and a spy that fails is an error."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator
from tests.conftest import shortened

from evalwright.audit.canaries import PLACES
from evalwright.cli.schemas import SCHEMAS

if TYPE_CHECKING:
    from tests.conftest import Answer, Project

Require = Callable[[str], None]
BUBBLE = f"{Path(__file__).parent.parent / 'audit' / 'bubble.py'}:Bubble"
ISOLATED: Mapping[str, dict[str, Any]] = {
    "test bubble": {"use": BUBBLE},
    "bubblewrap": {"use": "bubblewrap"},
    "vm": {"use": "vm", "root": "busybox"},
}
"""Sandboxes that promise ``gold-isolated``: each must come out clean."""
ANSWER = "the right answer, long enough to be told from any other file of this machine"
CASE = {"id": "a", "expect": {"exact": ANSWER}, "gold": {"output": ANSWER}}
MOST = set(PLACES) - {"history", "unknown"}


def leak(project: Project, *words: str, table: Mapping[str, Any] | None = None, **suite: Any) -> Answer:
    """Audit a suite of one case in the sandbox of that table."""
    files = {"fixtures/w/sub/b.txt": "b\n"}
    extra = {"sandbox": dict(table)} if table else {}
    if not (project.path / "evals" / "suites" / "demo").exists():
        project.suite(cases=[CASE], scorers=[{"use": "exact"}], files=files, **extra, **suite)
    return project.call("audit", "demo", "--leak", *words, timeout=120)


def places(answer: Answer) -> set[str]:
    return {hit["place"] for hit in answer.data["leak"]["hits"]}


def tree(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*")}


@pytest.mark.parametrize("name", shortened(ISOLATED, ["bubblewrap"]))
def test_isolated_sandbox_is_clean(project: Project, require: Require, request: pytest.FixtureRequest, name: str) -> None:
    if name == "vm":
        request.getfixturevalue("vm_image")
    else:
        require("bwrap")

    answer = leak(project, "--seconds", "100", table=ISOLATED[name])

    result = answer.data["leak"]
    assert result["hits"] == []
    assert (answer.exit_code, result["promised"], result["complete"]) == (0, True, True)
    assert set(result["places"]) == MOST
    assert result["searched"]["files"] > 100
    Draft202012Validator(SCHEMAS["audit"]).validate(answer.data)


def test_subprocess_is_listed_honestly(project: Project) -> None:
    answer = leak(project, "--seconds", "25")

    result = answer.data["leak"]
    assert answer.exit_code == 6
    assert (result["sandbox"], result["isolation"], result["promised"]) == ("subprocess", "process-tree", False)
    assert places(answer) == MOST
    real = project.path / "evals" / "suites" / "demo" / "cases.jsonl"
    assert {"place": "suite", "path": str(real), "how": "same content"} in result["hits"]


LEAKS: Mapping[str, tuple[list[str], set[str]]] = {
    "the suite itself": (["suite"], {"suite"}),
    "cases": (["cases"], {"expect", "case-id"}),
    "hidden files": (["hidden"], {"hidden"}),
    "reference solution": (["gold"], {"gold"}),
    "snapshot": (["snapshot"], {"snapshot"}),
    "content store": (["store"], {"store", "expect", "hidden", "gold", "case-id"}),
    "evidence of another trial": (["evidence"], {"evidence", "case-id"}),
    "bundle of another trial": (["bundle"], {"expect", "case-id"}),
    "workspaces of other trials": (["workspaces"], {"workspace", "hidden"}),
    "exchange directories": (["exchanges"], {"exchange", "grader", "expect", "case-id"}),
    "the harness's environment": (["environment"], {"environment"}),
    "an open descriptor": (["descriptors"], {"descriptor"}),
}


@pytest.mark.parametrize("name", shortened(LEAKS, ["content store"]))
def test_sandbox_that_leaks_is_caught(project: Project, require: Require, name: str) -> None:
    require("bwrap")
    leaks, expected = LEAKS[name]

    answer = leak(project, table={"use": BUBBLE, "leaks": leaks})

    assert places(answer) == expected
    assert answer.exit_code == 6


@pytest.mark.acceptance
def test_sandbox_that_shows_processes_is_caught(project: Project, require: Require) -> None:
    require("bwrap")

    answer = leak(project, "--seconds", "5", table={"use": BUBBLE, "leaks": ["processes", "caller"]})

    hits = answer.data["leak"]["hits"]
    assert {"command-line", "environment", "process", "descriptor"} <= places(answer)
    assert {hit["path"].rpartition("/")[2] for hit in hits if hit["place"] == "process"} >= {"cmdline", "environ"}
    assert answer.exit_code == 6


@pytest.fixture
def repository(project: Project, require: Require) -> Path:
    """Return the fixture of the suite ``demo``, a repository with one commit."""
    require("git")
    suite = project.suite(cases=[CASE], scorers=[{"use": "exact"}])
    who = {f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **who, "GIT_CONFIG_GLOBAL": "/dev/null"}
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "base"]):
        subprocess.run(["git", *words], cwd=suite / "fixtures" / "w", env=environment, check=True)
    return suite / "fixtures" / "w"


def sandbox_of(project: Project, table: Mapping[str, Any]) -> None:
    """Give the suite ``demo`` another sandbox."""
    file = project.path / "evals" / "suites" / "demo" / "suite.json"
    file.write_text(json.dumps(json.loads(file.read_bytes()) | {"sandbox": table}))


@pytest.mark.acceptance
@pytest.mark.parametrize(("leaks", "expected"), [([], set[str]()), (["git"], {"history"})], ids=["stripped", "shown"])
def test_history_of_a_fixture_is_stripped_or_found(
    project: Project, require: Require, repository: Path, leaks: list[str], expected: set[str]
) -> None:
    require("bwrap")
    sandbox_of(project, {"use": BUBBLE, "leaks": leaks})

    answer = leak(project)

    assert "history" in answer.data["leak"]["places"]
    assert places(answer) == expected
    assert {hit["how"] for hit in answer.data["leak"]["hits"]} <= {"git object"}


def test_what_a_suite_reveals_on_purpose_is_listed(project: Project, require: Require) -> None:
    require("bwrap")

    answer = leak(project, table={"use": BUBBLE}, runner={"argv": ["true"], "reveal_expect": True, "reveal_id": True})

    hits = {(hit["place"], hit["path"]) for hit in answer.data["leak"]["hits"]}
    assert ("expect", "/exchange/case.json") in hits
    assert ("case-id", "/exchange/case.json") in hits


@pytest.mark.parametrize(("leaks", "expected"), [([], set[str]()), (["cases"], {"expect", "case-id"})], ids=["clean", "leaky"])
def test_shell_searches_where_there_is_no_python(
    project: Project, require: Require, leaks: list[str], expected: set[str]
) -> None:
    require("bwrap")
    require("busybox")

    answer = leak(project, table={"use": BUBBLE, "usr": "busybox", "leaks": leaks})

    assert (answer.data["leak"]["spy"], answer.data["leak"]["complete"]) == ("sh", True)
    assert places(answer) == expected


@pytest.mark.acceptance
def test_shell_that_cannot_unpack_a_repository_says_that_it_is_not_complete(
    project: Project, require: Require, repository: Path
) -> None:
    require("bwrap")
    require("busybox")
    sandbox_of(project, {"use": BUBBLE, "usr": "busybox"})

    answer = leak(project)

    assert answer.data["leak"]["complete"] is False
    assert "W_LEAK_SEARCH_INCOMPLETE" in answer.warning_codes
    text = project.call("audit", "demo", "--leak", "--format", "text", timeout=60)
    assert "leak: nothing found so far" in text.stdout
    assert "not everything was searched" in text.stdout
    assert "clean" not in text.stdout


@pytest.mark.parametrize("failure", ["mute", "blind"])
def test_spy_that_sees_nothing_is_an_error_and_not_clean(project: Project, require: Require, failure: str) -> None:
    require("bwrap")

    answer = leak(project, table={"use": BUBBLE, failure: True})

    assert (answer.exit_code, answer.error_codes) == (3, ["E_SANDBOX_FAILED"])
    assert "proves nothing" in answer.envelope["errors"][0]["message"]
    assert not (project.path / "evals" / ".leak-test").exists()


def test_sandbox_that_cannot_open_is_an_error(project: Project) -> None:
    (project.path / "broken.py").write_text(
        "from evalwright_plugins.sandboxes.subprocess import SubprocessSandbox\n"
        "from evalwright.errors import SandboxError\n"
        "class Broken(SubprocessSandbox):\n"
        "    def open(self, request):\n"
        "        raise SandboxError('no room for a place')\n"
    )

    answer = leak(project, "--sandbox", f"{project.path / 'broken.py'}:Broken", "--seconds", "1")

    assert (answer.exit_code, answer.error_codes) == (3, ["E_SANDBOX_FAILED"])
    assert "no room for a place" in answer.envelope["errors"][0]["message"]


def test_nothing_stays_behind(project: Project, require: Require) -> None:
    require("bwrap")
    project.suite(cases=[CASE], scorers=[{"use": "exact"}])
    project.call("run", "demo", "--run-id", "mine")
    before = tree(project.path)

    leaky = leak(project, "--sandbox", BUBBLE)

    assert leaky.exit_code == 0
    assert tree(project.path) == before


def test_what_a_killed_test_left_is_gone_after_the_next_run_or_prune(project: Project) -> None:
    project.suite(cases=[CASE], scorers=[{"use": "exact"}])
    for words in (["run", "demo"], ["jobs", "prune", "--yes"]):
        code = "from evalwright.workspace import owned_name; print(owned_name())"
        owner = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
        left = project.path / "evals" / ".leak-test"
        (left / f"{owner}-0a1b" / "evals").mkdir(parents=True)

        project.call(*words, "--json")

        assert not left.exists()


@pytest.mark.acceptance
def test_answer_that_was_copied_into_the_fixture_is_found(project: Project, require: Require) -> None:
    require("bwrap")
    solution = "def solve(): return 'long enough to be told from any other file of this machine'\n"
    files = {"gold/a/solve.py": solution, "fixtures/w/notes/solve.old": solution}
    project.suite(cases=[CASE | {"gold": "gold/a"}], scorers=[{"use": "exact"}], files=files, sandbox={"use": "bubblewrap"})

    answer = leak(project)

    assert answer.data["leak"]["hits"] == [{"place": "suite", "path": "/workspace/notes/solve.old", "how": "same content"}]
    assert answer.exit_code == 6


@pytest.mark.acceptance
@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else can make a directory that is closed to the agent")
def test_directory_that_an_agent_can_enter_and_not_list_is_named(project: Project, require: Require) -> None:
    require("bwrap")
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        (Path(name) / "closed").mkdir(mode=0o711)

        answer = leak(project, table={"use": "bubblewrap", "read_only": [name]})

    result = answer.data["leak"]
    assert (result["hits"], result["complete"]) == ([], False)
    assert [left["path"] for left in result["left_out"]] == [f"{name}/closed"]
    assert "W_LEAK_SEARCH_INCOMPLETE" in answer.warning_codes


@pytest.mark.acceptance
def test_suite_of_another_place_and_form_needs_no_project(project: Project, require: Require) -> None:
    require("bwrap")
    suite = project.suite(native=False, cases=[CASE], scorers=[{"name": "exact"}])
    suite.rename(project.path / "mine")
    shutil.rmtree(project.path / "evals")
    before = tree(project.path)

    answer = project.call("audit", "./mine", "--leak", "--sandbox", BUBBLE, timeout=60)

    assert (answer.data["leak"]["hits"], answer.data["leak"]["complete"]) == ([], True)
    assert tree(project.path) == before


@pytest.mark.acceptance
def test_interrupted_test_leaves_nothing(project: Project, require: Require) -> None:
    require("bwrap")
    project.suite(cases=[CASE], scorers=[{"use": "exact"}], sandbox={"use": BUBBLE, "usr": "whole"})
    before = tree(project.path)
    process = project.start("audit", "demo", "--leak", "--json")
    pause = threading.Event()
    while process.poll() is None and not list((project.path / "evals").glob(".leak-test/*/signals/held")):
        pause.wait(0.02)

    process.send_signal(signal.SIGTERM)
    stdout, _ = process.communicate(timeout=60)

    assert (process.returncode, b"E_INTERRUPTED" in stdout) == (130, True)
    assert tree(project.path) == before


@pytest.mark.acceptance
def test_text_says_where_and_what_to_do(project: Project, require: Require) -> None:
    require("bwrap")
    leak(project, table={"use": BUBBLE, "leaks": ["hidden"]})

    text = project.call("audit", "demo", "--leak", "--format", "text", timeout=60).stdout

    assert "can reach gold in 1 place." in text
    assert "✗ hidden: hidden files\n      /leaked/0/canary.txt\n" in text
    assert "promises gold-isolated and breaks it" in text


def test_seconds_belong_to_leak(project: Project) -> None:
    project.suite(cases=[CASE], scorers=[{"use": "exact"}])

    answer = project.call("audit", "demo", "--seconds", "5")

    assert answer.exit_code == 1
    assert answer.envelope["errors"][0]["hint"] == "add --leak"
