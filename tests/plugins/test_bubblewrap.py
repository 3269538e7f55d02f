"""The sandbox ``bubblewrap`` as a suite uses it: what agents and graders see, how they end, and what is refused before."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from pydantic import ValidationError
from tests.conftest import Project
from tests.plugins.bubbles import ENV, Open, opening
from tests.plugins.loopback_servers import Wire, serving

from evalwright.errors import SandboxError
from evalwright.interfaces import Command, Deadline, Mount, SandboxRequest, Session
from evalwright.model import Completed
from evalwright_plugins.sandboxes.bubblewrap import BubblewrapConfig, BubblewrapSandbox

Shell = Callable[..., dict[str, Any]]
PRESENT = {"id": "a", "expect": {"exit_code": 0}}
SCORERS = [{"name": "exit-code"}]


@pytest.fixture(autouse=True)
def _component(require: Callable[[str], None]) -> None:
    require("bwrap")


@pytest.fixture
def ground() -> Iterator[Path]:
    """Return a directory that every user can traverse; pytest's own are closed."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="evalwright-bwrap-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.fixture
def opened(ground: Path) -> Iterator[Open]:
    """Return what opens a session for a configuration and a request."""
    with opening(ground) as opened:
        yield opened


def sh(session: Session, script: str, **fields: Any) -> Completed:
    values: dict[str, Any] = {"env": ENV, "timeout": 20} | fields
    return session.execute(Command(argv=["/bin/sh", "-c", script], **values))


def test_commands_are_a_user_without_rights(opened: Open) -> None:
    said = sh(opened(), "id -u; grep CapEff /proc/self/status; grep NoNewPrivs /proc/self/status; hostname").stdout.text.split()
    assert said == ["1000", "CapEff:", "0000000000000000", "NoNewPrivs:", "1", "sandbox"]


def test_nothing_can_be_written_but_workspace_exchange_home_and_temporary_places(opened: Open) -> None:
    script = "for d in $(find / -xdev -type d 2>/dev/null) $(cut -d ' ' -f 5 /proc/self/mountinfo); do"
    script += " touch $d/probe 2>/dev/null && echo $d; done"
    written = set(sh(opened(), script).stdout.text.split())
    assert written == {"/dev/shm", "/tmp", "/run", "/workspace", "/exchange", "/home/agent"}


def test_a_command_line_inside_tells_no_path_and_no_variable(opened: Open) -> None:
    session = opened()
    said = sh(session, "cat /proc/*/cmdline /proc/1/environ | tr '\\0' ' '", env=ENV | {"TOKEN": "a-secret"}).stdout.text
    assert str(session.request.workspace) not in said  # type: ignore[attr-defined]  # a session of this host
    assert "TOKEN=a-secret" not in said.replace(sh(session, "cat /proc/self/environ").stdout.text, "")


def test_home_is_kept_between_commands_and_tmp_is_not(opened: Open) -> None:
    session = opened()
    sh(session, "echo kept > /home/agent/f; echo gone > /tmp/f")
    done = sh(session, "cat /home/agent/f; cat /tmp/f")
    assert (done.stdout.text, done.exit_code) == ("kept\n", 1)


def test_temporary_files_are_bounded(opened: Open) -> None:
    done = sh(opened({"temporary_bytes": 1 << 20}), "head -c 3000000 /dev/zero > /tmp/f; wc -c < /tmp/f")
    assert int(done.stdout.text) <= 1 << 20


def test_a_readonly_request_keeps_the_workspace_as_it_is(opened: Open) -> None:
    session = opened(readonly=True)
    session.put(b"x", PurePosixPath("/workspace/f"))
    assert sh(session, "cat f && ! touch g && touch /exchange/g").exit_code == 0


def test_a_mount_is_seen_where_the_request_says_even_if_only_its_owner_can_reach_it(opened: Open, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "f").write_text("mounted")
    (closed / "f").chmod(0o600)
    session = opened(mounts=[Mount(source=closed, target=PurePosixPath("/agent"))])
    assert session.inside(closed) == PurePosixPath("/agent")
    assert sh(session, "cat /agent/f && ! touch /agent/g").stdout.text == "mounted"


def test_a_path_of_the_suite_is_seen_read_only(opened: Open, ground: Path) -> None:
    tool = ground / "tool"
    tool.mkdir(mode=0o755)
    (tool / "f").write_text("tool")
    assert sh(opened({"read_only": [str(tool)]}), f"cat {tool}/f && ! touch {tool}/g").stdout.text == "tool"


def test_the_time_limit_lets_a_command_end_by_itself(opened: Open) -> None:
    session = opened()
    done = sh(session, "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done", timeout=1.0, grace=10.0)
    assert done.timed_out
    assert done.stdout.text == "up\nbye\n"


def test_children_that_end_soon_are_waited_for(opened: Open) -> None:
    done = sh(opened(), "(sleep 0.05; echo done > late) & exit 0")
    assert (done.exit_code, done.leaked_processes) == (0, 0)


