"""Bytes that are not what one hopes for: they survive, or are refused with a place; they never break a run or a report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import shortened

from evalwright.cli.envelope import Reply, envelope
from evalwright.errors import SuiteError
from evalwright.suite import load_suite
from evalwright.suite.read import case_lines, parse_json

if TYPE_CHECKING:
    from tests.conftest import Project

BOM = b"\xef\xbb\xbf"


def case(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "task": "t", "workspace": "fixtures/w", "expect": {"exact": "ok"}} | fields


def line(**fields: Any) -> bytes:
    return json.dumps(case(**fields), ensure_ascii=False).encode()


def records_of(directory: Path) -> list[dict[str, Any]]:
    with pytest.raises(SuiteError) as caught:
        load_suite(directory)
    return caught.value.records()


def strict(text: str) -> Any:
    """Parse JSON, refusing what JSON does not have."""

    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def statuses(project: Project, run_id: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return the counts that the run stored and those that a report recomputes from its artifacts."""
    manifest = json.loads((project.run_dir(run_id) / "manifest.json").read_bytes())
    stored = {"pass": 0, "fail": 0, "error": 0}
    for entry in manifest["cases"]:
        stored[entry["status"]] += 1
    return stored, project.call("report", run_id).data["run"]["status_counts"]


# what the agent writes


def test_output_that_is_not_utf8_is_scored_and_its_bytes_are_kept(project: Project) -> None:
    runner = {"shell": True, "command": r"printf '\377\376PASS\n'"}
    project.suite(cases=[case(expect={"text_contains": ["PASS"], "exit_code": 0})], runner=runner)
    assert project.call("run", "demo", "--run-id", "r").data["run"]["status_counts"]["pass"] == 1
    assert project.record("r", "a", "runner.json")["exit_code"] == 0
    assert project.artifact("r", "a", "output.txt").read_bytes() == "\ufffd\ufffdPASS\n".encode()
    kept = [
        path.name
        for path in project.artifact("r", "a", "").iterdir()
        if path.is_file() and b"\xff\xfePASS\n" in path.read_bytes()
    ]
    assert kept


@pytest.mark.parametrize(
    "text", ["a\r\nb", "a\rb", "\r\n", "a\n\n", "\ufeffok", "a\u2028b\u0085c\x0bd\x0ce", "\0", "é\U0001f600", " ok "]
)
@pytest.mark.parametrize("way", ["file", "stdout"])
def test_answer_keeps_every_character_in_run_and_report(project: Project, way: str, text: str) -> None:
    program = "import json, os, sys; text = json.load(open('answer.json', encoding='utf-8')).encode()\n"
    program += (
        "open(os.environ['EVALWRIGHT_OUTPUT_FILE'], 'wb').write(text)" if way == "file" else "sys.stdout.buffer.write(text)"
    )
    files = {"fixtures/w/answer.json": json.dumps(text)}
    project.suite(cases=[case(expect={"exact": text})], runner={"argv": [sys.executable, "-c", program]}, files=files)
    assert project.call("run", "demo", "--run-id", "r").exit_code == 0
    stored, reported = statuses(project, "r")
    assert stored == reported == {"pass": 1, "fail": 0, "error": 0}
    assert project.artifact("r", "a", "output.txt").read_bytes() == text.encode()


def test_control_characters_in_a_reason_give_readable_junit(project: Project) -> None:
    wanted = "\u001b[31mred\u0000 ]]> <b>&amp; \ufffe \u2028"
    project.suite(cases=[case(expect={"text_contains": [wanted]})], runner={"argv": ["printf", r"\033[31m]]>"]})
    project.call("run", "demo", "--run-id", "r")
    answer = project.call("report", "r", "--format", "junit")
    root = ET.fromstring(answer.stdout.encode())
    assert (root.get("tests"), root.get("failures")) == ("1", "1")
    body = root.find(".//failure")
    assert body is not None
    assert "[31mred" in (body.text or "")
    assert all(character in "\t\n\r" or character >= " " for character in answer.stdout)


@pytest.mark.parametrize("answer", ['{"x": NaN}', '{"x": Infinity}', "NaN", '{"x": 1e999}'])
def test_answer_with_a_number_that_json_does_not_have_is_no_json(project: Project, answer: str) -> None:
    expect = {"json_schema": {}, "numeric_threshold": {"path": "x", "gte": 0}}
    project.suite(cases=[case(expect=expect)], runner={"argv": ["printf", "%s", answer]})
    assert project.call("run", "demo", "--run-id", "r").exit_code == 0
    report = project.call("report", "r")
    assert strict(report.stdout)["data"]["run"]["status_counts"]["pass"] == 0
    for path in project.run_dir("r").rglob("*.json"):
        strict(path.read_text())


