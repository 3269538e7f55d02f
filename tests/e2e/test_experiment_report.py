"""A real experiment through the command line: what run, report, status, verify and jobs say of it, whole and damaged."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from evalwright.cli.schemas import SCHEMAS

if TYPE_CHECKING:
    from tests.conftest import Answer, Project
    from tests.zygote import Zygote

CASES = [
    {"id": "easy", "task": "ok", "expect": {"exact": "ok"}, "tags": ["short"], "split": "train"},
    {"id": "flaky", "task": "odd", "expect": {"exact": "1"}, "tags": ["short", "luck"], "split": "train"},
    {"id": "hard", "task": "no", "expect": {"exact": "ok"}, "split": "test"},
]
GOOD = 'case "$(cat "$EVALWRIGHT_TASK_FILE")" in odd) printf %s "$EVALWRIGHT_REPEAT";; *) cat "$EVALWRIGHT_TASK_FILE";; esac'
RUNS = ["x.bad.1", "x.good.1", "x.bad.2", "x.good.2"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, zygote: Zygote) -> tuple[Project, Answer]:
    """Return a project with the experiment ``x`` of two arms and two passes, and what ``run`` answered; nobody changes it."""
    from tests.conftest import Project, shell

    project = Project(tmp_path_factory.mktemp("experiment"), zygote)
    arms = {"bad": {"runner": {"command": "printf nothing"}}, "good": {}}
    project.suite(cases=CASES, runner=shell(GOOD), scorers=[{"use": "exact"}], arms=arms, acknowledged_unsandboxed_runner=True)
    return project, project.call("run", "demo", "--repeats", "2", "--run-id", "x")


@pytest.fixture
def whole(made: tuple[Project, Answer]) -> Project:
    return made[0]


@pytest.fixture
def copy(made: tuple[Project, Answer], tmp_path: Path, zygote: Zygote) -> Project:
    """Return a private copy of the project."""
    from tests.conftest import Project

    shutil.copytree(made[0].path, tmp_path / "copy", symlinks=True)
    return Project(tmp_path / "copy", zygote)


def report(project: Project, *words: str) -> Any:
    answer = project.call("report", *words)
    assert answer.exit_code == 0, answer.stderr
    Draft202012Validator(SCHEMAS["report"]).validate(answer.data)
    return answer.data


def test_run_ends_with_the_figures_that_its_data_holds(made: tuple[Project, Answer]) -> None:
    project, answer = made
    assert answer.exit_code == 0
    Draft202012Validator(SCHEMAS["run"]).validate(answer.data)
    assert [(arm["name"], arm["passed"], arm["scored"]) for arm in answer.data["arms"]] == [("bad", 0, 6), ("good", 3, 6)]
    text = project.call("run", "demo", "--repeats", "2", "--run-id", "x", "--format", "text").stdout
    first, second, *rest = text.splitlines()
    assert first == "These runs were finished before; nothing was executed."
    assert second.startswith("demo: good 0.50 (")
    assert "Flaky (pass in some repeats): good: flaky" in rest
    assert "Never passed: hard" in rest
    assert any(line.startswith("No evidence that good and bad differ: +0.50") for line in rest)
    assert rest[-1].endswith("evalwright compare x   ·   evalwright report x --failures")


def test_report_holds_arms_runs_cases_and_totals(whole: Project) -> None:
    data = report(whole, "x")
    assert (data["experiment"], data["suite"], data["finished"], data["report_hash"]) == ("x", "demo", True, None)
    assert [run["run_id"] for run in data["runs"]] == RUNS
    assert {run["state"] for run in data["runs"]} == {"completed"}
    assert data["totals"] | {"pass_rate_scored": None, "pass_rate_attempted": None} == {
        "planned": 12,
        "missing": 0,
        "attempted": 12,
        "scored": 12,
        "passed": 3,
        "harness_errors": 0,
        "agent_faults": 0,
        "unscored": 0,
        "pass_rate_scored": None,
        "pass_rate_attempted": None,
    }
    good = data["arms"][1]
    assert (good["flaky"], good["never"], good["stable"]) == (["flaky"], ["hard"], ["easy"])
    assert good["cost"] == {"total": None, "known": 0, "of": 6}
    assert [place["status"] for place in data["cases"][1]["arms"]["good"]] == ["pass", "fail"]


@pytest.mark.parametrize("form", ["text", "markdown", "junit", "sarif", "github"])
def test_form_goes_into_a_pipe_without_escapes(whole: Project, form: str) -> None:
    answer = whole.call("report", "x", "--format", form)
    assert (answer.exit_code, answer.stderr) == (0, "")
    assert "\x1b" not in answer.stdout
    if form == "junit":
        assert ET.fromstring(answer.stdout).get("tests") == "12"
    if form == "sarif":
        assert len(json.loads(answer.stdout)["runs"]) == 4


@pytest.mark.parametrize(
    "words", [["--case", "easy"], ["--tag", "short"], ["--split", "train", "--case", "flaky"]], ids=" ".join
)
@pytest.mark.parametrize("name", ["x", "x.good.1"])
def test_cases_can_be_selected(whole: Project, name: str, words: list[str]) -> None:
    wanted = {"--case": {"easy"}, "--tag": {"easy", "flaky"}, "--split": {"flaky"}}[words[0]]
    data = report(whole, name, *words)
    assert {case["id"] for case in data["cases"]} == wanted
    assert data["totals"]["planned"] == len(wanted) * (4 if name == "x" else 1)


def test_pages_of_cases_failures_and_groups_join_to_the_whole(whole: Project) -> None:
    for words, key in (([], "cases"), (["--failures"], "failures"), (["--group-by", "case"], "groups")):
        wanted = report(whole, "x", *words)
        seen: list[Any] = []
        cursor: list[str] = []
        while True:
            answer = whole.call("report", "x", *words, "--limit", "2", *cursor)
            seen += answer.data[key]
            page = answer.envelope["meta"]["pagination"]
            if not page["has_more"]:
                break
            cursor = ["--cursor", page["next_cursor"]]
        assert seen == wanted[key]
        assert wanted["total_count"] == len(seen) > 0


def test_held_out_failures_are_counted_and_not_shown_unless_their_split_is_named(whole: Project) -> None:
    for words in (["--failures"], ["--group-by", "finding"], ["--group-by", "case"], ["--group-by", "split"]):
        shown = whole.call("report", "x", *words, "--format", "text").stdout.partition("Flaky")[0]
        assert "hard" not in shown
        assert "4 failures of cases that are held out" in shown
        data = report(whole, "x", *words)
        assert (data["held_out"], data["totals"]["missing"]) == (4, 0)
        assert "hard" not in json.dumps(data.get("failures", data.get("groups")))
    for form in ("sarif", "github"):
        assert "hard" not in whole.call("report", "x", "--format", form).stdout
    assert {failure["id"] for failure in report(whole, "x", "--failures", "--split", "test")["failures"]} == {"hard"}
    assert "hard" in whole.call("report", "x", "--format", "github", "--split", "test").stdout
    assert {case["id"] for case in report(whole, "x")["cases"]} == {"easy", "flaky", "hard"}


def test_failures_are_put_together(whole: Project) -> None:
    data = report(whole, "x", "--group-by", "arm")
    assert {group["key"]: group["count"] for group in data["groups"]} == {"bad": 4, "good": 1}
    assert data["group_by"] == "arm"
    tags = report(whole, "x.bad.1", "--group-by", "tag")["groups"]
    assert {group["key"]: group["count"] for group in tags} == {"short": 2, "luck": 1}


def test_report_of_a_run_keeps_its_contract(whole: Project) -> None:
    data = report(whole, "x.good.1")
    assert data.keys() >= {"run", "failures", "cases", "remarks", "run_id", "report_hash", "content_hash", "sealed"}
    assert data["report_hash"].startswith("sha256:")
    assert "experiment" not in data
    assert json.loads(whole.call("report", "x.good.1", "--format", "sarif").stdout)["runs"][0]["properties"]["arm"] == "good"


PICTURES = ("rates.svg", "cases.svg", "differences.svg")


def test_out_writes_the_report_and_its_pictures_beside_it(copy: Project) -> None:
    answer = copy.call("report", "x", "--format", "markdown", "--out", "shown/here")
    assert answer.stdout.splitlines() == [f"wrote shown/here/{name}" for name in ("report.md", *PICTURES)]
    text = (copy.path / "shown/here/report.md").read_text()
    for name in PICTURES:
        assert f"]({name})" in text
        ET.parse(copy.path / "shown/here" / name)
    assert "cost.svg" not in text
    assert report(copy, "x", "--format", "markdown", "--out", "shown", "--json")["files"][0] == "shown/report.md"
    assert copy.call("report", "x.good.1", "--format", "markdown", "--out", "run").stdout == "wrote run/report.md\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--out", "o"], "--out goes with --format markdown"),
        (["--out", "evals/experiments/x/experiment.json/o", "--format", "markdown"], "cannot write into"),
        (["--format", "junit", "--group-by", "arm"], "a junit report has no groups"),
        (["--format", "sarif", "--limit", "1"], "a sarif report has no pages"),
        (["--case", "esay"], "no cases matched: esay"),
        (["--split", "nosuch"], "no cases matched: nosuch"),
        (["--group-by", "colour"], "invalid choice"),
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused(whole: Project, words: list[str], said: str) -> None:
    answer = whole.call("report", "x", *words)
    assert answer.exit_code == 1
    assert said in answer.stderr


def test_screen_is_as_wide_as_columns_says_and_ascii_where_nothing_else_can_be_shown(whole: Project) -> None:
    wide, narrow = (
        whole.call("report", "x", "--format", "text", env={"COLUMNS": str(width)}).stdout.splitlines() for width in (160, 60)
    )
    assert max(map(len, wide)) > 100 > 60 >= max(map(len, narrow))
    plain = whole.call("report", "x", "--format", "text", env={"PYTHONIOENCODING": "ascii"}).stdout
    assert plain.isascii()
    assert "# pass" in plain


def test_experiment_with_a_run_that_is_gone_is_partial_and_readable(copy: Project) -> None:
    shutil.rmtree(copy.run_dir("x.good.2"))
    (copy.run_dir("x.bad.2") / "manifest.json").unlink()
    answer = copy.call("report", "x")
    assert answer.warning_codes == ["W_PARTIAL_RUN"]
    good = answer.data["arms"][1]
    assert (good["planned"], good["attempted"], good["missing"], good["pass_rate"]) == (6, 3, 3, pytest.approx(2 / 3))
    assert [run["state"] for run in answer.data["runs"]] == ["completed", "completed", "stale", "pending"]
    assert [place["status"] for place in answer.data["cases"][0]["arms"]["good"]] == ["pass", None]
    text = copy.call("report", "x", "--format", "text").stdout
    assert "Partial: 9 of 12 trials and 2 of 4 runs are finished." in text
    assert "Look closer:  evalwright run --resume x" in text
    status = copy.call("status", "x").data
    assert (status["state"], status["progress"]["terminal"]) == ("stale", 9)
    assert status["recommended_action"]["command"] == "evalwright run --resume x"


def test_status_tells_each_run_in_pages(whole: Project) -> None:
    answer = whole.call("status", "x")
    Draft202012Validator(SCHEMAS["status"]).validate(answer.data)
    assert answer.data["state"] == "completed"
    assert answer.data["run"] == {"ok": False, "case_count": 12, "status_counts": {"pass": 3, "fail": 9, "error": 0}}
    assert [run["run_id"] for run in answer.data["runs"]] == RUNS
    page = whole.call("status", "x", "--limit", "1", "--cursor", "x.bad.1").data
    assert ([run["run_id"] for run in page["runs"]], page["total_count"]) == (["x.good.1"], 4)
    assert "x.bad.1 · completed · 3 of 3 · 3 fail" in whole.call("status", "x", "--format", "text").stdout


def test_status_lists_a_damaged_run_among_the_others(copy: Project) -> None:
    (copy.run_dir("x.good.1") / "manifest.json").write_text("{")
    runs = copy.call("status", "x").data["runs"]
    assert ["damaged" in run for run in runs] == [False, True, False, False]


def test_whole_experiment_verifies(whole: Project) -> None:
    answer = whole.call("verify", "x")
    Draft202012Validator(SCHEMAS["verify"]).validate(answer.data)
    assert (answer.exit_code, answer.data["ok"], answer.data["sealed"], len(answer.data["runs"])) == (0, True, True, 4)
    assert answer.data["artifacts"] == sum(run["artifacts"] for run in answer.data["runs"]) > 0
    assert whole.call("verify", "x", "--format", "text").stdout.startswith("x · whole · 4 runs, ")


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


DAMAGES: dict[str, tuple[Callable[[Project], object], str, str]] = {
    "artifact": (
        lambda p: _edit(p.artifact("x.good.2", "easy", "output.txt"), "ok", "no"),
        "runs/x.good.2/cases/easy/output.txt",
        "wrong_digest",
    ),
    "run lost": (lambda p: shutil.rmtree(p.run_dir("x.bad.1")), "runs/x.bad.1", "missing"),
    "ledger of a run lost": (lambda p: (p.run_dir("x.bad.1") / "ledger.jsonl").unlink(), "runs/x.bad.1", "unreadable"),
    "runs exchanged": (
        lambda p: [shutil.rmtree(p.run_dir("x.bad.1")), shutil.copytree(p.run_dir("x.good.1"), p.run_dir("x.bad.1"))],
        "runs/x.bad.1/run.json",
        "wrong_identity",
    ),
    "arm relabelled": (
        lambda p: _edit(p.path / "evals/experiments/x/experiment.json", '"arm_digest": "sha256:', '"arm_digest": "sha256:0'),
        "runs/x.bad.1/run.json",
        "wrong_identity",
    ),
    "log edited": (
        lambda p: _edit(p.path / "evals/experiments/x/ledger.jsonl", '"arm":"good"', '"arm":"bad"'),
        "experiments/x/ledger.jsonl",
        "",
    ),
    "log lost": (lambda p: (p.path / "evals/experiments/x/ledger.jsonl").unlink(), "experiments/x/ledger.jsonl", "missing"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_named(copy: Project, name: str) -> None:
    damage, path, code = DAMAGES[name]
    damage(copy)
    answer = copy.call("verify", "x")
    found = answer.data["first_damage"]
    assert (answer.exit_code, answer.data["ok"], found["path"]) == (1, False, path)
    assert code in ("", found["code"])
    assert path in copy.call("verify", "x", "--format", "text").stdout


def test_jobs_tell_the_experiment_of_a_run(whole: Project) -> None:
    runs = whole.call("jobs", "list").data["runs"]
    assert {run["run_id"]: run["experiment"] for run in runs}["x.good.2"] == {"id": "x", "arm": "good", "repeat": 2}
    assert "x.bad.1\tcompleted\texperiment x, arm bad, repeat 1\n" in whole.call("jobs", "list", "--format", "text").stdout


def _orphaned(project: Project, name: str) -> None:
    """Make a run one that nobody can finish: unfinished and without a record that says what it is."""
    (project.run_dir(name) / "manifest.json").unlink()
    (project.run_dir(name) / "run.json").write_text("{}")


def _aged(project: Project) -> None:
    for place in (project.path / "evals/experiments").iterdir():
        os.utime(place, (time.time() - 3600, time.time() - 3600))


def test_prune_keeps_what_an_experiment_needs(copy: Project) -> None:
    _orphaned(copy, "x.good.1")
    _aged(copy)
    data = copy.call("jobs", "prune", "--yes").data
    assert data["removed"] == {"reservations": [], "runs": [], "experiments": []}
    assert {"run_id": "x.good.1", "state": "orphaned"} in data["refused"]
    assert copy.run_dir("x.good.1").is_dir()


def test_prune_removes_an_experiment_when_its_last_run_goes(copy: Project) -> None:
    for name in RUNS[1:]:
        shutil.rmtree(copy.run_dir(name))
    _orphaned(copy, RUNS[0])
    assert copy.call("jobs", "prune").data["candidates"]["empty_experiments"] == []
    _aged(copy)
    assert copy.call("jobs", "prune").data["candidates"] == {
        "stale_reservations": [],
        "orphaned_runs": [RUNS[0]],
        "empty_experiments": ["x"],
    }
    assert (copy.path / "evals/experiments/x").is_dir()
    assert copy.call("jobs", "prune", "--yes").data["removed"]["experiments"] == ["x"]
    assert not (copy.path / "evals/experiments/x").exists()
    assert copy.call("report", "x").error_codes == ["E_RUN_NOT_FOUND"]


def test_prune_leaves_an_experiment_alone_that_it_cannot_read(copy: Project) -> None:
    for name in RUNS[1:]:
        shutil.rmtree(copy.run_dir(name))
    _orphaned(copy, RUNS[0])
    (copy.path / "evals/experiments/x/ledger.jsonl").write_text("{}\n")
    _aged(copy)
    assert copy.call("jobs", "prune", "--yes").data["removed"] == {"reservations": [], "runs": [], "experiments": []}


def test_experiment_that_grew_from_a_run_has_its_id_and_the_run_its_directory(copy: Project) -> None:
    assert copy.call("run", "demo", "--arm", "good", "--run-id", "r").exit_code == 0
    assert "report_hash" in report(copy, "r")
    assert report(copy, "r").get("run", {}).get("case_count") == 3
    assert copy.call("run", "--resume", "r", "--repeats", "2").exit_code == 0
    grown = report(copy, "r")
    assert [run["run_id"] for run in grown["runs"]] == ["r", "r.good.2"]
    assert report(copy, "--run-dir", "evals/runs/r")["run"]["case_count"] == 3
    assert copy.call("verify", "r").data["ok"] is True


def test_broken_record_of_an_experiment_does_not_hide_a_run(copy: Project) -> None:
    assert copy.call("run", "demo", "--arm", "good", "--run-id", "r").exit_code == 0
    (copy.path / "evals/experiments/r/ledger.jsonl").write_text("{}\n")
    assert report(copy, "r")["run"]["case_count"] == 3
    assert copy.call("report", "x").exit_code == 0


def test_commands_to_go_on_with_can_be_carried_out(copy: Project) -> None:
    shutil.move(copy.run_dir("x.bad.1"), copy.path / "a run elsewhere")
    elsewhere = ["--run-dir", "a run elsewhere"]
    for words in (
        ["x"],
        ["x", "--failures"],
        ["x", "--group-by", "tag"],
        [*elsewhere, "--tag", "luck"],
        [*elsewhere, "--group-by", "case"],
    ):
        commands = [shlex.split(record["command"]) for record in copy.call("report", *words).envelope["commands"]]
        assert commands
        for program, *command in commands:
            assert (program, copy.call(*command).exit_code) == ("evalwright", 0), command


UNREADABLE: dict[str, Callable[[Project], object]] = {
    "manifest": lambda p: (p.run_dir("x.good.1") / "manifest.json").write_text("{"),
    "record": lambda p: (p.run_dir("x.good.1") / "run.json").write_bytes(b"\xff"),
    "record lost": lambda p: (p.run_dir("x.good.1") / "run.json").unlink(),
    "identity": lambda p: [
        shutil.rmtree(p.run_dir("x.good.1")),
        shutil.copytree(p.run_dir("x.bad.1"), p.run_dir("x.good.1")),
    ],
    "unfinished": lambda p: [
        (p.run_dir("x.good.1") / "manifest.json").unlink(),
        p.artifact("x.good.1", "easy", "score.json").write_text("{}"),
    ],
}


@pytest.mark.parametrize("damage", UNREADABLE)
def test_report_names_a_damaged_run_and_shows_the_rest(copy: Project, damage: str) -> None:
    UNREADABLE[damage](copy)

    answer = copy.call("report", "x")

    assert (answer.exit_code, answer.envelope["ok"], answer.warning_codes) == (1, True, ["W_RUN_DAMAGED"])
    Draft202012Validator(SCHEMAS["report"]).validate(answer.data)
    assert [entry["run_id"] for entry in answer.data["damaged"]] == ["x.good.1"]
    assert [run["state"] for run in answer.data["runs"]] == ["completed", "damaged", "completed", "completed"]
    assert [(arm["name"], arm["planned"], arm["scored"]) for arm in answer.data["arms"]] == [("bad", 6, 6), ("good", 6, 3)]
    assert copy.call("verify", "x").exit_code == 1


def test_every_form_tells_of_a_damaged_run(copy: Project) -> None:
    UNREADABLE["manifest"](copy)

    answers = {form: copy.call("report", "x", "--format", form) for form in ("text", "markdown", "junit", "sarif", "github")}

    assert {answer.exit_code for answer in answers.values()} == {1}
    assert "Damaged: x.good.1 is not counted: " in answers["text"].stdout
    assert "Partial" not in answers["text"].stdout
    assert "evalwright verify x" in answers["text"].stdout
    assert "**Damaged:** `x.good.1` is not counted: " in answers["markdown"].stdout
    suites = {suite.get("name"): suite for suite in ET.fromstring(answers["junit"].stdout)}
    assert (suites["demo.good.1"].get("tests"), suites["demo.good.1"].get("errors")) == ("3", "3")
    broken = [run for run in json.loads(answers["sarif"].stdout)["runs"] if run["properties"]["run_id"] == "x.good.1"]
    assert [run["invocations"][0]["executionSuccessful"] for run in broken] == [False]
    assert any(line.startswith("::error title=x.good.1") for line in answers["github"].stdout.splitlines())


def test_comparison_and_band_of_what_is_left_say_what_is_damaged(copy: Project) -> None:
    UNREADABLE["manifest"](copy)

    for verb, words in (("compare", ["x"]), ("compare", ["x:good", "x:bad"]), ("band", ["x"])):
        answer = copy.call(verb, *words)
        assert (answer.exit_code, answer.warning_codes) == (1, ["W_RUN_DAMAGED"])
        Draft202012Validator(SCHEMAS[verb]).validate(answer.data)
        assert [entry["run_id"] for entry in answer.data["damaged"]] == ["x.good.1"]


def test_damaged_baseline_is_no_baseline(copy: Project) -> None:
    UNREADABLE["manifest"](copy)
    answer = copy.call("run", "demo", "--run-id", "y", "--baseline", "x:good", "--gate", "no-regression")
    assert (answer.exit_code, answer.error_codes) == (1, ["E_RUN_CORRUPT"])
    assert not copy.run_dir("y").exists()


def test_experiment_of_which_nothing_can_be_read_is_corrupt(copy: Project) -> None:
    for run_id in RUNS:
        (copy.run_dir(run_id) / "manifest.json").write_text("{")
    answer = copy.call("report", "x")
    assert (answer.exit_code, answer.error_codes) == (1, ["E_RUN_CORRUPT"])
