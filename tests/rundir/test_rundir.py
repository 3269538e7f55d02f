"""Run directories on disk: documents whole or not at all, bundles sealed, an index that is never trusted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from evalwright.canonical import digest_bytes
from evalwright.errors import DiskFull, RunCorrupt, RunNotFound, UsageError
from evalwright.rundir import (
    BundleWriter,
    Layout,
    append_summary,
    changed_artifacts,
    disk_errors,
    find_run,
    is_experiment,
    read_document,
    read_summaries,
    runs_in,
    sealed_digests,
    write_document,
    write_text,
)
from evalwright.rundir.documents import render_rows


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """Return the layout of an empty project."""
    return Layout(tmp_path / "evals", tmp_path / "evals" / "runs")


def test_document_is_written_sorted_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_document(path, {"b": 1, "a": "é\u2028"})
    assert path.read_bytes() == '{\n  "a": "é\u2028",\n  "b": 1\n}\n'.encode()
    assert read_document(path) == {"a": "é\u2028", "b": 1}
    assert [item.name for item in tmp_path.iterdir()] == ["x.json"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"x": [float("-inf")]}])
def test_document_never_holds_what_json_does_not_have(tmp_path: Path, value: object) -> None:
    (tmp_path / "x.json").write_text("old")
    with pytest.raises(ValueError, match="JSON"):
        write_document(tmp_path / "x.json", value)
    assert (tmp_path / "x.json").read_text() == "old"


@pytest.mark.parametrize("text", ["a\r\nb\rc\n", "", "é", "\udcff"])
def test_text_is_written_as_it_is(tmp_path: Path, text: str) -> None:
    write_text(tmp_path / "x", text)
    assert (tmp_path / "x").read_bytes() == text.encode("utf-8", "surrogateescape")


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "x", "old")
    with pytest.raises(UnicodeEncodeError):
        write_text(tmp_path / "x", "\ud800")
    assert [item.name for item in tmp_path.iterdir()] == ["x"]
    assert (tmp_path / "x").read_text() == "old"


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"{} {}"])
def test_unreadable_document_is_corrupt_and_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(RunCorrupt, match=r"x\.json"):
        read_document(tmp_path / "x.json")


@pytest.mark.parametrize("kind", ["absent", "directory", "dangling"])
def test_document_that_is_no_file_is_corrupt(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.json"
    if kind == "directory":
        path.mkdir()
    elif kind == "dangling":
        path.symlink_to("nowhere")
    with pytest.raises(RunCorrupt):
        read_document(path)


@pytest.mark.parametrize("number", [28, 122, 30, 5])
def test_disk_without_room_is_disk_full(tmp_path: Path, number: int) -> None:
    with pytest.raises(DiskFull), disk_errors(tmp_path):
        raise OSError(number, os.strerror(number))


def test_other_errors_of_a_disk_stay_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(PermissionError), disk_errors(tmp_path):
        raise PermissionError(13, "no")


def test_full_device_is_disk_full(tmp_path: Path) -> None:
    with pytest.raises(DiskFull), disk_errors(Path("/dev/full")), open("/dev/full", "wb", buffering=0) as file:
        file.write(b"x")


def test_bundle_is_sealed_with_the_digest_of_every_file(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "c")
    writer.write_bytes("scorers/x.json", b"{}")
    writer.write_text("output.txt", "a\r\n")
    assert sealed_digests(tmp_path / "c") is None
    writer.seal({"attempt": 1})
    digests = sealed_digests(tmp_path / "c") or {}
    assert digests == {"output.txt": digest_bytes(b"a\r\n"), "scorers/x.json": digest_bytes(b"{}")}
    assert changed_artifacts(tmp_path / "c", digests) == []
    (tmp_path / "c" / "output.txt").write_text("b")
    (tmp_path / "c" / "scorers" / "x.json").unlink()
    assert changed_artifacts(tmp_path / "c", digests) == ["output.txt", "scorers/x.json"]


def test_equal_files_of_a_bundle_are_one_file_and_each_has_its_digest(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "c")
    for name, text in (("runner.stdout.txt", ""), ("output.txt", ""), ("scorers/x.json", "{}"), ("scorers/y.json", "{}")):
        writer.write_text(name, text)
    writer.write_text("task.txt", "other")
    writer.seal({})
    inodes = {path.name: path.stat().st_ino for path in (tmp_path / "c").rglob("*.*")}
    assert len(set(inodes.values())) == 4
    assert inodes["runner.stdout.txt"] == inodes["output.txt"]
    assert inodes["x.json"] == inodes["y.json"]
    assert changed_artifacts(tmp_path / "c", sealed_digests(tmp_path / "c") or {}) == []


def test_equal_file_is_written_again_where_the_first_is_gone(tmp_path: Path) -> None:
    writer = BundleWriter(tmp_path / "c")
    writer.write_text("a.txt", "same")
    (tmp_path / "c" / "a.txt").unlink()
    writer.write_text("b.txt", "same")
    assert (tmp_path / "c" / "b.txt").read_text() == "same"


def test_rows_of_a_long_list_stand_on_one_line_each(tmp_path: Path) -> None:
    document: dict[str, Any] = {"z": {"cases": []}, "cases": [{"b": 1, "a": '\n  "cases": []'}, {}], "a": '"cases": []'}
    text = "".join(render_rows(document, "cases"))
    assert json.loads(text) == document
    assert len(text.splitlines()) == 1 + 4 + 3 + 1 + 1
    assert json.loads("".join(render_rows({"cases": []}, "cases"))) == {"cases": []}


@pytest.mark.parametrize("planted", ["file", "link"])
def test_bundle_never_writes_over_or_through_what_is_there(tmp_path: Path, planted: str) -> None:
    writer = BundleWriter(tmp_path / "c")
    victim = tmp_path / "victim"
    victim.write_text("precious")
    place = tmp_path / "c" / "output.txt"
    if planted == "link":
        place.symlink_to(victim)
    else:
        place.write_text("planted")
    with pytest.raises(FileExistsError):
        writer.write_text("output.txt", "x")
    assert victim.read_text() == "precious"


@pytest.mark.parametrize("name", ["../x", "absolute", "a/../../x"])
def test_bundle_never_writes_outside_its_directory(tmp_path: Path, name: str) -> None:
    writer = BundleWriter(tmp_path / "deep" / "c")
    (tmp_path / "deep" / "c" / "a").mkdir()
    with pytest.raises((ValueError, UsageError, OSError)):
        writer.write_text(str(tmp_path / "deep" / "x") if name == "absolute" else name, "x")
    assert not (tmp_path / "deep" / "x").exists()


@pytest.mark.parametrize("text", ["[]", "null", "7", '{"digests": 7}', '{"digests": ["a"]}', "{}"])
def test_seal_that_is_no_seal_vouches_for_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "bundle.json").write_text(text)
    try:
        assert not sealed_digests(tmp_path)
    except RunCorrupt:
        return


def test_newest_summary_of_a_run_counts_and_torn_lines_are_skipped(tmp_path: Path) -> None:
    index = tmp_path / "index"
    assert read_summaries(index) == {}
    append_summary(index, {"run_id": "a", "n": 1})
    append_summary(index, {"run_id": "b", "n": 2, "text": "\u2028"})
    append_summary(index, {"run_id": "a", "n": 3})
    with index.open("ab") as file:
        file.write(b'[]\nnull\n7\n{"x": 1}\n\xff\n{"run_id": ["a"]}\n{"run_id": "c"')
    assert {name: entry["n"] for name, entry in read_summaries(index).items()} == {"a": 3, "b": 2}


def test_summary_after_a_torn_line_is_not_lost(tmp_path: Path) -> None:
    index = tmp_path / "index"
    index.write_bytes(b'{"run_id": "torn"')
    append_summary(index, {"run_id": "a"})
    assert set(read_summaries(index)) == {"a"}


def test_run_is_found_by_id_or_by_directory_and_by_one_of_them(layout: Layout) -> None:
    place = layout.runs / "r"
    place.mkdir(parents=True)
    with pytest.raises(RunNotFound):
        find_run(layout, "r", None)
    (place / "run.json").write_text("{}")
    assert find_run(layout, "r", None).path == place
    assert find_run(layout, None, str(place)).path == place
    for both in ((None, None), ("r", str(place))):
        with pytest.raises(UsageError):
            find_run(layout, *both)


def test_runs_are_those_directories_that_hold_a_record(layout: Layout) -> None:
    assert list(runs_in(layout)) == []
    for name in ("b", "a", ".hidden", "notes", "é"):
        (layout.runs / name).mkdir(parents=True)
        if name != "notes":
            (layout.runs / name / "run.json").write_text("{}")
    (layout.runs / "file").write_text("x")
    (layout.runs / "link").symlink_to("a")
    assert [run.path.name for run in runs_in(layout)] == ["a", "b"]


@pytest.mark.parametrize("name", ["../x", "/etc", "", "a/b"])
def test_experiment_id_is_never_a_path(layout: Layout, name: str) -> None:
    with pytest.raises(UsageError):
        layout.experiment(name)
    assert is_experiment(layout, name) is False
