"""The queue makes no difference: the same suites get the same report hash from local trials and from spoolctl's workers."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Answer, Project, shortened

QUIXBUGS = Path(__file__).parents[2] / "examples" / "quixbugs"
EPOCH = {"SOURCE_DATE_EPOCH": "1700000000"}
HASHES = ("report_hash", "content_hash")
TASK = '. "$EVALWRIGHT_TASK_FILE"'
SAY = 'printf "%s" "fine" > "$EVALCTL_OUTPUT_FILE"'
JUDGE = 'grep -q fine "$EVALCTL_OUTPUT_FILE" && echo \'{"ok": true, "score": 0.5, "findings": ["good enough"]}\''
HIDDEN = 'grep -q right answer && printf "1..1\\nok 1 - works\\n" > "$EVALWRIGHT_REPORT_FILE"\n'
ODD_NAMES = "mkdir -p 'a b/ö'; printf 1 > 'a b/ö/x\ny'; printf 2 > \"$(printf '\\377')\"; ln -s nowhere -- '-l'; rm a.txt"
TEXT_SCORERS = ["exact", "contains", "regex", "json-schema", "numeric-threshold", "number", "choice"]
BUILTIN = [*TEXT_SCORERS, "file-exists", "workspace-diff", "exit-code"]
COMMANDS = [
    {"name": "command", "id": "judge", "argv": ["/bin/sh", "-c", JUDGE]},
    {"name": "command", "id": "crash", "argv": ["/bin/sh", "-c", "exit 7"], "required": False},
]
Case = Mapping[str, Any]


AT_LEAST_ONE = {"path": "m", "gte": 1}


def case(name: str, task: str, **fields: Any) -> Case:
    return {"id": name, "task": task, **fields}


OLD_FORM: Sequence[Case] = [
    case("answer", "printf yes", expect={"exact": "yes", "text_contains": ["y", "z"], "text_regex": ["^y", "[0-9]"]}),
    case("files", "rm a.txt; echo x > b", expect={"files_exist": ["b", "a.txt"], "files_changed": ["*"], "exit_code": 1}),
    case(
        "json",
        "printf '{\"m\": 0.5}'",
        expect={"json_schema": {"type": "object"}, "numeric_threshold": {"path": "m", "gte": 1}},
    ),
]
NATIVE: Sequence[Case] = [
    case("text", "printf 'Answer: 42'", expect={"exact": "Answer: 42", "text_contains": ["41"], "text_regex": ["4.$"]}),
    case("number", "printf 'Answer: 42'", expect={"number": {"target": 42}}),
    case("choice", "printf 'Answer: A'", expect={"choice": {"target": "B", "choices": ["A", "B"]}}),
    case(
        "json", "printf '{\"m\": 2}'", expect={"json_schema": {"type": "array"}, "numeric_threshold": {"path": "m", "gte": 1}}
    ),
    case(
        "files",
        "mkdir d; echo x > d/f; exit 3",
        expect={"files_changed": ["d/*"], "exit_code": 3},
    ),
    case("signal", "kill -9 $$", expect={"exit_code": -9}),
    case("slow", "sleep 20", timeout_seconds=1, expect={"exit_code": 0}),
]
SUITES: Mapping[str, dict[str, Any]] = {
    "old form": {"native": False, "cases": OLD_FORM, "passed": 0},
    "native form": {"scorers": [{"use": name} for name in BUILTIN], "cases": NATIVE, "passed": 3},
    "command scorers": {"native": False, "line": SAY, "scorers": COMMANDS, "cases": [case("a", "t")], "passed": 0},
    "hidden tests": {
        "scorers": [{"use": "tests", "argv": ["/bin/sh", "check.sh"], "format": "tap"}],
        "files": {"hidden/check.sh": HIDDEN},
        "cases": [
            case(name, f"echo {name} > answer", hidden="hidden", expect={"tests": {"pass_to_pass": ["works"]}})
            for name in ("right", "wrong")
        ],
        "passed": 1,
    },
    "odd names": {
        "files": {"fixtures/w/CR\r.txt": b"\xff\r\n", "fixtures/w/ü": "u"},
        "cases": [case("A.b-C_d.1", ODD_NAMES, expect={"files_changed": ["a b/**"], "files_forbidden": ["a.txt"]})],
        "passed": 0,
    },
}


def both(project: Project, suite: str, *words: str) -> tuple[Answer, Answer]:
    """Run a suite with either queue and return the answers."""
    calls = {"local": (), "spoolctl": ("--queue", "spoolctl")}
    local, spooled = (
        project.call("run", suite, "--run-id", run_id, "--jobs", "2", "--json", *words, *queue, env=EPOCH, timeout=300)
        for run_id, queue in calls.items()
    )
    return local, spooled


def cases_of(project: Project, run_id: str) -> Any:
    return project.call("report", run_id, "--json").data["cases"]


def assert_same(project: Project, answers: tuple[Answer, Answer], passed: int) -> None:
    local, spooled = (answer.data for answer in answers)
    assert local["run"]["status_counts"]["pass"] == passed
    assert cases_of(project, "spoolctl") == cases_of(project, "local")
    assert [spooled[key] for key in HASHES] == [local[key] for key in HASHES]
    used = json.loads((project.run_dir("spoolctl") / "run.json").read_bytes())["execution"]["queue"]
    assert used == "spoolctl"


@pytest.mark.parametrize("name", shortened(SUITES, ["native form", "hidden tests"]))
def test_suite_gets_the_same_report_from_either_queue(name: str, project: Project) -> None:
    spec = SUITES[name]
    runner = {"shell": True, "command": spec.get("line", TASK), "env_allowlist": ["PATH"], "timeout_seconds": 20}
    project.suite(
        runner=runner if spec.get("native", True) else runner | {"argv": None},
        native=spec.get("native", True),
        cases=spec["cases"],
        scorers=spec.get("scorers", ()),
        files=spec.get("files"),
        acknowledged_unsandboxed_runner=True,
    )

    assert_same(project, both(project, "demo"), spec["passed"])


def test_suite_written_with_crlf_gets_the_same_report_from_either_queue(project: Project) -> None:
    answer = "one\r\ntwo\r\n"
    lines = [case("a", answer, workspace="fixtures/w", expect={"exact": answer, "files_changed": ["crlf.txt"]})]
    files = {"fixtures/w/crlf.txt": b"x\r\ny\r\n"}
    text = "".join(json.dumps(line) + "\r\n" for line in lines)
    runner = {"shell": True, "command": 'cat "$EVALWRIGHT_TASK_FILE"; sed -i s/x/z/ crlf.txt', "env_allowlist": ["PATH"]}
    suite = project.suite(runner=runner, native=False, cases=text, files=files)
    document = (suite / "suite.json").read_text()
    (suite / "suite.json").write_bytes(json.dumps(json.loads(document), indent=2).replace("\n", "\r\n").encode())

    assert_same(project, both(project, "demo"), 1)


def test_sample_suite_gets_the_same_report_from_either_queue(project: Project) -> None:
    project.call("init")

    answers = both(project, "code-review")

    assert_same(project, answers, 1)
    assert answers[1].data["report_hash"].startswith("sha256:89f6dee9ee25")


def quixbugs(project: Project) -> None:
    suite = project.path / "evals" / "suites" / "quixbugs"
    shutil.copytree(QUIXBUGS, suite)
    document = json.loads((suite / "suite.json").read_text())
    (suite / "suite.json").write_text(json.dumps({key: value for key, value in document.items() if key != "arms"}))


def test_a_few_repaired_programs_get_the_same_report_from_either_queue(project: Project) -> None:
    quixbugs(project)
    chosen = [word for name in ("flatten", "gcd", "sieve") for word in ("--case", name)]

    assert_same(project, both(project, "quixbugs", *chosen), 3)


@pytest.mark.acceptance
def test_all_repaired_programs_get_the_same_report_from_either_queue(project: Project) -> None:
    quixbugs(project)

    answers = both(project, "quixbugs")

    assert answers[0].data["run"]["case_count"] == 28
    assert_same(project, answers, answers[0].data["run"]["status_counts"]["pass"])
