"""Gold cases: found by their line, and without it."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.canonical import digest_json
from evalwright.errors import StoreError
from evalwright.store import DirectoryStore
from evalwright.worker.gold import GoldCases

LINES = ["", '{"id": "a", "task": "first"}', "  ", '{"task": "derived"}\r', '{"id": "c", "task": "é"}']


@pytest.fixture(params=["plain", "byte order mark"])
def cases(request: pytest.FixtureRequest, tmp_path: Path) -> GoldCases:
    suite = tmp_path / "suite"
    suite.mkdir()
    mark = b"\xef\xbb\xbf" if request.param != "plain" else b""
    (suite / "cases.jsonl").write_bytes(mark + "\n".join(LINES).encode())
    store = DirectoryStore(tmp_path / "store")
    return GoldCases(store, store.tree(store.put_tree(suite)), "cases.jsonl")


@pytest.mark.parametrize("line", [2, 0, 1, 5, 99], ids=["its own", "unknown", "a blank one", "another's", "none"])
def test_case_is_found_whatever_its_line_is_said_to_be(cases: GoldCases, line: int) -> None:
    assert cases.case("a", line) == {"id": "a", "task": "first"}


def test_case_without_an_id_has_the_derived_one(cases: GoldCases) -> None:
    derived = digest_json({"task": "derived"})[7:19]
    assert cases.case(derived, 4) == {"id": derived, "task": "derived"}


def test_case_that_is_not_there_is_named(cases: GoldCases) -> None:
    with pytest.raises(StoreError, match="lack b"):
        cases.case("b", 3)
