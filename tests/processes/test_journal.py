"""The journal of processes: what a dead owner left is found and ended, and nothing else is ever touched."""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright.interfaces import Command
from evalwright.processes import ProcessJournal, Supervisor, boot_id, current_process, end_strays, living_strays
from evalwright.processes.cgroups import Cgroups
from evalwright.processes.identity import identity_of, state_of
from evalwright.testing import in_threads, soon

PLAIN = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
ENDING = """
import os, sys
from pathlib import Path
from evalwright.processes import ProcessJournal, end_strays
place, journal = Path(sys.argv[1]), Path(sys.argv[2])
os.chdir(place)
ProcessJournal(journal).note(place, [os.getpid(), os.getppid()])
print(end_strays(journal), flush=True)
"""


def alive(pid: int) -> bool:
    return state_of(pid) not in {"", "Z", "X"}


class Trial:
    """A trial's private directory, its journal, and processes that tests start for it."""

    def __init__(self, tmp_path: Path) -> None:
        self.place = tmp_path / "evalwright-0" / "1-1-1" / "0123456789abcdef"
        self.place.mkdir(parents=True)
        self.journal = tmp_path / "processes.jsonl"
        ProcessJournal(self.journal).make()
        self.pids = tmp_path / "pids"
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, line: str, *, cwd: Path | str = "/", env: Mapping[str, str] = PLAIN, count: int = 1) -> list[int]:
        """Run a shell line as the leader of a session; return the pids that it and its children wrote into ``$pids``."""
        before = len(self.noted())
        process = subprocess.Popen(
            ["/bin/sh", "-c", line], cwd=cwd, env={**env, "pids": str(self.pids)}, start_new_session=True
        )
        self._started.append(process)
        assert soon(lambda: len(self.noted()) >= before + count, 10)
        return self.noted()[before:]

    def noted(self) -> list[int]:
        return [int(word) for word in self.pids.read_text().split()] if self.pids.exists() else []

    def note(self, pids: Sequence[int], place: Path | None = None) -> None:
        ProcessJournal(self.journal).note(place or self.place, pids)

    def write(self, *records: Any) -> None:
        with self.journal.open("a") as file:
            file.writelines(json.dumps({"by": current_process().as_json(), **record}) + "\n" for record in records)

    def identity(self, pid: int, **changes: Any) -> dict[str, Any]:
        identity = identity_of(pid)
        assert identity is not None
        return identity.as_json() | changes

    def end(self) -> None:
        for pid in self.noted():
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        for process in self._started:
            process.kill()
            process.wait()


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    trial = Trial(tmp_path)
    yield trial
    trial.end()


SLEEPER = "echo $$ >> $pids; exec sleep 60"


def test_recorded_process_is_counted_then_killed_and_then_there_is_none(trial: Trial) -> None:
    (pid,) = trial.start(SLEEPER)
    trial.note([pid])

    assert living_strays(trial.journal) == 1
    assert end_strays(trial.journal) == 1
    assert not alive(pid)
    assert living_strays(trial.journal) == end_strays(trial.journal) == 0


def test_looking_kills_nothing(trial: Trial) -> None:
    (pid,) = trial.start(SLEEPER)
    trial.note([pid])

    living_strays(trial.journal)

    assert alive(pid)


FAMILIES: dict[str, str] = {
    "child": "sleep 60 & echo $! >> $pids; wait",
    "child in a session of its own": f"setsid sh -c '{SLEEPER}' & wait",
    "grandchild that ignores signals": "sh -c 'trap \"\" TERM INT HUP; echo $$ >> $pids; sleep 60; sleep 60' & wait",
    "stopped child": "sh -c 'echo $$ >> $pids; kill -STOP $$; sleep 60' & wait",
}


@pytest.mark.parametrize("line", FAMILIES.values(), ids=FAMILIES.keys())
def test_descendants_of_a_recorded_process_end_with_it(trial: Trial, line: str) -> None:
    leader, child = trial.start(f"echo $$ >> $pids; {line}", count=2)
    trial.note([leader])

    assert end_strays(trial.journal) >= 2
    assert not alive(leader)
    assert not alive(child)


def test_session_of_a_recorded_leader_ends_though_the_leader_itself_is_gone(trial: Trial) -> None:
    leader, child = trial.start("echo $$ >> $pids; sleep 60 & echo $! >> $pids; wait", count=2)
    trial.note([leader])
    os.kill(leader, signal.SIGKILL)
    assert soon(lambda: not alive(leader))
    assert alive(child)

    assert end_strays(trial.journal) == 1
    assert not alive(child)


@pytest.mark.parametrize("below", ["w", "."])
def test_daemon_that_detached_itself_ends_by_the_directory_in_which_it_works(trial: Trial, below: str) -> None:
    place = trial.place / below
    place.mkdir(exist_ok=True)
    (daemon,) = trial.start(f"(setsid sh -c '{SLEEPER}' &) ; exit 0", cwd=place, env={"PATH": PLAIN["PATH"]})
    trial.note([])
    assert soon(lambda: os.getsid(daemon) == daemon)

    assert end_strays(trial.journal) == 1
    assert not alive(daemon)


