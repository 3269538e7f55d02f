"""The ledger: any damage is found and placed, a torn tail repaired, and nothing is ever written after a doubt."""

from __future__ import annotations

import json
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from evalwright.canonical import canonical_json, digest_text
from evalwright.errors import LedgerDamaged, RunBusy
from evalwright.ledger import GENESIS, Ledger, first_damage, last_event, read_events

DATA = Path(__file__).parent / "data" / "ledgers"
EVENTS = 12


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Return a ledger of twelve committed events."""
    file = tmp_path / "ledger.jsonl"
    with Ledger(file, run="r") as ledger:
        for number in range(EVENTS):
            ledger.append("TRIAL_FINISHED", {"case": f"c{number}", "value": number / 4, "text": "é\u2028\n"})
        ledger.commit()
    return file


def test_chain_begins_at_genesis_and_each_event_names_the_one_before(path: Path) -> None:
    events = read_events(path)

    assert [event["seq"] for event in events] == list(range(1, EVENTS + 1))
    assert [event["prev"] for event in events] == [GENESIS, *(event["digest"] for event in events[:-1])]
    assert set(events[0]) == {"v", "seq", "ts", "run", "type", "actor", "data", "prev", "digest"}
    assert events[0]["ts"].endswith("Z")
    assert first_damage(path) is None


def edited(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], lines[at].replace(b'"value":', b'"value":1'), *lines[at + 1 :]]


def dropped(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], *lines[at + 1 :]]


def swapped(lines: list[bytes], at: int) -> list[bytes]:
    other = (at + 1) % len(lines)
    result = list(lines)
    result[at], result[other] = result[other], result[at]
    return result


def doubled(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[: at + 1], *lines[at:]]


def shortened(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], lines[at][: len(lines[at]) // 2] + b"\n", *lines[at + 1 :]]


def joined(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], lines[at].rstrip(b"\n"), *lines[at + 1 :]]


def blank(lines: list[bytes], at: int) -> list[bytes]:
    return [*lines[:at], b"\n", *lines[at:]]


DAMAGES = [edited, dropped, swapped, doubled, shortened, joined, blank]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
@pytest.mark.parametrize("at", range(EVENTS))
def test_damage_of_any_line_is_refused_at_its_place_and_never_repaired(
    path: Path, damage: Callable[[list[bytes], int], list[bytes]], at: int
) -> None:
    damaged = b"".join(damage(path.read_bytes().splitlines(keepends=True), at))
    path.write_bytes(damaged)

    found = first_damage(path)

    assert found is not None
    first_wrong = 0 if damage is swapped and at == EVENTS - 1 else at
    assert found.after_seq in {first_wrong, first_wrong + 1}
    assert found.line in {first_wrong + 1, first_wrong + 2}
    if damage is not joined or at < EVENTS - 1:
        with pytest.raises(LedgerDamaged, match=rf"ledger.jsonl:{found.line}: .*after sequence {found.after_seq}\)"):
            read_events(path)
    with pytest.raises(LedgerDamaged):
        Ledger(path, run="r")
    assert path.read_bytes() == damaged


def test_any_changed_byte_is_found_or_changes_no_event(path: Path) -> None:
    original, events = path.read_bytes(), read_events(path)
    source = random.Random(5)
    for _ in range(400):
        at = source.randrange(len(original))
        path.write_bytes(original[:at] + bytes([source.randrange(256)]) + original[at + 1 :])

        if first_damage(path) is None:
            assert read_events(path) == events


def test_sequence_that_only_equals_its_number_is_no_sequence(tmp_path: Path) -> None:
    path = tmp_path / "l.jsonl"
    with Ledger(path, run="r") as ledger:
        ledger.append("RUN_STARTED", {})
    event = {key: item for key, item in json.loads(path.read_bytes()).items() if key != "digest"} | {"seq": True}
    path.write_text(json.dumps(event | {"digest": digest_text(canonical_json(event))}) + "\n")

    assert first_damage(path) is not None


@pytest.mark.parametrize("kept", [0, 1, 5, EVENTS - 1])
def test_chopped_tail_is_found_by_the_head_and_refused(path: Path, kept: int) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:kept]))

    found = first_damage(path)

    assert found is not None
    assert (found.code, found.after_seq) == ("chopped", kept)
    with pytest.raises(LedgerDamaged):
        Ledger(path, run="r")


def test_rewritten_ledger_with_a_chain_of_its_own_is_found_by_the_head(path: Path, tmp_path: Path) -> None:
    head = path.with_name("ledger.head.json").read_bytes()
    path.unlink()
    path.with_name("ledger.head.json").unlink()
    with Ledger(path, run="r") as ledger:
        for number in range(EVENTS):
            ledger.append("TRIAL_FINISHED", {"case": f"c{number}", "status": "pass"})
    path.with_name("ledger.head.json").write_bytes(head)

    found = first_damage(path)

    assert found is not None
    assert (found.code, found.line) == ("rewritten", EVENTS)


@pytest.mark.parametrize("head", [b"", b"[]", b"{}", b"not json", b'{"seq": null}', b'{"seq": 3}'])
def test_head_that_is_no_head_record_is_damage_since_no_crash_leaves_one(path: Path, head: bytes) -> None:
    path.with_name("ledger.head.json").write_bytes(head)

    with pytest.raises(LedgerDamaged):
        read_events(path)
    with pytest.raises(LedgerDamaged), Ledger(path, run="r"):
        pass
    damage = first_damage(path)
    assert damage is not None
    assert damage.code == "bad_head"


@pytest.mark.parametrize("uncommitted", [1, 40, -2])
def test_torn_last_line_is_set_aside_and_recorded_when_opened_for_append(path: Path, uncommitted: int) -> None:
    with Ledger(path, run="r") as ledger:
        ledger.append("RUN_INTERRUPTED", {"cut": 1})
    whole = path.read_bytes()
    last = whole.splitlines(keepends=True)[-1]
    torn = last[:uncommitted]
    path.write_bytes(whole[: -len(last)] + torn)

    found = first_damage(path)
    assert found is not None
    assert (found.code, found.line, found.after_seq) == ("torn_tail", EVENTS + 1, EVENTS)
    before = path.read_bytes()
    assert len(read_events(path)) == EVENTS
    assert path.read_bytes() == before, "reading must never repair"

    with Ledger(path, run="r") as ledger:
        ledger.commit()

    events = read_events(path)
    assert (events[-1]["type"], events[-1]["data"], events[-1]["seq"]) == (
        "LEDGER_TAIL_REPAIRED", {"bytes": len(torn)}, EVENTS + 1,
    )  # fmt: skip
    assert path.with_name("ledger.jsonl.torn").read_bytes() == torn + b"\n"
    assert first_damage(path) is None


def test_lost_final_newline_of_a_committed_event_is_a_chopped_tail_and_not_silently_dropped(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])

    with pytest.raises(LedgerDamaged, match="12 events were written"):
        Ledger(path, run="r")


def test_second_writer_is_stopped_before_it_forks_the_chain(path: Path) -> None:
    with Ledger(path, run="r") as first:
        with pytest.raises(RunBusy), Ledger(path, run="r"):
            pass
        first.append("RUN_RESUMED", {})

    with Ledger(path, run="r") as later:
        later.append("RUN_RESUMED", {})
    assert len(read_events(path)) == EVENTS + 2


def test_writer_that_ignores_the_lock_is_noticed_before_the_chain_forks(path: Path) -> None:
    with Ledger(path, run="r") as ledger:
        with path.open("ab") as foreign:
            foreign.write(b"{}\n")
        with pytest.raises(RunBusy):
            ledger.append("RUN_RESUMED", {})


def test_reader_of_a_live_ledger_never_takes_it_for_a_chopped_one(path: Path) -> None:
    """The head is read before the ledger: what a writer commits between the two must not look like damage."""
    done = threading.Event()

    def write() -> None:
        with Ledger(path, run="r") as ledger:
            for _ in range(200):
                ledger.append("RUN_RESUMED", {})
                ledger.commit()
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    while not done.is_set():
        read_events(path)
        damage = first_damage(path)
        assert damage is None or damage.code == "torn_tail"
    thread.join()


@pytest.mark.parametrize(
    "data",
    [
        {"n": [1.0, 1e21, -0.0, 2**60, 1e-9, float("nan")]},
        {"s": "\ud800 lone", "k\udfff": 1},
        {"s": "\ud83d" + "\ude00"},
        {"deep": [[[[{"a": None}]]]], "": "", "é": True},
    ],
    ids=["numbers", "lone surrogates", "split pair", "nested"],
)
def test_what_was_appended_verifies(tmp_path: Path, data: dict[str, object]) -> None:
    with Ledger(tmp_path / "l.jsonl", run="r") as ledger:
        ledger.append("TRIAL_FINISHED", data)
        ledger.append("RUN_FINISHED", {})

    assert len(read_events(tmp_path / "l.jsonl")) == 2


@pytest.mark.parametrize("work", [None, 'w "\\" \U0001f600'])
def test_digest_covers_the_canonical_form_of_the_whole_event_whatever_its_names_are(tmp_path: Path, work: str | None) -> None:
    place = tmp_path / "ledger.jsonl"
    with Ledger(place, run='r "é" \ud800', work=work) as ledger:
        event = ledger.append('T "\n"', {"b": 1.0, "a": ["é"]}, actor='\\ "a"', kind="\x7f")
    body = {key: value for key, value in event.items() if key != "digest"}

    assert event["digest"] == digest_text(canonical_json(body))
    assert list(json.loads(place.read_text())) == list(event)
    assert read_events(place) == [event]


def test_ledger_of_the_reference_implementation_verifies() -> None:
    assert len(read_events(DATA / "stopAt.events.jsonl")) == 19
    assert first_damage(DATA / "stopAt.events.jsonl") is None


def test_torn_ledger_of_the_reference_implementation_is_repaired_on_append_only(tmp_path: Path) -> None:
    path = tmp_path / "torn.jsonl"
    shutil.copy(DATA / "torn-tail.CORRUPT.jsonl", path)

    found = first_damage(path)
    assert found is not None
    assert (found.code, found.line, found.after_seq) == ("torn_tail", 26, 25)
    with Ledger(path, run="R1") as ledger:
        assert ledger.seq == 26
    assert [event["type"] for event in read_events(path)][-1] == "LEDGER_TAIL_REPAIRED"


def test_two_events_on_one_line_of_the_reference_implementation_are_refused_with_their_place(tmp_path: Path) -> None:
    path = tmp_path / "joined.jsonl"
    shutil.copy(DATA / "missing-newline-append.CORRUPT.jsonl", path)
    lines = path.read_bytes().split(b"\n")
    at = next(number for number, line in enumerate(lines, 1) if line.count(b'"seq":') > 1)

    found = first_damage(path)

    assert found is not None
    assert (found.code, found.line) == ("not_json", at)
    with pytest.raises(LedgerDamaged, match=f"joined.jsonl:{at}:"):
        Ledger(path, run="R1")


def test_empty_ledger_is_whole(tmp_path: Path) -> None:
    (tmp_path / "l.jsonl").write_bytes(b"")

    assert read_events(tmp_path / "l.jsonl") == []
    with Ledger(tmp_path / "l.jsonl", run="r") as ledger:
        assert ledger.append("RUN_STARTED", {})["prev"] == GENESIS


def test_head_names_the_last_committed_event_and_lags_behind_without_harm(path: Path) -> None:
    with Ledger(path, run="r") as ledger:
        ledger.append("RUN_RESUMED", {})

    assert json.loads(path.with_name("ledger.head.json").read_bytes())["seq"] == EVENTS
    assert first_damage(path) is None


def test_number_nested_too_deeply_for_the_parser_is_damage_and_no_crash(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")

    found = first_damage(path)

    assert found is not None
    assert (found.code, found.line) == ("not_json", EVENTS + 1)


def test_last_event_is_told_where_the_head_vouches_for_it(path: Path) -> None:
    assert last_event(path) == read_events(path)[-1]


@pytest.mark.parametrize("case", ["changed", "torn", "behind", "without head", "longer than the tail", "empty"])
def test_last_event_that_nothing_vouches_for_is_none(path: Path, case: str) -> None:
    if case == "changed":
        path.write_bytes(path.read_bytes().replace(b'"value":2.75', b'"value":2.5'))
    elif case == "torn":
        path.write_bytes(path.read_bytes() + b'{"v":1')
    elif case == "behind":
        with Ledger(path, run="r") as ledger:
            ledger.append("RUN_FINISHED", {})
    elif case == "without head":
        path.with_name("ledger.head.json").unlink()
    elif case == "longer than the tail":
        with Ledger(path, run="r") as ledger:
            ledger.append("RUN_FINISHED", {"text": "x" * (1 << 16)})
            ledger.commit()
    else:
        path.write_bytes(b"")

    assert last_event(path) is None
