"""Failures that are recognised again, and evidence that is reused only while it is whole."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalwright.canonical import digest_bytes
from evalwright_plugins.workflow.evidence import (
    EvidenceIndex,
    both_ends,
    failure_fingerprint,
    normalised,
    reuse_key,
    same_failure,
)

STEADY = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
KEY = "sha256:" + "0a" * 32
OTHER_KEY = "sha256:" + "0b" * 32
VOLATILE = [
    "2026-11-29T16:12:47.435Z",
    "2026-11-29 16:12:47,435",
    "2026-11-29",
    "Nov 29 16:12:47",
    "[29/Nov/2026:16:12:47 +0000]",
    "16:12:47",
    "1795968767.25",
    "0.03s",
    "1m3.2s",
    "12 ms",
    "3 seconds",
    "<Foo object at 0x7f3a5c0d1e80>",
    "/tmp/tmpab12_d3f/src/calc.py:3",
    "/tmp/pytest-of-root/pytest-12/test_add0/calc.py",
    "/var/folders/zz/abc123/T/tmpab12_d3f/x",
    "file:///tmp/build.a81Xq/x",
    "pid 4242",
    "pid=4242",
    "bash[4242]: killed",
    "/proc/4242/status",
    "localhost:54321",
    "127.0.0.1:54321",
    "port 54321",
    "550e8400-e29b-41d4-a716-446655440000",
    "db3dd5d18d9c09dca3d0fe7ecee5fe22adbf5d19",
    "\x1b[31mred\x1b[0m",
    "==4242== Invalid read",
    "a \r\nb",
]
pieces = st.sampled_from(VOLATILE) | st.text(" \t\n\r\x1b0123456789abefhmnpstx:./-+_[]<>=,ZT", max_size=12)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("FAIL at 2026-11-29T16:12:47.435Z", "FAIL at 2026-11-30T07:01:02Z"),
        ("2026-11-29 16:12:47,435 ERROR x", "2026-11-30 07:01:02,001 ERROR x"),
        ("Nov 29 16:12:47 host x", "Dec  1 07:01:02 host x"),
        ("at 16:12:47 x", "at 07:01:02.5 x"),
        ("[29/Nov/2026:16:12:47 +0000] x", "[30/Dec/2026:01:02:03 +0000] x"),
        ("t=1795968767.25", "t=1795970000.5"),
        ("1 failed in 0.03s", "1 failed in 12.50s"),
        ("took 1m3.2s (12 ms)", "took 2m0s (1300 ms)"),
        ("<Foo object at 0x7f3a5c0d1e80>", "<Foo object at 0x7fffc0d1e810>"),
        ("/tmp/tmpab12_d3f/src/calc.py:3: x", "/tmp/tmpzz9_0qwe/src/calc.py:3: x"),
        ("/tmp/pytest-of-root/pytest-12/test_add0/a", "/tmp/pytest-of-root/pytest-7/test_add0/a"),
        ("/var/folders/zz/abc/T/tmpab12_d3f/x", "/private/var/folders/yy/def/T/tmpzz9_0qwe/x"),
        ("/work/tmpab12_d3f/x", "/work/tmpzz9_0qwe/x"),
        ("/tmp/run-1/cache-0123456789abcdef/x", "/tmp/run-2/cache-fedcba98765432ff/x"),
        ("worker pid 4242 died", "worker pid 17 died"),
        ("bash[4242]: killed", "bash[31337]: killed"),
        ("/proc/4242/status", "/proc/17/status"),
        ("==4242== Invalid read", "==17== Invalid read"),
        ("http://localhost:54321/x", "http://localhost:40001/x"),
        ("http://127.0.0.1:54321/x", "http://127.0.0.1:4001/x"),
        ("listening on port 54321", "listening on port 4001"),
        ("id 550e8400-e29b-41d4-a716-446655440000", "id 110e8400-e29b-41d4-a716-446655440fff"),
        ("HEAD is db3dd5d18d9c09dca3d0fe7ecee5fe22adbf5d19", "HEAD is b31ba8028cd4cb915deb6bd36a3234eb1e25a240"),
        ("\x1b[31mFAIL\x1b[0m x", "FAIL x"),
        ("a \r\nb\n", "a\nb"),
    ],
)
def test_two_executions_of_one_failure_read_the_same(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("expected 3, got 4", "expected 3, got 5"),
        ("calc.py:3: x", "calc.py:4: x"),
        ("/tmp/tmpab12_d3f/src/calc.py:3", "/tmp/tmpab12_d3f/src/calc.py:4"),
        ("/tmp/tmpab12_d3f/src/calc.py", "/tmp/tmpab12_d3f/src/text.py"),
        ("value 0x1f", "value 0x2f"),
        ("items[3]: wrong", "items[4]: wrong"),
        ("exit 1", "exit 2"),
        ("version 1.2.3", "version 1.2.4"),
        ("test_add FAILED", "test_sub FAILED"),
        ("src/tmp/a.py", "src/tmp/b.py"),
        ("/tmp/x/tmp/a.py", "/tmp/x/tmp/b.py"),
    ],
)
def test_two_failures_still_read_differently(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@STEADY
@given(st.lists(pieces, max_size=12))
@example(["8m/proc/4242/status"])
def test_normalising_twice_changes_nothing(parts: list[str]) -> None:
    once = normalised("".join(parts))

    assert normalised(once) == once
    assert "\x1b" not in once


@STEADY
@given(st.text())
def test_normalising_any_text_twice_changes_nothing(text: str) -> None:
    assert normalised(normalised(text)) == normalised(text)


def test_fingerprint_is_the_data_of_its_event() -> None:
    found = failure_fingerprint("verify", "bash w/verifier.sh", 1, "FAIL in 0.1s\n", "sha256:d")

    assert found == {
        "step": "verify",
        "command": "bash w/verifier.sh",
        "exitCode": 1,
        "errorDigest": digest_bytes(b"FAIL in <duration>"),
        "diffDigest": "sha256:d",
    }


def test_long_log_is_looked_at_from_both_ends(tmp_path: Path) -> None:
    def fingerprint(text: str) -> object:
        (tmp_path / "log").write_text(text)
        return failure_fingerprint("verify", "make", 1, both_ends(tmp_path / "log"), "sha256:d")["errorDigest"]

    def lines(seconds: float, last: str) -> str:
        return "begun\n" + f"test passed in {seconds}s\n" * 100_000 + last

    assert both_ends(tmp_path / "none") == ""
    assert fingerprint(lines(0.1, "FAIL one")) == fingerprint(lines(10.25, "FAIL one")) != fingerprint(lines(0.1, "FAIL two"))
    assert fingerprint("a" * 200_000 + "b") != fingerprint("a" * 200_000 + "c")


def test_same_failure_is_recognised_in_another_change() -> None:
    one = failure_fingerprint("verify", "make", 2, "FAIL in 0.1s", "sha256:one")

    assert same_failure(one, failure_fingerprint("verify", "make", 2, "FAIL in 7.3s", "sha256:other"))


@pytest.mark.parametrize("change", [{"step": "fix"}, {"command": "ls"}, {"exitCode": 1}, {"errorDigest": "sha256:0"}], ids=repr)
def test_failure_of_another_kind_is_not_the_same(change: dict[str, Any]) -> None:
    one = failure_fingerprint("verify", "make", 2, "FAIL", "sha256:one")

    assert not same_failure(one, one | change)
    assert not same_failure(one, {})


def test_fingerprints_of_a_buildbeat_ledger_are_the_same_failure() -> None:
    first = {
        "step": "verify",
        "command": "bash w/verifier.sh",
        "exitCode": 1,
        "errorDigest": "sha256:36c1255e11f4c4a2fa8fdf90c830cd6d74e414359ce444453d915fabdd7347a8",
        "diffDigest": "sha256:7d18c112d89cfca7c763124d835a4ccc72b2d0fd29a4a24de30620796f87d609",
    }

    assert same_failure(
        first, first | {"diffDigest": "sha256:be1f3459a756e7adf2ebf134117e52978ebe132f0c413f5a0e7931dc2ad8c80e"}
    )


def test_reuse_key_covers_everything_a_result_depends_on() -> None:
    parts: dict[str, Any] = {"tree": "t", "worker": "command", "table": {"a": 1, "b": [2]}, "prompt_digest": "p"}
    parts["toolchain"] = {"python": "3.12", "uv.lock": "sha256:1"}

    def key(**changed: Any) -> str:
        return reuse_key(**(parts | changed))

    assert key() == key(table={"b": [2], "a": 1.0})
    changes: list[dict[str, Any]] = [
        {},
        {"tree": "u"},
        {"worker": "other"},
        {"table": {"a": 1}},
        {"prompt_digest": "q"},
        {"toolchain": {"python": "3.13", "uv.lock": "sha256:1"}},
    ]
    assert len({key(**change) for change in changes}) == len(changes)
    with pytest.raises(TypeError):
        key(table={"a": object()})


@pytest.fixture
def log(tmp_path: Path) -> Path:
    log = tmp_path / "runs" / "R1" / "logs" / "verify-1.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"all passed\n")
    return log


@pytest.fixture
def index(tmp_path: Path) -> EvidenceIndex:
    return EvidenceIndex(tmp_path / "evidence")


def record(status: str = "passed", **changed: Any) -> dict[str, Any]:
    digest = digest_bytes(b"all passed\n")
    return {"evidenceRef": "runs/R1/logs/verify-1.log", "digest": digest, "status": status, "grade": "L2", **changed}


def test_passed_evidence_is_found_again(index: EvidenceIndex, log: Path) -> None:
    assert index.find(KEY) is None

    index.keep(KEY, record())

    assert index.find(KEY) == record()
    assert index.find(OTHER_KEY) is None
    assert [path.name for path in index.directory.iterdir()] == ["0a" * 32 + ".json"]


@pytest.mark.parametrize("status", ["failed", "unverified", ""])
def test_failed_evidence_is_never_reused_and_ends_an_older_pass(index: EvidenceIndex, log: Path, status: str) -> None:
    index.keep(KEY, record())
    index.keep(KEY, record(status))

    assert index.find(KEY) is None


def test_evidence_whose_log_changed_is_not_reused(index: EvidenceIndex, log: Path) -> None:
    index.keep(KEY, record())
    log.write_bytes(b"all passed!\n")

    assert index.find(KEY) is None


def test_evidence_whose_log_is_gone_is_not_reused(index: EvidenceIndex, log: Path) -> None:
    index.keep(KEY, record())
    log.unlink()

    assert index.find(KEY) is None


def test_log_that_is_no_plain_file_is_not_read(index: EvidenceIndex, log: Path) -> None:
    index.keep(KEY, record())
    log.unlink()
    os.mkfifo(log)

    assert index.find(KEY) is None


@pytest.mark.parametrize("way", ["relative", "absolute", "link"])
def test_log_outside_the_state_is_not_evidence(tmp_path: Path, way: str) -> None:
    state, outside = tmp_path / "state", tmp_path / "outside.log"
    state.mkdir()
    outside.write_bytes(b"all passed\n")
    (state / "link.log").symlink_to(outside)
    reference = {"relative": "../outside.log", "absolute": str(outside), "link": "link.log"}[way]
    index = EvidenceIndex(state / "evidence")
    index.keep(KEY, record(evidenceRef=reference))

    assert index.find(KEY) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff", b"[]", b"{}", b'{"key":"sha256:0"}', b"[" * 100_000, b'{"record":' + b" " * (1 << 20)],
    ids=lambda content: repr(content[:9]),
)
def test_damaged_entry_counts_as_none(index: EvidenceIndex, log: Path, content: bytes) -> None:
    index.keep(KEY, record())
    (entry,) = index.directory.iterdir()
    entry.write_bytes(content)

    assert index.find(KEY) is None


@pytest.mark.parametrize(
    "change", [{"evidenceRef": 3}, {"digest": None}, {"evidenceRef": "a\0b"}, {"digest": "sha256:"}], ids=repr
)
def test_entry_with_odd_values_counts_as_none(index: EvidenceIndex, log: Path, change: dict[str, Any]) -> None:
    index.keep(KEY, record())
    (entry,) = index.directory.iterdir()
    entry.write_text(json.dumps({"key": KEY, "record": record() | change}))

    assert index.find(KEY) is None


def test_entry_under_another_key_counts_as_none(index: EvidenceIndex, log: Path) -> None:
    index.keep(KEY, record())
    (entry,) = index.directory.iterdir()
    entry.rename(index.directory / ("0b" * 32 + ".json"))

    assert index.find(OTHER_KEY) is None


@pytest.mark.parametrize("key", ["", "sha256:", "0a" * 32, "sha256:" + "0A" * 32, "sha256:../" + "0a" * 32])
def test_odd_key_is_refused(index: EvidenceIndex, key: str) -> None:
    with pytest.raises(ValueError, match="no reuse key"):
        index.find(key)
    with pytest.raises(ValueError, match="no reuse key"):
        index.keep(key, record())


@pytest.mark.parametrize("missing", ["status", "digest", "evidenceRef"])
def test_record_without_its_log_is_refused(index: EvidenceIndex, missing: str) -> None:
    with pytest.raises(ValueError, match=missing):
        index.keep(KEY, {name: value for name, value in record().items() if name != missing})

    assert not index.directory.exists()


def test_writers_at_the_same_time_leave_one_whole_record(index: EvidenceIndex, log: Path) -> None:
    start = threading.Barrier(9)
    torn: list[int] = []

    def write(number: int) -> None:
        start.wait(20)
        for _round in range(20):
            index.keep(KEY, record(writer=number, padding="x" * 5000 * number))
            if index.find(KEY) is None:
                torn.append(number)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    start.wait(20)
    for thread in threads:
        thread.join(20)

    assert not torn
    assert len(list(index.directory.iterdir())) == 1