@pytest.mark.parametrize("score", ["NaN", "Infinity", "-0.5", "1.5", "true", '"1"', "1e999", "null"])
def test_score_that_is_no_number_from_zero_to_one_is_an_error_and_never_stored(project: Project, score: str) -> None:
    judge = {"use": "command", "id": "judge", "argv": ["printf", "%s", '{"ok": true, "score": ' + score + ', "findings": []}']}
    project.suite(cases=[case(expect={})], runner={"argv": ["true"]}, scorers=[judge])
    answer = project.call("run", "demo", "--run-id", "r")
    assert answer.data["run"]["status_counts"] == {"pass": 0, "fail": 0, "error": 1}
    record = strict(project.artifact("r", "a", "score.json").read_text())
    assert record["scores"][0]["label"] == "error"
    assert record["scores"][0]["score"] == 0.0
    strict(project.call("report", "r").stdout)


def test_envelope_holds_no_nan_and_no_lone_surrogate() -> None:
    odd = {"x": float("nan"), "y": [float("inf"), -float("inf")], "\ud800": "a\udc00b", "n": {1: 2}}
    reply = Reply(data=odd)
    reply.warnings.append({"code": "W_X", "message": "\udfff"})
    text = envelope(reply, 0.0)
    document = strict(text)
    assert document["data"] == {"x": None, "y": [None, None], "\ufffd": "a\ufffdb", "n": {"1": 2}}
    text.encode()


# what a suite's files hold


@pytest.mark.parametrize("mark", [b"", BOM])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_byte_order_mark_and_crlf_never_become_part_of_a_value(project: Project, mark: bytes, end: bytes) -> None:
    directory = project.suite(cases=mark + line(id="a") + end + line(id="b") + end)
    document = json.dumps(json.loads((directory / "suite.json").read_text()), indent=1).encode()
    (directory / "suite.json").write_bytes(mark + document.replace(b"\n", end) + end)
    suite = load_suite(directory).suite
    assert [(case.id, case.expect) for case in suite.cases] == [("a", {"exact": "ok"}), ("b", {"exact": "ok"})]
    plain = project.suite("plain", cases=line(id="a") + b"\n" + line(id="b") + b"\n")
    assert [dict(case.record) for case in suite.cases] == [dict(case.record) for case in load_suite(plain).suite.cases]


def test_byte_order_mark_in_toml_is_accepted(project: Project) -> None:
    directory = project.suite(cases=line())
    (directory / "suite.json").unlink()
    text = 'schema_version = 2\r\nname = "demo"\r\n[runner]\r\nargv = ["true"]\r\n'
    (directory / "suite.toml").write_bytes(BOM + text.encode())
    assert load_suite(directory).suite.name == "demo"


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e"])
def test_only_a_line_feed_ends_a_line(separator: str) -> None:
    text = f'{{"task": "a{separator}b"}}'
    assert list(case_lines(f"{text}\n{text}".encode())) == [(1, text), (2, text)]


@pytest.mark.parametrize("separator", ["\u2028", "\u0085"])
def test_case_with_a_unicode_line_separator_can_be_added_and_added_again(project: Project, separator: str) -> None:
    project.suite(cases=[case(id="first")])
    words = (
        "case",
        "add",
        "demo",
        "--task",
        f"a{separator}b",
        "--workspace",
        "fixtures/w",
        "--id",
        "x",
        "--expect-json",
        '{"exact": "ok"}',
    )
    assert [strict(project.call(*words).stdout)["data"]["created"] for _ in range(2)] == [True, False]
    assert project.call("validate", "demo").data["case_count"] == 2


@pytest.mark.parametrize("text", [r'"\ud800"', r'"a\udfffb"', r'{"\ud800": 1}', r'[[{"x": ["\udc00"]}]]', '"\ud800"'])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        parse_json(text)


def test_whole_surrogate_pair_is_one_character() -> None:
    assert parse_json(r'"\ud83d\ude00"') == "\U0001f600"


@pytest.mark.parametrize("key", ["task", "expect", "meta"])
def test_half_of_a_surrogate_pair_in_a_case_is_named_with_its_line(project: Project, key: str) -> None:
    odd = "7001" if key == "task" else {"exact": "7001"}
    text = line(id="a") + b"\n" + line(id="b", **{key: odd}).replace(b"7001", rb"\ud800") + b"\n"
    records = records_of(project.suite(cases=text))
    assert [(record["code"], record["line"]) for record in records] == [("E_CASE_INVALID", 2)]


def test_half_of_a_surrogate_pair_in_suite_json_is_refused(project: Project) -> None:
    directory = project.suite(cases=line(), meta={"x": "7001"})
    (directory / "suite.json").write_text((directory / "suite.json").read_text().replace("7001", r"\ud800"))
    assert [record["code"] for record in records_of(directory)] == ["E_SCHEMA_VIOLATION"]


