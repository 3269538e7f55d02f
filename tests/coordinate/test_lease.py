"""Leases: one owner at a time, a dead one gives way at once, and no clock that a user sets has a say."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from evalwright.coordinate import Lease, lease_state
from evalwright.errors import RunBusy
from evalwright.rundir import RunDirectory
from evalwright.testing import in_threads

HOLD = """
import sys
from pathlib import Path
from evalwright.coordinate import Lease
from evalwright.rundir import RunDirectory
lease = Lease.take(RunDirectory(Path(sys.argv[1])), 3600)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    directory = tmp_path / "r"
    directory.mkdir()
    return RunDirectory(directory)


@pytest.fixture
def holder(run: RunDirectory) -> Iterator[subprocess.Popen[str]]:
    """Return a process that holds the lease."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def reserved(run: RunDirectory, **fields: Any) -> None:
    record = {"run_id": "r", "pid": 1, "start_time": 1, "boot_id": "", "host": "elsewhere", "ttl_seconds": 60}
    now = datetime.now(UTC).isoformat()
    run.reservation.write_text(json.dumps(record | {"started_ts": now, "heartbeat_ts": now} | fields))


def test_held_run_is_refused_to_everybody_else_and_names_its_owner(run: RunDirectory, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(RunBusy, match=f"process {holder.pid} on"):
        Lease.take(run, 60)

    assert lease_state(run) == "held"


def test_dead_owner_is_reclaimed_at_once(run: RunDirectory, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()

    assert lease_state(run) == "stale"
    lease = Lease.take(run, 60)

    assert lease.reclaimed
    assert json.loads(run.reservation.read_bytes())["pid"] == os.getpid()
    lease.release()
    assert lease_state(run) == "free"
    assert not run.reservation.exists()


def test_of_many_that_want_a_run_exactly_one_gets_it(run: RunDirectory) -> None:
    def take(number: int) -> Lease | None:
        try:
            return Lease.take(run, 60)
        except RunBusy:
            return None

    got = [lease for lease in in_threads(take) if lease]

    assert len(got) == 1
    got[0].release()
    got[0].release()


def test_looking_at_a_free_run_never_keeps_anybody_from_taking_it(run: RunDirectory) -> None:
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            lease_state(run)

    watchers = [threading.Thread(target=look) for _ in range(3)]
    for watcher in watchers:
        watcher.start()
    try:
        for _ in range(300):
            Lease.take(run, 60).release()
    finally:
        done.set()
        for watcher in watchers:
            watcher.join()


def test_owner_on_another_host_is_respected_within_its_time(run: RunDirectory) -> None:
    reserved(run)

    assert lease_state(run) == "held"
    with pytest.raises(RunBusy, match="elsewhere"):
        Lease.take(run, 60)


def test_owner_on_another_host_that_stopped_beating_is_reclaimed(run: RunDirectory) -> None:
    reserved(run, heartbeat_ts=(datetime.now(UTC) - timedelta(seconds=61)).isoformat())

    assert lease_state(run) == "stale"
    lease = Lease.take(run, 60)
    assert lease.reclaimed
    lease.release()


@pytest.mark.parametrize(
    "record",
    [b"", b"[]", b"{", b"null", b'{"pid": "x"}', b'{"host": "elsewhere", "pid": 1, "heartbeat_ts": "yesterday"}', b"\xff"],
)
def test_reservation_that_cannot_be_read_keeps_nobody_out(run: RunDirectory, record: bytes) -> None:
    run.reservation.write_bytes(record)

    Lease.take(run, 60).release()

    assert lease_state(run) == "free"


@pytest.mark.parametrize("host", [socket.gethostname(), "elsewhere"])
def test_frozen_clock_of_a_reproducible_build_has_no_say(run: RunDirectory, host: str) -> None:
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    try:
        lease = Lease.take(run, 60)
        record = json.loads(run.reservation.read_bytes())
        lease.release()
    finally:
        del os.environ["SOURCE_DATE_EPOCH"]

    beat = datetime.fromisoformat(record["heartbeat_ts"])
    assert datetime.now(UTC) - beat < timedelta(seconds=30)


def test_lease_whose_record_cannot_be_written_leaves_the_run_free(run: RunDirectory) -> None:
    run.reservation.mkdir()
    with pytest.raises(OSError, match="directory"):
        Lease.take(run, 60)
    run.reservation.rmdir()

    Lease.take(run, 60).release()
