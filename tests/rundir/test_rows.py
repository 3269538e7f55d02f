"""Documents with one long list: read item by item, with the same result as when they are read as a whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.errors import RunCorrupt
from evalwright.rundir import read_around, read_rows

LONG = "é" * 200_000
ROWS: dict[str, list[Any]] = {
    "nothing": [],
    "numbers": [*range(60_000), -1.5, 1e300],
    "long texts": [LONG, {"deep": [LONG, {"cases": [1]}]}, "\U0001f680", "\ud800"],
    "objects": [{"id": f"c{number}", "ok": None, "list": [[], {}]} for number in range(5_000)],
}
WRONG = {
    "nothing": "",
    "a list": "[]",
    "half a list": '{"cases": [1, 2',
    "half an item": '{"cases": [1, {"a": ',
    "a comma too many": '{"cases": [1, ]}',
    "no comma": '{"cases": [1 2]}',
    "no colon": '{"cases" [1]}',
    "a name that is no text": "{1: [1]}",
    "a comma after the last member": '{"cases": [],}',
    "more than a document": '{"cases": []} {}',
    "the list twice": '{"cases": [], "cases": [1]}',
    "bytes that are no UTF-8": '{"cases": ["\udcff"]}',
}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_rows_and_what_stands_around_them_are_the_whole_document(tmp_path: Path, rows: list[Any], indent: int | None) -> None:
    around: dict[str, Any] = {"a": {"cases": ["other"]}, "b": LONG, "z": {"y": -7, "cases": [], "x": True}, "zz": 0.5}
    document = around | {"z": {"y": -7, "cases": rows, "x": True}}
    path = tmp_path / "d.json"
    path.write_bytes(json.dumps(document, indent=indent, ensure_ascii=False).encode("utf-8", "surrogatepass"))

    assert list(read_rows(path, "z", "cases")) == rows
    assert read_around(path, "z", "cases") == (around, len(rows))


def test_document_without_the_list_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"cases": {"b": 1}, "suite": null}')

    assert read_around(path, "cases") == ({"cases": {"b": 1}, "suite": None}, 0)
    assert read_around(path, "suite", "cases") == ({"cases": {"b": 1}, "suite": None}, 0)


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_what_is_no_document_names_its_file(tmp_path: Path, text: str) -> None:
    path = tmp_path / "d.json"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))

    with pytest.raises(RunCorrupt, match=r"d\.json"):
        read_around(path, "cases")


def test_missing_document_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(RunCorrupt, match=r"d\.json"):
        list(read_rows(tmp_path / "d.json", "cases"))
