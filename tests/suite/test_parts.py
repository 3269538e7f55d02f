"""The parts that read a suite: paths, lines, problems, lookup."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.errors import SuiteError, SuiteNotFound
from evalwright.suite import find_suite
from evalwright.suite.paths import overlaps, path_objection
from evalwright.suite.problems import Problems, line_of
from evalwright.suite.read import case_lines, parse_json, parse_suite, suite_file


@pytest.mark.parametrize("raw", ["a", "a/b", "./a", "a/", "a//b", "é", "a b", "..a", "a..b", "-x"])
def test_relative_path_inside_is_fine(tmp_path: Path, raw: str) -> None:
    (tmp_path / raw).mkdir(parents=True)
    assert path_objection(tmp_path, raw, "directory") is None
    assert path_objection(tmp_path, raw, "any") is None
    assert "is not a file" in (path_objection(tmp_path, raw, "file") or "")


@pytest.mark.parametrize("raw", ["", ".", "./", "..", "../a", "a/..", "/", "/a", "//a", "a\\b", "a\0", "./.", "x" * 5000])
def test_path_that_is_not_inside_is_objected_to_and_never_raises(tmp_path: Path, raw: str) -> None:
    assert path_objection(tmp_path, raw, "any")


@pytest.mark.parametrize("kind", ["file", "directory", "any"])
def test_link_loop_is_objected_to(tmp_path: Path, kind: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert path_objection(tmp_path, "loop", kind)
    assert path_objection(tmp_path, "loop/x", kind)


def test_file_that_is_no_plain_file_is_objected_to(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "fifo")
    assert path_objection(tmp_path, "fifo", "file")
    assert path_objection(tmp_path, "fifo", "directory")


@pytest.mark.parametrize(
    ("seen", "secret", "found"),
    [
        ("a", "a", True),
        ("a", "a/b", True),
        ("a/b", "a", True),
        ("a", "ab", False),
        ("ab", "a", False),
        ("a/b", "a/c", False),
        ("./a/", "a//b", True),
    ],
)
def test_overlap_goes_by_whole_names(tmp_path: Path, seen: str, secret: str, found: bool) -> None:
    assert bool(overlaps(tmp_path, [seen], {secret: "gold"})) is found


def test_overlap_goes_by_where_links_lead(tmp_path: Path) -> None:
    (tmp_path / "secret" / "tests").mkdir(parents=True)
    (tmp_path / "link").symlink_to("secret")
    assert overlaps(tmp_path, ["link"], {"secret/tests": "hidden"}) == [("hidden", "secret/tests", "link")]
    assert overlaps(tmp_path, ["secret/tests"], {"link": "gold"}) == [("gold", "link", "secret/tests")]
    assert overlaps(tmp_path, ["other"], {"link": "gold"}) == []


def test_lines_keep_their_numbers() -> None:
    assert list(case_lines(b"\xef\xbb\xbf{}\n\n  \r\n[]\r\n{}")) == [(1, "{}"), (4, "[]\r"), (5, "{}")]
    assert list(case_lines(b"")) == []
    assert list(case_lines(b"{}\n\xff\n{}")) == [(1, "{}"), (2, None), (3, "{}")]


def test_second_byte_order_mark_is_no_mark() -> None:
    number, text = next(iter(case_lines(b"\xef\xbb\xbf\xef\xbb\xbf{}")))
    assert (number, text) == (1, "\ufeff{}")
    assert text is not None
    with pytest.raises(ValueError, match=r"BOM|Expecting"):
        parse_json(text)


@pytest.mark.parametrize(
    "text",
    ["NaN", "[Infinity]", '{"x": -Infinity}', "1e999", '{"a": 1, "a": 1}', '{"x": {"a": 1, "a": 2}}', "", "{", "[" * 100_000],
)
def test_what_is_not_strict_json_is_refused(text: str) -> None:
    with pytest.raises((ValueError, RecursionError)):
        parse_json(text)


def test_strict_json_is_what_json_says() -> None:
    assert parse_json('{"a": [1, -0.5e3, true, null, "\\u00e9\\ud83d\\ude00"]}') == {
        "a": [1, -500.0, True, None, "é\U0001f600"]
    }


def test_suite_document_is_json_where_both_exist(tmp_path: Path) -> None:
    assert suite_file(tmp_path).name == "suite.json"
    (tmp_path / "suite.toml").write_text("")
    assert suite_file(tmp_path).name == "suite.toml"
    (tmp_path / "suite.json").write_text("{}")
    assert suite_file(tmp_path).name == "suite.json"


@pytest.mark.parametrize("text", ['x = "no"', 'x = "on"', 'x = "017"', 'x = "1e3"', 'x = "2024-01-01"'])
def test_quoted_toml_stays_text(text: str) -> None:
    assert parse_suite(Path("suite.toml"), text) == {"x": text[5:-1]}


def test_line_of_a_dotted_key_is_found_in_json_and_toml() -> None:
    text = '{\n "name": "x",\n "runner": {\n  "argv": ["name"],\n  "env": {}\n }\n}\n'
    assert [line_of(text, key) for key in ("name", "runner", "runner.argv", "runner.env")] == [2, 3, 4, 5]
    toml = 'name = "x"\n\n[runner]\nargv = ["a"]\n'
    assert [line_of(toml, key) for key in ("runner", "runner.argv")] == [3, 4]
    assert line_of(text, "nosuch") is None


def test_key_on_the_first_line_has_line_1() -> None:
    assert line_of('name = "x"\n', "name") == 1
    assert line_of('{"name": "x"}', "name") == 1


def test_problems_are_raised_together_or_not_at_all() -> None:
    problems = Problems()
    problems.raise_all()
    problems.add(Path("a"), "one", code="E_X", line=3, key=None)
    problems.add(Path("b"), "two", code="E_Y", hint="do", key="k")
    with pytest.raises(SuiteError, match="2 problems in 2 files") as caught:
        problems.raise_all()
    first, second = caught.value.records()
    assert first == {"code": "E_X", "message": "a:3: one", "hint": "edit a:3", "file": "a", "line": 3, "exit_code": 1}
    assert second == {"code": "E_Y", "message": "b: two", "hint": "do", "file": "b", "key": "k", "exit_code": 1}


def suite_at(place: Path) -> Path:
    place.mkdir(parents=True)
    (place / "suite.json").write_text("{}")
    return place


def test_suite_is_found_by_name_by_path_and_by_its_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    suites = Path("evals/suites")
    named, direct = suite_at(suites / "one"), suite_at(Path("two"))
    assert find_suite("one", suites) == (named, None)
    assert find_suite("two", suites) == (direct, None)
    assert find_suite("./two", suites) == (direct, None)
    assert find_suite("two/suite.json", suites) == (direct, None)
    assert find_suite(str(named.resolve()), suites) == (named.resolve(), None)


def test_default_suite_is_the_sample(tmp_path: Path) -> None:
    place = suite_at(tmp_path / "code-review")
    assert find_suite(None, tmp_path) == (place, None)


@pytest.mark.parametrize("name", ["", ".", "..", "nosuch", "x/y", "/no/such", "x" * 5000, "a\0b"])
def test_suite_that_is_nowhere_is_not_found_and_no_defect(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SuiteNotFound) as caught:
        find_suite(name, tmp_path / "suites")
    assert caught.value.hint


def test_directory_without_a_document_is_not_mistaken_for_a_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evals" / "suites" / "empty").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SuiteNotFound, match=r"holds no suite\.json"):
        find_suite("empty", Path("evals/suites"))
