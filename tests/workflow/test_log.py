"""What a step says goes to a log on disk: bounded, without secrets, and at once."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.workflow.toy import COMMIT, Toy

from evalwright.redaction import MARK, Redactor
from evalwright_plugins.workflow.sites.log import MAX_BYTES, TAIL_BYTES, StepLog

SECRET = "sk-geheim-12345"


def logged(path: Path, chunks: Sequence[bytes], literals: Sequence[str] = (), max_bytes: int = 100) -> bytes:
    with StepLog(path, Redactor(literals), max_bytes=max_bytes, tail_bytes=10) as log:
        stream = log.stream()
        for chunk in chunks:
            stream.feed(chunk)
        stream.finish()
    return path.read_bytes()


def test_secret_is_hidden_however_it_is_cut_into_pieces(tmp_path: Path) -> None:
    text = f"é{SECRET}é".encode()
    for number, (begin, end) in enumerate(itertools.combinations(range(len(text)), 2)):
        chunks = [text[:begin], text[begin:end], text[end:]]
        assert logged(tmp_path / str(number), chunks, [SECRET]) == f"é{MARK}é".encode()


@pytest.mark.parametrize(
    ("text", "literals", "shown"),
    [
        ("abcab", ["abcab", "abX"], MARK),
        ("abcabX", ["abcab", "abX"], f"{MARK}X"),
        ("aaa", ["aa"], f"{MARK}a"),
        ("secre", ["secret"], "secre"),
        ("\udcff\udcfesecret", ["secret"], f"\udcff\udcfe{MARK}"),
    ],
)
def test_overlapping_unfinished_and_odd_text_is_kept_but_for_secrets(
    tmp_path: Path, text: str, literals: list[str], shown: str
) -> None:
    data = text.encode("utf-8", "surrogateescape")

    found = logged(tmp_path / "log", [data[index : index + 1] for index in range(len(data))], literals)

    assert found == shown.encode("utf-8", "surrogateescape")


def test_line_is_in_the_log_before_the_next_one_comes(tmp_path: Path) -> None:
    with StepLog(tmp_path / "log", Redactor([SECRET])) as log:
        log.stream().feed(f"first {SECRET}\n".encode())

        assert (tmp_path / "log").read_text() == f"first {MARK}\n"


def test_streams_that_interleave_do_not_show_a_secret_in_halves(tmp_path: Path) -> None:
    with StepLog(tmp_path / "log", Redactor([SECRET])) as log:
        one, other = log.stream(), log.stream()
        one.feed(SECRET[:5].encode())
        other.feed(b"meanwhile\n")
        one.feed(SECRET[5:].encode())

    assert (tmp_path / "log").read_text() == f"meanwhile\n{MARK}"


def test_long_log_keeps_both_ends_and_says_what_is_left_out(tmp_path: Path) -> None:
    with StepLog(tmp_path / "log", Redactor(), max_bytes=20, tail_bytes=10) as log:
        for number in range(10):
            log.write(f"line {number}.\n".encode())
        account = log.account()

    assert (tmp_path / "log").read_text() == "line 0.\nline 1.\nline\n[50 bytes are left out here]\n.\nline 9.\n"
    assert account == {"truncated": True, "outputBytes": 80}


def test_log_of_just_the_allowed_length_is_whole(tmp_path: Path) -> None:
    assert logged(tmp_path / "log", [b"x" * 100, b"y" * 10]) == b"x" * 100 + b"y" * 10


def test_second_command_of_an_attempt_goes_on_within_the_same_bound(tmp_path: Path) -> None:
    logged(tmp_path / "log", [b"x" * 95])

    assert logged(tmp_path / "log", [b"y" * 50]) == b"x" * 95 + b"y" * 5 + b"\n[35 bytes are left out here]\n" + b"y" * 10


def test_output_without_end_is_bounded_on_disk_and_recorded_as_such(toy: Toy) -> None:
    builder = f"printf 'fixed\\ndocumented\\n' >> made.txt && {COMMIT}; yes | head -c 20000000; echo the end"
    toy.start(worker_builder=builder, stop_at=["verify"])

    log = toy.run().files.log("build", 1)
    (evidence,) = (data for data in toy.data("EVIDENCE_RECORDED") if data["step"] == "build")
    assert MAX_BYTES < log.stat().st_size < MAX_BYTES + TAIL_BYTES + 100
    assert log.read_bytes().endswith(b"the end\n")
    assert (evidence["truncated"], evidence["outputBytes"]) == (True, 20000008)


def test_secrets_of_the_environment_are_on_disk_nowhere(toy: Toy) -> None:
    finding = {"findings": [{"severity": "P1", "summary": f"found {SECRET}"}]}
    state = toy.start(
        env={"MODEL_API_KEY": SECRET, "FOUND": json.dumps(finding)},
        worker_builder=f"printf %s $MODEL_API_KEY; echo $MODEL_API_KEY >&2; echo fixed >> made.txt && {COMMIT}",
        worker_reviewer='printf %s "$FOUND" > "$EVALWRIGHT_OUTPUT_FILE"',
    )

    files = toy.run().files
    kept = [files.ledger, *(files.path / "logs").iterdir(), *(files.path / "outputs").iterdir()]
    kept += (toy.runs.repository.state / "works").rglob("*.jsonl")
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []
    assert files.log("build", 1).read_text().split(MARK) in (["", "", "\n"], ["", "\n", ""])
    assert [one["summary"] for one in state.findings] == [f"found {MARK}"]
