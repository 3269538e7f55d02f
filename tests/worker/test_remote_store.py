"""Workers that share nothing but a store: what they fetch, when, and what they give back."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from evalwright.canonical import digest_bytes
from evalwright.errors import StoreError
from evalwright.interfaces import Job, Outcome
from evalwright.model import TrialSpec
from evalwright.processes.identity import state_of
from evalwright.rundir import changed_artifacts, sealed_digests
from evalwright.store import CachedStore, DirectoryStore, transfer
from evalwright.testing import SmallProject
from evalwright.testing._detached_queue import PlainStore
from evalwright.worker import attempt, execute, shut_down

LEAVING = """
setsid sh -c 'echo $$ >> {pids}; exec sleep 60' &
until [ -s {pids} ]; do sleep 0.01; done
touch {begun}
printf right
"""


class Watched(PlainStore):
    """Another store that notes what it is asked for."""

    def __init__(self, inner: DirectoryStore) -> None:
        super().__init__(inner)
        self.inner = inner
        self.opened: list[str] = []
        self.taken: list[str] = []
        self.before_open: Callable[[str], None] = ignored

    def open(self, digest: str) -> BinaryIO:
        self.before_open(digest)
        self.opened.append(digest)
        return super().open(digest)

    def put(self, digest: str, source: BinaryIO) -> None:
        super().put(digest, source)
        self.taken.append(digest)


class Lying(PlainStore):
    """Gives other bytes than it was asked for."""

    def open(self, digest: str) -> BinaryIO:
        with super().open(digest) as file:
            return io.BytesIO(file.read() + b"!")


def ignored(digest: str) -> None:
    """Do nothing."""


def go_on() -> Any:
    return "continue"


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Watched]:
    yield Watched(DirectoryStore(tmp_path / "remote"))
    shut_down()


@pytest.fixture
def tree(tmp_path: Path, remote: Watched) -> str:
    """Return a tree of three files with two contents, which the other store holds."""
    directory = tmp_path / "content"
    (directory / "deep").mkdir(parents=True)
    for name, text in (("a", "one"), ("b", "two"), ("deep/c", "one")):
        (directory / name).write_text(text)
    return remote.inner.put_tree(directory)


def restored(store: DirectoryStore, tree: str, place: Path) -> Path:
    place.mkdir()
    store.restore(tree, place)
    return place


def test_each_blob_is_fetched_once_however_often_it_is_used(tmp_path: Path, remote: Watched, tree: str) -> None:
    cache = CachedStore(tmp_path / "cache", remote)

    for name in ("first", "second"):
        place = restored(cache, tree, tmp_path / name)
        assert [(place / file).read_text() for file in ("a", "b", "deep/c")] == ["one", "two", "one"]

    assert sorted(remote.opened) == sorted({tree, digest_bytes(b"one"), digest_bytes(b"two")})


def test_nothing_is_fetched_that_nobody_needs(tmp_path: Path, remote: Watched, tree: str) -> None:
    CachedStore(tmp_path / "cache", remote).tree(tree)

    assert remote.opened == [tree]


def test_store_that_gives_other_bytes_is_an_error_and_they_are_not_kept(tmp_path: Path, remote: Watched, tree: str) -> None:
    with pytest.raises(StoreError, match="another digest"):
        CachedStore(tmp_path / "cache", Lying(remote)).tree(tree)

    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []
    assert len(CachedStore(tmp_path / "cache", remote).tree(tree).entries) == 4


def test_what_the_other_store_lacks_is_an_error_that_names_it(tmp_path: Path, remote: Watched) -> None:
    digest = digest_bytes(b"nowhere")

    with pytest.raises(StoreError, match=digest):
        CachedStore(tmp_path / "cache", remote).verified(digest)


def test_cached_blob_that_was_damaged_here_is_an_error_and_not_used(tmp_path: Path, remote: Watched, tree: str) -> None:
    cache = CachedStore(tmp_path / "cache", remote)
    damaged = cache.path(digest_bytes(b"one"))
    damaged.chmod(0o644)
    damaged.write_text("eno")

    with pytest.raises(StoreError, match="was changed"):
        restored(cache, tree, tmp_path / "place")


def test_transfer_copies_what_is_missing_and_the_tree_last(tmp_path: Path, remote: Watched, tree: str) -> None:
    target = Watched(DirectoryStore(tmp_path / "target"))
    target.inner.put_bytes(b"one")

    transfer(tree, remote.inner, target)

    assert target.taken == [digest_bytes(b"two"), tree]
    assert (restored(target.inner, tree, tmp_path / "place") / "deep" / "c").read_text() == "one"


def test_transfer_of_what_is_there_copies_nothing(tmp_path: Path, remote: Watched, tree: str) -> None:
    target = Watched(DirectoryStore(tmp_path / "target"))
    transfer(tree, remote.inner, target)
    target.taken.clear()

    transfer(tree, remote.inner, target)

    assert target.taken == []


def test_transfer_that_was_cut_is_not_taken_for_a_whole_one_and_goes_on(tmp_path: Path, remote: Watched, tree: str) -> None:
    class Cut(Watched):
        def put(self, digest: str, source: BinaryIO) -> None:
            if self.taken:
                raise OSError("the network is gone")
            super().put(digest, source)

    inner = DirectoryStore(tmp_path / "target")
    with pytest.raises(OSError, match="network"):
        transfer(tree, remote.inner, Cut(inner))
    assert inner.missing([tree]) == {tree}
    target = Watched(inner)
    transfer(tree, remote.inner, target)

    assert len(target.taken) == 2
    assert target.taken[-1] == tree


def test_store_that_takes_other_bytes_than_it_was_told_refuses_them(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    digest = digest_bytes(b"right")

    with pytest.raises(StoreError):
        store.put(digest, io.BytesIO(b"wrong"))

    assert store.missing([digest]) == {digest}
    assert list((tmp_path / "store" / "incoming").iterdir()) == []


def remote_jobs(place: Path, remote: Watched, scripts: dict[str, tuple[str, str]]) -> list[Job]:
    """Return jobs whose inputs are in the other store only."""
    project = SmallProject(place, scripts)
    jobs = project.jobs(remote=remote)
    project.layout.evals.rename(place / "out of reach")
    return jobs


def test_trial_publishes_a_sealed_bundle_that_can_be_restored(tmp_path: Path, remote: Watched) -> None:
    (job,) = remote_jobs(tmp_path, remote, {"one": ("echo x > new; printf right", "right")})

    result = json.loads(execute(job.spec, store=remote, bundle=None, beat=go_on))

    assert result["status"] == "pass"
    place = restored(remote.inner, result["bundle"], tmp_path / "bundle")
    digests = sealed_digests(place)
    assert digests is not None
    assert digests == result["digests"]
    assert changed_artifacts(place, digests) == []
    assert (place / "output.txt").read_text() == "right"
    assert remote.taken[-1] == result["bundle"]


def test_canceled_trial_publishes_nothing(tmp_path: Path, remote: Watched) -> None:
    (job,) = remote_jobs(tmp_path, remote, {"one": ("sleep 60", "right")})
    remote.taken.clear()

    result = json.loads(execute(job.spec, store=remote, bundle=None, beat=lambda: "cancel"))

    assert result == {"status": "canceled"}
    assert remote.taken == []


def test_inputs_of_many_trials_in_one_worker_are_fetched_once(tmp_path: Path, remote: Watched) -> None:
    jobs = remote_jobs(tmp_path, remote, dict.fromkeys(("a", "b", "c"), ("printf right", "right")))

    for job in jobs:
        assert json.loads(execute(job.spec, store=remote, bundle=None, beat=go_on))["status"] == "pass"

    assert len(remote.opened) == len(set(remote.opened))


def test_gold_is_not_fetched_before_the_agent_and_all_that_it_left_are_dead(tmp_path: Path, remote: Watched) -> None:
    pids, begun = tmp_path / "pids", tmp_path / "begun"
    task = LEAVING.format(pids=pids, begun=begun)
    (job,) = remote_jobs(tmp_path, remote, {"one": (task, "right")})
    spec = TrialSpec.from_bytes(job.spec)
    cases = next(e.sha256 for e in remote.inner.tree(spec.gold_digest).entries if e.path == "cases.jsonl")
    seen: dict[str, tuple[bool, str]] = {}

    def look(digest: str) -> None:
        state = state_of(int(pids.read_text())) if begun.exists() else ""
        seen[digest] = (begun.exists(), state)

    remote.before_open = look
    result = json.loads(execute(job.spec, store=remote, bundle=None, beat=go_on))

    assert result["status"] == "pass"
    assert seen[spec.fixture_digest] == (False, "")
    for secret in (spec.gold_digest, cases):
        ended, state = seen[secret or ""]
        assert ended, "gold was fetched before the agent began"
        assert state in {"", "Z", "X"}, "gold was fetched while a process of the agent lived"


def test_store_that_fails_loses_the_trial_and_not_the_worker(tmp_path: Path, remote: Watched) -> None:
    jobs = remote_jobs(tmp_path, remote, {"one": ("printf right", "right")})

    first: Outcome = attempt(jobs[0], worker="w", beat=go_on, store=Lying(remote))
    second: Outcome = attempt(jobs[0], worker="w", beat=go_on, store=remote)

    assert first.ended == "lost"
    assert (first.reason or "").startswith("E_STORE_FAILED")
    assert second.ended == "done"