def test_daemon_that_detached_itself_ends_by_the_directory_in_its_environment(trial: Trial) -> None:
    environment = {**PLAIN, "TMPDIR": str(trial.place / "t")}
    (daemon,) = trial.start(f"cd /; (setsid sh -c '{SLEEPER}' &) ; exit 0", env=environment)
    trial.note([])

    assert end_strays(trial.journal) == 1
    assert not alive(daemon)


def test_process_of_nobodys_trial_is_left_alone(trial: Trial, tmp_path: Path) -> None:
    other = tmp_path / "another"
    other.mkdir()
    (stranger,) = trial.start(SLEEPER, cwd=other, env={**PLAIN, "TMPDIR": str(other)})
    (sibling,) = trial.start(SLEEPER)
    (pid,) = trial.start(SLEEPER)
    trial.note([pid])

    assert end_strays(trial.journal) == 1
    assert alive(stranger)
    assert alive(sibling)


@pytest.mark.parametrize(
    "changes",
    [
        {"start_time": 1},
        {"boot_id": "8c6f1f0e-0000-0000-0000-000000000000"},
        {"host": "another-host"},
    ],
    ids=["reused pid", "another boot", "another host"],
)
def test_process_that_only_has_the_pid_of_a_recorded_one_is_left_alone_with_its_session(
    trial: Trial, changes: dict[str, Any]
) -> None:
    leader, child = trial.start("echo $$ >> $pids; sleep 60 & echo $! >> $pids; wait", count=2)
    trial.write({"place": str(trial.place), "processes": [trial.identity(leader, **changes)]})

    assert living_strays(trial.journal) == end_strays(trial.journal) == 0
    assert alive(leader)
    assert alive(child)


@pytest.mark.parametrize("changes", [{"boot_id": "another"}, {"host": "another-host"}], ids=["boot", "host"])
def test_session_that_began_in_another_boot_or_on_another_host_is_not_this_one(trial: Trial, changes: dict[str, Any]) -> None:
    leader, child = trial.start("echo $$ >> $pids; sleep 60 & echo $! >> $pids; wait", count=2)
    record = trial.identity(leader, **changes)
    os.kill(leader, signal.SIGKILL)
    assert soon(lambda: not alive(leader))
    trial.write({"place": str(trial.place), "processes": [record]})

    assert end_strays(trial.journal) == 0
    assert alive(child)


def test_this_process_and_its_ancestors_are_never_killed_whatever_the_journal_says(trial: Trial) -> None:
    inner = 'cd "$PLACE"; "$PYTHON" -c "$ENDING" "$PLACE" "$JOURNAL"; echo "$?"; echo outer'
    environment = os.environ | {
        "PLACE": str(trial.place),
        "JOURNAL": str(trial.journal),
        "PYTHON": sys.executable,
        "ENDING": ENDING,
    }

    done = subprocess.run(["/bin/sh", "-c", inner], env=environment, capture_output=True, text=True, start_new_session=True)

    assert done.returncode == 0
    assert done.stdout.split() == ["0", "0", "outer"], done.stderr


@pytest.mark.parametrize(
    "torn",
    [
        b'{"place": "/x", "proce',
        b"\xff\xfe\x00",
        b"[]",
        b"7",
        b'{"place": "/nowhere/at-all"}',
        b'{"processes": []}',
        b'{"place": "/nowhere/at-all", "processes": [{"pid": 1}]}',
        b'{"place": "/nowhere/at-all", "processes": 7}',
        b'{"place": null, "processes": []}',
        b"",
    ],
    ids=repr,
)
def test_line_that_cannot_be_read_is_skipped_and_the_others_count(trial: Trial, torn: bytes) -> None:
    (first,) = trial.start(SLEEPER)
    (second,) = trial.start(SLEEPER)
    trial.note([first])
    with trial.journal.open("ab") as file:
        file.write(torn + b"\n")
    trial.note([second])

    assert end_strays(trial.journal) == 2
    assert not alive(first)
    assert not alive(second)


def test_torn_last_line_without_its_newline_spoils_no_other(trial: Trial) -> None:
    (pid,) = trial.start(SLEEPER)
    trial.note([pid])
    with trial.journal.open("ab") as file:
        file.write(b'{"place": "/x"')

    assert end_strays(trial.journal) == 1


def test_journal_that_is_not_there_or_empty_names_nobody(trial: Trial) -> None:
    assert end_strays(trial.journal) == living_strays(trial.journal) == 0
    trial.journal.touch()
    assert end_strays(trial.journal) == living_strays(trial.journal) == 0


