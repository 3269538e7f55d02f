"""Locks exclude, name their owner, and never outlive the process that held them."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from evalwright.errors import RunBusy
from evalwright_plugins.workflow.workspace import Lock, hold, owner_of


def holder(path: str, shared: bool, ready: Connection) -> None:
    Lock.take(Path(path), shared=shared)
    ready.send(os.getpid())
    ready.recv()


def test_lock_of_another_process_names_it_and_goes_with_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=holder, args=(str(tmp_path / "deep/lock"), False, theirs))
    process.start()
    try:
        pid = ours.recv()
        with pytest.raises(RunBusy, match=f"is held by process {pid} on ") as busy:
            Lock.take(tmp_path / "deep/lock")
        assert {"pid", "host", "start_time", "command", "since"} <= busy.value.details["owner"].keys()
        with pytest.raises(RunBusy):
            Lock.take(tmp_path / "deep/lock", shared=True)
    finally:
        process.kill()
        process.join()
    assert owner_of(tmp_path / "deep/lock") is None
    with hold(tmp_path / "deep/lock"):
        owner = owner_of(tmp_path / "deep/lock")
        assert owner
        assert owner["pid"] == os.getpid()
    assert owner_of(tmp_path / "deep/lock") is None


def test_shared_owners_exclude_only_one_who_wants_it_alone(tmp_path: Path) -> None:
    with hold(tmp_path / "lock", shared=True), hold(tmp_path / "lock", shared=True):
        with pytest.raises(RunBusy, match="another process"):
            Lock.take(tmp_path / "lock")
        assert owner_of(tmp_path / "lock") is None
    Lock.take(tmp_path / "lock").release()


def test_lock_is_given_back_once_and_not_inherited(tmp_path: Path) -> None:
    lock = Lock.take(tmp_path / "lock")
    assert not os.get_inheritable(lock.descriptor)
    lock.release()
    lock.release()
    with hold(tmp_path / "lock"):
        lock.release()
        with pytest.raises(RunBusy):
            Lock.take(tmp_path / "lock")


def test_removed_lock_file_does_not_let_two_in(tmp_path: Path) -> None:
    with hold(tmp_path / "lock"):
        os.rename(tmp_path / "lock", tmp_path / "aside")
        fresh = Lock.take(tmp_path / "lock")
        with pytest.raises(RunBusy):
            Lock.take(tmp_path / "lock")
        fresh.release()


def test_lock_on_a_file_that_was_removed_meanwhile_is_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = fcntl.flock

    def late(descriptor: int, operation: int) -> None:
        honest(descriptor, operation)
        monkeypatch.undo()
        (tmp_path / "lock").unlink()

    monkeypatch.setattr("evalwright_plugins.workflow.workspace.locks.fcntl.flock", late)
    with hold(tmp_path / "lock"), pytest.raises(RunBusy):
        Lock.take(tmp_path / "lock")


def test_patience_waits_for_the_other(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=holder, args=(str(tmp_path / "lock"), False, theirs))
    process.start()
    ours.recv()
    ours.send("end")
    Lock.take(tmp_path / "lock", patience=60).release()
    process.join()
    assert process.exitcode == 0


def test_lock_file_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("kept")
    (tmp_path / "lock").symlink_to("target")
    with pytest.raises(OSError, match="symbolic links"):
        Lock.take(tmp_path / "lock")
    assert (tmp_path / "target").read_text() == "kept"


@pytest.mark.parametrize("record", [b"", b"{", b"[]", b'{"pid": 1}', b"\xff" * 10])
def test_unreadable_record_is_nobody(tmp_path: Path, record: bytes) -> None:
    (tmp_path / "lock").write_bytes(record)
    assert owner_of(tmp_path / "lock") is None
    with hold(tmp_path / "lock"):
        assert owner_of(tmp_path / "lock")
