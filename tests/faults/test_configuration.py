"""Settings: one documented order for every one of them, nothing accepted and then ignored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright.cli.contract import VERBS
from evalwright.errors import UsageError
from evalwright.settings import FIELDS, load_settings

if TYPE_CHECKING:
    from tests.conftest import Project

# command line > EVALWRIGHT_ > EVALCTL_ > suite > evalwright.toml > default
LAYERS = ("command line", "own variable", "evalctl's variable", "suite", "file")
WANTED = (20, 30, 40, 50, 60, 300)


def case(**fields: Any) -> dict[str, Any]:
    return {"id": "a", "expect": {"exact": "ok"}} | fields


@pytest.mark.parametrize("removed", range(len(WANTED)))
def test_time_limit_follows_the_documented_order(project: Project, removed: int) -> None:
    layers = set(LAYERS[removed:])
    limit: dict[str, Any] = {"timeout_seconds": 50} if "suite" in layers else {}
    project.suite(cases=[case()], runner={"argv": ["true"], **limit})
    if "file" in layers:
        (project.path / "evalwright.toml").write_text("timeout = 60\n")
    env = {"EVALWRIGHT_TIMEOUT": "30"} if "own variable" in layers else {}
    env |= {"EVALCTL_TIMEOUT": "40"} if "evalctl's variable" in layers else {}
    words = ["--timeout", "20"] if "command line" in layers else []
    answer = project.call("plan", "demo", *words, env=env)
    assert answer.data["execution"]["timeout_seconds"] == WANTED[removed]
    assert answer.data["cases"][0]["timeout_seconds"] == WANTED[removed]


@pytest.mark.parametrize("removed", range(4))
def test_number_of_jobs_follows_the_documented_order(project: Project, removed: int) -> None:
    project.suite(cases=[case()])
    if removed < 4:
        (project.path / "evalwright.toml").write_text("jobs = 8\n")
    env = {"EVALWRIGHT_JOBS": "6"} if removed < 2 else {}
    env |= {"EVALCTL_JOBS": "7"} if removed < 3 else {}
    words = ["--jobs=5"] if removed < 1 else []
    assert project.call("plan", "demo", *words, env=env).data["execution"]["jobs"] == (5, 6, 7, 8)[removed]


def test_sandbox_of_the_suite_wins_over_the_file(project: Project) -> None:
    project.suite(cases=[case()], sandbox="subprocess")
    (project.path / "evalwright.toml").write_text('sandbox = "nosuch"\n')
    assert project.call("plan", "demo").data["execution"]["sandbox"] == "subprocess"


def test_case_has_its_own_time_limit_unless_the_command_line_names_one(project: Project) -> None:
    project.suite(cases=[case(timeout_seconds=7), case(id="b")], runner={"argv": ["true"], "timeout_seconds": 50})
    limits = {item["id"]: item["timeout_seconds"] for item in project.call("plan", "demo").data["cases"]}
    assert limits == {"a": 7, "b": 50}
    limits = {item["id"]: item["timeout_seconds"] for item in project.call("plan", "demo", "--timeout", "3").data["cases"]}
    assert limits == {"a": 3, "b": 3}


def test_every_setting_names_its_origin(tmp_path: Path) -> None:
    (tmp_path / "evalwright.toml").write_text('jobs = 2\nsandbox = "x"\nqueue = "y"\n')
    settings = load_settings({"EVALCTL_JOBS": "3", "EVALWRIGHT_SANDBOX": "z"}, tmp_path).overridden(timeout=5, queue=None)
    assert (settings.jobs, settings.origin("jobs")) == (3, "EVALCTL_JOBS")
    assert (settings.sandbox, settings.origin("sandbox")) == ("z", "EVALWRIGHT_SANDBOX")
    assert (settings.queue, settings.origin("queue")) == ("y", "evalwright.toml")
    assert (settings.timeout, settings.origin("timeout")) == (5, "command line")
    assert settings.origin("runs") == "default"


BAD = [
    ("jobs", "0"),
    ("jobs", "-1"),
    ("jobs", "1025"),
    ("jobs", "abc"),
    ("jobs", "1.5"),
    ("jobs", ""),
    ("timeout", "0"),
    ("timeout", "-5"),
    ("timeout", "nan"),
    ("timeout", "inf"),
    ("timeout", "abc"),
    ("reservation_ttl", "0"),
    ("reservation_ttl", "-1"),
    ("reservation_ttl", "x"),
    ("keep_workspace", "bogus"),
    ("acknowledge_unsandboxed_runner", "maybe"),
]


@pytest.mark.parametrize("prefix", ["EVALWRIGHT_", "EVALCTL_"])
@pytest.mark.parametrize(("name", "value"), BAD)
def test_bad_value_of_a_variable_is_refused_by_its_name(tmp_path: Path, name: str, value: str, prefix: str) -> None:
    variable = prefix + name.upper()
    with pytest.raises(UsageError, match=variable):
        load_settings({variable: value}, tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "jobs = 0",
        "jobs = 1025",
        'jobs = "x"',
        "timeout = 0",
        "timeout = -5",
        "timeout = nan",
        "timeout = inf",
        'keep_workspace = "bogus"',
        "reservation_ttl = 0",
        "jobbs = 3",
        "[jobs]",
        "jobs = [1]",
        "jobs = 1\njobs = 2",
        "jobs",
        "\xff",
    ],
)
def test_bad_line_of_the_file_is_refused_by_the_files_name(tmp_path: Path, text: str) -> None:
    (tmp_path / "evalwright.toml").write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=r"evalwright\.toml"):
        load_settings({}, tmp_path)


def test_misspelt_setting_names_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "evalwright.toml").write_text("jobbs = 3\n")
    with pytest.raises(UsageError) as caught:
        load_settings({}, tmp_path)
    assert "jobs" in caught.value.hint


def test_bad_setting_stops_a_run_before_anything_is_made(project: Project) -> None:
    project.suite(cases=[case()])
    answer = project.call("run", "demo", env={"EVALWRIGHT_JOBS": "many"})
    assert (answer.exit_code, answer.error_codes) == (1, ["E_CASE_INVALID"])
    assert "EVALWRIGHT_JOBS" in answer.envelope["errors"][0]["message"]
    assert not (project.path / "evals" / "runs").exists()


def test_bad_setting_never_hides_the_contract(project: Project) -> None:
    (project.path / "evalwright.toml").write_text("nonsense")
    for verb in ("capabilities", "schema", "robot-docs"):
        words = [verb, *(["guide"] if verb == "robot-docs" else [])]
        assert project.call(*words).exit_code == 0


def test_places_can_be_moved(project: Project) -> None:
    project.suite(cases=[case()], runner={"argv": ["printf", "ok"]})
    (project.path / "evals").rename(project.path / "mine")
    env = {"EVALWRIGHT_EVALS": "mine", "EVALWRIGHT_RUNS": "results", "EVALWRIGHT_WORKSPACES": str(project.path / "space")}
    answer = project.call("run", "demo", "--run-id", "r", env=env)
    assert answer.exit_code == 0
    assert (project.path / "results" / "r" / "manifest.json").is_file()
    assert not (project.path / "evals").exists()
    assert project.call("jobs", "list", env=env).data["count"] == 1


# an option that is parsed has an effect, or is refused

PLAN_FLAGS: dict[str, str] = {
    "--slots": "3",
    "--jobs": "3",
    "--timeout": "7",
    "--run-id": "mine",
    "--sandbox": "nosuch",
    "--queue": "nosuch",
    "--arm": "other",
    "--repeats": "2",
    "--case": "b",
    "--tag": "x",
    "--split": "dev",
    "--max-cases": "1",
    "--limit": "1",
    "--cursor": "a",
}


def test_the_table_of_plan_flags_is_complete() -> None:
    assert set(PLAN_FLAGS) == {flag.name for flag in VERBS["plan"].flags}


@pytest.mark.parametrize("flag", PLAN_FLAGS)
def test_every_flag_of_plan_changes_the_answer(project: Project, flag: str) -> None:
    project.suite(cases=[case(tags=["x"]), case(id="b", split="dev"), case(id="c")], arms={"one": {}, "other": {}})
    without = project.call("plan", "demo")
    with_flag = project.call("plan", "demo", f"{flag}={PLAN_FLAGS[flag]}")
    assert without.exit_code == 0
    assert (with_flag.exit_code, with_flag.data) != (0, without.data)


@pytest.mark.parametrize(
    "words",
    [
        ["--case", "a"],
        ["--tag", "x"],
        ["--split", "x"],
        ["--max-cases", "1"],
        ["--timeout", "7"],
        ["--sandbox", "nosuch"],
        ["--keep-workspace", "all"],
        ["--run-id", "other"],
    ],
    ids=lambda words: words[0],
)
def test_flag_that_a_resume_cannot_honour_is_refused(project: Project, words: list[str]) -> None:
    project.suite(cases=[case()], runner={"argv": ["printf", "ok"]})
    project.call("run", "demo", "--run-id", "r")
    answer = project.call("run", "--resume", "r", *words)
    assert (answer.exit_code, answer.error_codes) == (1, ["E_CASE_INVALID"])


@pytest.mark.parametrize("form", ["text", "markdown", "junit", "json"])
def test_failures_flag_leaves_the_passed_out_of_every_form(project: Project, form: str) -> None:
    runner = {"shell": True, "command": 'printf %s "$(cat "$EVALWRIGHT_TASK_FILE")"'}
    project.suite(cases=[case(id="good-one", task="ok"), case(id="bad-one", task="no")], runner=runner)
    project.call("run", "demo", "--run-id", "r")
    everything = project.call("report", "r", "--format", form).stdout
    failures = project.call("report", "r", "--format", form, "--failures").stdout
    assert "good-one" in everything
    assert "good-one" not in failures
    assert "bad-one" in failures


@pytest.mark.parametrize("form", ["text", "markdown", "junit"])
def test_paging_of_a_report_that_has_no_pages_is_refused(project: Project, form: str) -> None:
    project.suite(cases=[case(), case(id="b")], runner={"argv": ["printf", "ok"]})
    project.call("run", "demo", "--run-id", "r")
    whole = project.call("report", "r", "--format", form)
    paged = project.call("report", "r", "--format", form, "--limit", "1")
    assert paged.exit_code == 1 or paged.stdout != whole.stdout


@pytest.mark.parametrize("kept", ["none", "failed", "all"])
def test_workspace_is_kept_as_asked(project: Project, kept: str) -> None:
    runner = {"shell": True, "command": 'printf %s "$(cat "$EVALWRIGHT_TASK_FILE")"'}
    project.suite(cases=[case(id="good", task="ok"), case(id="bad", task="no")], runner=runner)
    project.call("run", "demo", "--run-id", "r", "--keep-workspace", kept)
    found = {case_id for case_id in ("good", "bad") if project.artifact("r", case_id, "workspace").is_dir()}
    assert found == {"none": set(), "failed": {"bad"}, "all": {"good", "bad"}}[kept]


def test_template_variables_are_rendered_by_whole_word_only(project: Project) -> None:
    argv = ["printf", "%s|", "${EVALWRIGHT_WORKSPACE_X}", "$EVALWRIGHT_NOSUCH", "$HOME", "${EVALWRIGHT_DIFF_FILE}."]
    wanted = "${EVALWRIGHT_WORKSPACE_X}|$EVALWRIGHT_NOSUCH|$HOME|.|"
    project.suite(cases=[case(expect={"exact": wanted})], runner={"argv": argv})
    assert project.call("run", "demo", "--run-id", "r").data["run"]["status_counts"]["pass"] == 1


def test_secret_is_stored_by_name_and_never_by_value(project: Project) -> None:
    runner = {
        "shell": True,
        "command": 'printf ok; echo "$JUDGE_KEY" >&2',
        "env_allowlist": ["JUDGE_KEY"],
        "redact_env_values": ["JUDGE_KEY"],
    }
    project.suite(cases=[case()], runner=runner)
    key = "sk-test-123456-abcdef"
    answer = project.call("run", "demo", "--run-id", "r", env={"JUDGE_KEY": key})
    assert answer.data["run"]["status_counts"]["pass"] == 1
    assert key not in answer.stdout + answer.stderr
    held = [path.name for path in (project.path / "evals").rglob("*") if path.is_file() and key.encode() in path.read_bytes()]
    assert held == []
    assert json.loads((project.run_dir("r") / "run.json").read_text())["provenance"]["env_names"] == ["JUDGE_KEY"]


def test_every_setting_has_a_kind_and_can_come_from_the_environment(tmp_path: Path) -> None:
    samples = {
        "jobs": "2",
        "slots": "3",
        "timeout": "5",
        "reservation_ttl": "9",
        "acknowledge_unsandboxed_runner": "true",
        "keep_workspace": "all",
        "clone": "copy",
        "paranoid": "true",
        "profile": "true",
    }
    for name in FIELDS:
        settings = load_settings({f"EVALWRIGHT_{name.upper()}": samples.get(name, "x")}, tmp_path)
        assert settings.origin(name) == f"EVALWRIGHT_{name.upper()}"
        assert getattr(settings, name) != getattr(load_settings({}, tmp_path), name) or name == "jobs"