def test_process_that_is_gone_already_is_noted_without_a_name(trial: Trial) -> None:
    done = subprocess.Popen(["true"])
    done.wait()

    trial.note([done.pid])

    noted = json.loads(trial.journal.read_bytes())
    assert noted == {"by": current_process().as_json(), "place": str(trial.place), "processes": [], "cgroup": None}


def test_notes_of_many_threads_lie_each_on_a_line_of_its_own(trial: Trial) -> None:
    in_threads(lambda number: [trial.note([os.getpid()], trial.place / f"{number}-{n}") for n in range(50)])

    records = [json.loads(line) for line in trial.journal.read_text().splitlines() if line]
    assert len({record["place"] for record in records}) == len(records) == 400
    (process,) = records[0]["processes"]
    assert process == {
        "pid": os.getpid(),
        "start_time": process["start_time"],
        "boot_id": boot_id(),
        "host": socket.gethostname(),
    }


def test_journal_is_readable_by_its_owner_only(trial: Trial) -> None:
    trial.note([])

    assert trial.journal.stat().st_mode & 0o777 == 0o600


def test_relay_of_short_lived_processes_in_a_recorded_session_is_ended(trial: Trial) -> None:
    hop = "import os, time\nfor n in range(3000):\n  if os.fork(): os._exit(0)\n  time.sleep(0.001)\n"
    line = f'echo $$ >> $pids; exec {sys.executable} -c "{hop}"'
    (leader,) = trial.start(line, env=PLAIN)
    trial.note([leader])

    end_strays(trial.journal)

    assert living_strays(trial.journal) == 0


def test_line_that_a_full_disk_cut_is_told_of_and_swallows_no_later_one(trial: Trial) -> None:
    trial.note([os.getpid()])
    size = trial.journal.stat().st_size
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20, hard))
    try:
        with pytest.raises(OSError, match="No space"):
            trial.note([os.getpid()])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    trial.note([os.getpid()], trial.place / "later")

    assert b"later" in trial.journal.read_bytes().splitlines()[-1]
    assert json.loads(trial.journal.read_bytes().splitlines()[-1])["place"].endswith("later")


@pytest.mark.parametrize("place", ["/", "", "{parent}", "{place}/..", "{other}"])
def test_directory_that_is_no_trials_own_makes_nobody_a_stray(trial: Trial, tmp_path: Path, place: str) -> None:
    other = tmp_path / "home"
    other.mkdir()
    (stranger,) = trial.start(SLEEPER, cwd=other)
    named = place.format(parent=tmp_path, place=trial.place, other=other)
    trial.write({"place": named, "processes": []})

    assert end_strays(trial.journal) == 0
    assert alive(stranger)


@pytest.mark.parametrize("changes", [{"boot_id": "8c6f1f0e-0000-0000-0000-000000000000"}, {"host": "another-host"}])
def test_line_that_another_boot_or_host_wrote_means_nothing(trial: Trial, changes: dict[str, str]) -> None:
    (pid,) = trial.start(SLEEPER, cwd=trial.place)
    by = current_process().as_json() | changes
    trial.write({"by": by, "place": str(trial.place), "processes": [trial.identity(pid)]})

    assert end_strays(trial.journal) == 0
    assert alive(pid)


def test_neighbour_whose_path_only_begins_alike_is_left_alone(trial: Trial) -> None:
    beside = trial.place.with_name(trial.place.name + "0")
    beside.mkdir()
    (neighbour,) = trial.start(SLEEPER, cwd=beside)
    trial.write({"place": str(trial.place), "processes": []})

    assert end_strays(trial.journal) == 0
    assert alive(neighbour)


def test_whatever_is_left_in_a_recorded_cgroup_ends_though_nothing_else_tells_of_it(trial: Trial) -> None:
    cgroups = Cgroups.make()
    if cgroups is None:
        pytest.skip("no cgroup v2 directory can be written here")
    place = cgroups.directory()
    (daemon,) = trial.start(f"echo $$ > {place}/cgroup.procs; echo $$ >> $pids; exec env -i sleep 60")
    named = Path(f"/proc/{daemon}/cgroup").read_text().splitlines()[-1].partition("::")[2]
    trial.write({"place": "/nowhere", "cgroup": named, "processes": []})

    try:
        assert end_strays(trial.journal) == 1
        assert soon(lambda: not alive(daemon))
        assert not place.exists()
    finally:
        cgroups.close()


def test_command_is_noted_with_the_cgroup_that_it_runs_in(trial: Trial) -> None:
    with Supervisor() as supervisor:
        done = supervisor.run(
            Command(argv=["cat", "/proc/self/cgroup"], env=PLAIN, on_start=lambda pids: trial.note(pids), timeout=20)
        )

    noted = next(json.loads(line) for line in trial.journal.read_text().splitlines() if line)["cgroup"]
    assert noted is None or f"0::{noted}" in done.stdout.text.splitlines()