def test_line_that_is_not_utf8_is_named_and_the_others_are_still_checked(project: Project) -> None:
    latin = line(id="b", task="é").decode().encode("latin-1")
    records = records_of(project.suite(cases=b"\n".join([line(id="a"), latin, line(id="c d"), b""])))
    assert sorted(record.get("line", 0) for record in records) == [2, 3]
    assert any("UTF-8" in record["message"] for record in records)


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-32"])
@pytest.mark.parametrize("name", ["suite.json", "suite.toml"])
def test_suite_document_that_is_not_utf8_is_refused(project: Project, name: str, encoding: str) -> None:
    directory = project.suite(cases=line())
    (directory / "suite.json").unlink()
    text = '{"name": "demo", "runner": {"argv": ["é"]}}' if name.endswith("json") else 'name = "demo"\n[runner]\nargv = ["é"]\n'
    (directory / name).write_bytes(text.encode(encoding))
    assert [(record["code"], record["file"]) for record in records_of(directory)] == [
        ("E_SCHEMA_VIOLATION", str(directory / name))
    ]


# where it runs


PLAIN_LOCALE = {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii:strict"}


@pytest.mark.parametrize("verb", shortened(["validate", "plan", "run"], ["run"]))
def test_suite_that_is_not_ascii_works_in_the_c_locale(project: Project, verb: str) -> None:
    project.suite(cases=[case(task="Größe 😀", expect={"exact": "é\u2028"})], runner={"argv": ["printf", "é\u2028"]})
    words = [verb, "demo", *(["--run-id", "r"] if verb == "run" else [])]
    assert project.call(*words, env=PLAIN_LOCALE).exit_code == 0
    if verb == "run":
        for form in ("json", "text", "markdown", "junit"):
            assert project.call("report", "r", "--format", form, env=PLAIN_LOCALE).exit_code == 0
        assert project.call("report", "r", env=PLAIN_LOCALE).data["run"]["status_counts"]["pass"] == 1


def call_bytes(project: Project, *words: str | bytes, env: Mapping[str, str] = {}) -> tuple[int, dict[str, Any], str]:
    done = subprocess.run(
        [sys.executable, "-m", "evalwright", *words],
        cwd=project.path,
        env=os.environ | env,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, strict(done.stdout.decode()), done.stderr.decode()


@pytest.mark.parametrize(
    "words",
    [
        ["validate", b"\xff"],
        ["run", b"\xff"],
        ["run", "demo", "--case", b"\xff"],
        ["run", "demo", "--tag", b"\xff"],
        ["run", "demo", "--run-id", b"\xff"],
        ["report", b"\xff"],
        ["report", "--run-dir", b"\xff"],
        [b"\xff"],
        ["run", b"--\xff"],
        ["case", "add", "demo", "--task", b"\xff", "--workspace", "fixtures/w", "--expect-json", '{"exact": "ok"}'],
        ["case", "add", "demo", "--task", "t", "--workspace", b"\xff", "--expect-json", '{"exact": "ok"}'],
        ["case", "add", "demo", "--task", "t", "--workspace", "fixtures/w", "--id", b"\xff"],
        ["case", "add", "demo", "--task", "t", "--workspace", "fixtures/w", "--expect-json", b'{"exact": "\xff"}'],
        ["suite", "add", "new", "--runner-argv", b"\xff"],
        ["suite", "add", "new", "--native", "--runner-command", b"\xff", "--shell"],
        ["suite", "add", b"\xff", "--runner-argv", "true"],
        ["scorer", "add", "demo", "--name", "command", "--id", "x", "--argv", b"\xff"],
    ],
)
def test_argument_that_is_not_utf8_is_the_users_mistake_and_no_defect(project: Project, words: list[str | bytes]) -> None:
    directory = project.suite(cases=[case()])
    before = {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}
    code, document, _ = call_bytes(project, *words)
    assert document["errors"][0]["code"] != "E_INTERNAL"
    assert code == 1
    assert {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()} == before


def test_suite_in_a_directory_whose_name_is_not_utf8_runs_and_reports(project: Project) -> None:
    directory = project.suite(cases=[case()], runner={"argv": ["printf", "ok"]})
    odd = os.fsencode(project.path) + b"/odd\xff"
    os.rename(directory, odd)
    code, document, _ = call_bytes(project, "run", odd, "--run-id", "r")
    assert (code, document["ok"]) == (0, True)
    report = project.call("report", "r")
    assert (report.exit_code, report.warning_codes) == (0, [])
    assert report.data["run"]["status_counts"]["pass"] == 1


def test_project_in_a_directory_whose_name_is_not_utf8_works(project: Project) -> None:
    project.suite(cases=[case()], runner={"argv": ["printf", "ok"]})
    odd = os.fsencode(project.path) + b"/odd\xff"
    os.mkdir(odd)
    os.rename(project.path / "evals", odd + b"/evals")
    done = subprocess.run(
        [sys.executable, "-m", "evalwright", "run", "demo"], cwd=odd, capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0
    assert strict(done.stdout.decode())["data"]["run"]["status_counts"]["pass"] == 1


def test_file_names_that_are_not_utf8_are_seen_and_can_be_forbidden(project: Project) -> None:
    runner = {"shell": True, "command": r"""printf x > "$(printf 'new\377.py')" """}
    project.suite(cases=[case(expect={"files_forbidden": ["*.py"]})], runner=runner)
    assert project.call("run", "demo", "--run-id", "r").data["run"]["status_counts"]["fail"] == 1
    assert project.call("report", "r").data["run"]["status_counts"]["fail"] == 1