def test_a_program_that_cannot_be_executed_is_told_from_one_that_fails(opened: Open) -> None:
    session = opened()
    session.put(b"text", PurePosixPath("/workspace/plain"))
    missing = session.execute(Command(argv=["no-such-program"], env=ENV))
    denied = session.execute(Command(argv=["/workspace/plain"], env=ENV))
    printed = sh(session, "echo 'bwrap: execvp x: No such file or directory' >&2; exit 1")
    assert (missing.spawn_errno, denied.spawn_errno) == (2, 13)
    assert (printed.exit_code, printed.spawn_error) == (1, None)


def test_the_harness_follows_no_link_that_an_agent_left(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("of the host")
    session = opened()
    sh(session, f"ln -s {tmp_path} d; ln -s {tmp_path}/f f")
    for name in ("d/f", "f"):
        with pytest.raises(OSError, match=r"links|directory"):
            session.get(session.workspace / name, max_bytes=100)
    with pytest.raises(OSError, match="directory"):
        session.put(b"x", session.workspace / "d" / "new")
    session.put(b"mine", session.workspace / "f")
    assert ((tmp_path / "f").read_text(), list(tmp_path.iterdir())) == ("of the host", [tmp_path / "f"])


def test_what_is_put_inside_belongs_to_the_commands_user(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "d/e/f").write_text("x")
    session = opened()
    session.put(tmp_path / "d", PurePosixPath("/workspace/new/d"))
    assert sh(session, "echo y >> new/d/e/f && touch new/g && cat new/d/e/f").stdout.text == "xy\n"


def test_an_unknown_network_is_refused(opened: Open) -> None:
    with pytest.raises(SandboxError, match="carrier-pigeon"):
        opened(network="carrier-pigeon")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives its workspaces to another user")
def test_root_is_told_which_directory_keeps_the_commands_user_out(ground: Path) -> None:
    (ground / "closed").mkdir(mode=0o700)
    for name in ("w", "x"):
        (ground / "closed" / name).mkdir()
    sandbox = BubblewrapSandbox(BubblewrapConfig(), None)  # type: ignore[arg-type]  # it asks its host nothing
    with pytest.raises(SandboxError, match=f"{ground}/closed is closed") as caught:
        sandbox.open(SandboxRequest(owner="r/c/1", workspace=ground / "closed/w", exchange=ground / "closed/x"))
    assert "EVALWRIGHT_WORKSPACES" in str(caught.value.hint)


def test_a_machine_without_bwrap_refuses_the_run_before_its_first_trial(project: Project, shell_runner: Shell) -> None:
    project.suite(runner=shell_runner("true"), cases=[PRESENT], sandbox="bubblewrap", scorers=SCORERS)
    (project.path / "bin").mkdir()
    for name in ("git", "sh"):
        os.symlink(str(shutil.which(name)), project.path / "bin" / name)
    answer = project.call("run", "demo", "--run-id", "r", "--json", env={"PATH": str(project.path / "bin")})
    assert answer.exit_code != 0
    assert "apt-get install bubblewrap" in json.dumps(answer.envelope["errors"])
    assert not list(project.path.glob("evals/runs/r/cases/*"))


def test_a_path_that_does_not_exist_refuses_the_run_before_its_first_trial(project: Project, shell_runner: Shell) -> None:
    sandbox = {"use": "bubblewrap", "read_only": ["/no/such/place"]}
    project.suite(runner=shell_runner("true"), cases=[PRESENT], sandbox=sandbox, scorers=SCORERS)
    answer = project.call("run", "demo", "--run-id", "r", "--json")
    assert "read_only: /no/such/place" in json.dumps(answer.envelope["errors"])


def test_a_suite_that_requires_isolation_runs_here_and_nowhere_less(project: Project, shell_runner: Shell) -> None:
    requires = ["gold-isolated", "network-off", "pid-isolated", "fs-isolated"]
    project.suite(runner=shell_runner("true"), cases=[PRESENT], requires=requires, scorers=SCORERS)
    refused = project.call("run", "demo", "--json")
    assert (refused.exit_code, refused.error_codes) == (2, ["E_CAPABILITY_MISSING"])
    assert "bubblewrap" in json.dumps(refused.envelope["errors"])
    answer = project.call("run", "demo", "--sandbox", "bubblewrap", "--run-id", "r", "--json")
    assert (answer.exit_code, answer.warning_codes) == (0, [])
    assert project.record("r", "a", "runner.json")["isolation"] == "namespaces"


def test_an_agent_finds_neither_suite_nor_run_and_its_changes_arrive(project: Project, shell_runner: Shell) -> None:
    script = f"ls {project.path} 2>/dev/null && echo found; echo b >> a.txt; mkdir d; echo c > d/c; chmod 600 d/c; "
    script += "cat $EVALWRIGHT_TASK_FILE"
    case = {"id": "a", "task": "the task", "expect": {"exact": "the task"}}
    project.suite(runner=shell_runner(script), cases=[case], scorers=[{"name": "exact"}], sandbox="bubblewrap")
    assert project.call("run", "demo", "--run-id", "r", "--json").exit_code == 0
    changed = {change["path"] for change in project.record("r", "a", "workspace-diff.json")["changed_paths"]}
    assert changed == {"a.txt", "d", "d/c"}


def test_a_scorer_s_own_command_sees_the_suite_and_hidden_tests_do_not(project: Project, shell_runner: Shell) -> None:
    grade = 'grep -q hidden-answer $EVALWRIGHT_SUITE/cases.jsonl && echo \'{"ok": true, "score": 1.0, "findings": []}\''
    tests = {"argv": ["sh", "./t.sh"], "format": "tap"}
    hidden = 'if ls /suite 2>/dev/null; then n="not ok"; else n=ok; fi; printf "1..1\\n$n 1 - t\\n" > $EVALWRIGHT_REPORT_FILE'
    project.suite(
        runner=shell_runner("true"),
        cases=[{"id": "a", "expect": {"tests": tests}, "hidden": "hidden/a", "meta": {"k": "hidden-answer"}}],
        scorers=[{"name": "tests"}, {"name": "command", "id": "grade", "shell": True, "command": grade}],
        files={"hidden/a/t.sh": hidden},
        sandbox="bubblewrap",
    )
    answer = project.call("run", "demo", "--run-id", "r", "--json")
    assert answer.data["run"]["status_counts"]["pass"] == 1, project.record("r", "a", "score.json")


BEARER = {"format": "Bearer {value}"}
FETCH = """
import os, sys, urllib.request
for url in sys.argv[1:]:
    try: print(urllib.request.urlopen(url, timeout=10).read().decode())
    except OSError as error: print(error)
print("key" if "a-key-5f0a" in str(dict(os.environ)) else "no key")
"""


def test_an_agent_reaches_listed_hosts_with_a_key_that_it_never_holds(project: Project) -> None:
    asked: list[str] = []

    def answer(wire: Wire) -> None:
        asked.extend(line for line in wire.head().decode().splitlines() if line.lower().startswith("authorization"))
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    with serving(answer) as listed:
        sandbox = {
            "use": "bubblewrap",
            "network": "allowlist",
            "allow": [listed.host],
            "inject": [{"host": listed.host, "header": "Authorization", "env": "KEY_OF_API", "tls": False} | BEARER],
        }
        runner = {"argv": ["python3", "-c", FETCH, f"http://{listed.host}/v1", "http://elsewhere.example.org/"]}
        expect = {"contains": ["ok\n", "HTTP Error 403", "no key"]}
        project.suite(runner=runner, cases=[{"id": "a", "expect": expect}], scorers=[{"name": "contains"}], sandbox=sandbox)
        missing = project.call("run", "demo", "--run-id", "m", "--json")
        done = project.call("run", "demo", "--run-id", "r", "--json", env={"KEY_OF_API": "a-key-5f0a"})
    assert "KEY_OF_API is not set" in json.dumps(missing.envelope["errors"])
    assert done.exit_code == 0, project.artifact("r", "a", "output.txt").read_text()
    assert asked == ["Authorization: Bearer a-key-5f0a"]
    rows = {(row["host"], row["allowed"]): row for row in project.record("r", "a", "runner.json")["sandbox"]["network"]}
    assert set(rows) == {("127.0.0.1", True), ("elsewhere.example.org", False)}
    assert "a-key-5f0a" not in json.dumps(project.record("r", "a", "runner.json"))


def test_endpoints_of_a_request_are_on_loopback_inside(opened: Open) -> None:
    with serving(lambda wire: wire.send(b"served")) as service:
        session = opened(endpoints={"service": service.host})
        reach = f"import socket; print(socket.create_connection(('127.0.0.1', {service.port})).recv(100))"
        done = session.execute(Command(argv=["python3", "-c", reach], env=ENV, timeout=20))
    assert done.stdout.text == "b'served'\n", done.stderr.text


def test_nothing_of_a_session_stays(opened: Open, ground: Path) -> None:
    session = opened()
    sh(session, "touch /home/agent/f")
    session.destroy(Deadline.after(20))
    assert sorted(path.name for path in (ground / "0").iterdir()) == ["w", "x"]
    assert stat.S_IMODE((ground / "0/w").stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "path", ["/", "/proc", "/proc/1", "/sys", "/dev/shm", "/etc", "/tmp", "/home", "/usr/", "relative", "/a/../b"]
)
def test_a_path_that_would_undo_the_sandbox_is_refused(path: str) -> None:
    with pytest.raises(ValidationError, match="read_only"):
        BubblewrapConfig(read_only=[path])


@pytest.mark.parametrize("limits", [{"memory_bytes": 1}, {"open_files": 1}, {"open_files": 10**9}, {"cpu_seconds": 10**30}])
def test_a_limit_that_no_command_could_start_with_is_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ValidationError, match=next(iter(limits))):
        BubblewrapConfig.model_validate({"limits": limits})
