"""From a tier to a native suite."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from evalwright.interfaces import Imported, ImportedCase, ImportedFile, ImportedSuite, ImportedSummary
from evalwright_adapters.lastlight.checks import CALLS, Checks, checks_of, without_asides
from evalwright_adapters.lastlight.config import LastlightConfig
from evalwright_adapters.lastlight.github import seed_of
from evalwright_adapters.lastlight.instances import Instance, Tier
from evalwright_adapters.lastlight.markers import marker_instructions, verdicts
from evalwright_adapters.lastlight.predictions import read_predictions
from evalwright_adapters.lastlight.tasks import diff_of, task_of

__all__ = ["suite_of_tier"]

TYPESCRIPT = "Node.js 22.6 or newer, for tests in TypeScript"
PLACEHOLDER = "The runner is a placeholder that changes nothing: put your agent's argv there, or import with --set argv=..."


def suite_of_tier(tier: Tier, config: LastlightConfig, license_text: bytes | None) -> Iterator[Imported]:
    """Describe the suite with one case per instance."""
    golds = read_predictions(Path(config.gold)) if config.gold else {}
    checked = [(instance, checks_of(tier, instance, config)) for instance in tier.instances]
    without_asides([checks for _, checks in checked])
    yield ImportedSuite(_document(tier, config, [checks for _, checks in checked]))
    if _is_typed(tier) and not config.as_shipped:
        yield ImportedSummary({"needs": [TYPESCRIPT]})
    if license_text is not None:
        yield ImportedFile(PurePosixPath("LICENSE"), license_text)
    for path, content in tier.below("context"):
        yield ImportedFile(PurePosixPath("context", path), content)
    for instance, checks in checked:
        yield from checks.refused
        yield from _case(tier, instance, checks, golds.get(instance.instance_id) or instance.patch)


def _document(tier: Tier, config: LastlightConfig, checks: list[Checks]) -> dict[str, Any]:
    runner: dict[str, Any] = {"argv": config.argv or ["true"], "env_allowlist": ["PATH"]}
    if any(True for _ in tier.below("context")):
        runner["files"] = ["context"]
    note = {} if config.argv else {"runner": PLACEHOLDER}
    note |= {"needs": TYPESCRIPT} if _is_typed(tier) else {}
    about = {"source": f"Last Light, tier {tier.name}", "license": "MIT", "description": tier.description}
    return {
        "schema_version": 2,
        "name": f"lastlight-{tier.name}",
        "cases": "cases.jsonl",
        "runner": runner,
        **({"services": {"github": "github"}} if any(CALLS in each.expect for each in checks) else {}),
        "scorers": list(_scorers(checks)),
        "acknowledged_unsandboxed_runner": True,
        "meta": {**about, "as_shipped": config.as_shipped, **note},
    }


def _is_typed(tier: Tier) -> bool:
    """Tell whether some test is written in TypeScript."""
    return any(path.startswith(("tests/", "repos/")) and path.endswith(".test.ts") for path in tier.files)


def _scorers(checks: list[Checks]) -> Iterator[dict[str, Any]]:
    """Yield the scorers that some case needs. Calls do not decide where tests do: a patch alone must be able to pass."""
    readers = {"tests": "tests", "text_regex": "regex", CALLS: "http-calls", "exit_code": "exit-code"}
    used = {key for each in checks for key in each.expect}
    advisory = any(each.tested for each in checks if CALLS in each.expect)
    for key, scorer in readers.items():
        if key in used:
            yield {"use": scorer, **({"required": False} if key == CALLS and advisory else {})}


def _case(tier: Tier, instance: Instance, checks: Checks, patch: str | None) -> Iterator[Imported]:
    name = instance.instance_id
    workflow = instance.workflow or tier.workflow
    github = CALLS in checks.expect
    task = task_of(instance, workflow, github=github)
    if "text_regex" in checks.expect:
        task += "\n" + marker_instructions(verdicts(instance.expect_markers))
    record: dict[str, Any] = {
        "id": name,
        "task": task,
        "workspace": f"fixtures/{name}",
        "expect": checks.expect,
        "tags": [tier.name],
        "meta": {"workflow": workflow, "repo": instance.repo},
    }
    record |= {"services": {"github": f"seeds/{name}.json"}} if github else {}
    diff = diff_of(instance)
    record |= {"diff": f"diffs/{name}.diff"} if diff else {}
    record |= {"hidden": f"hidden/{name}"} if checks.hidden else {}
    if patch:
        record["gold"] = f"gold/{name}.patch"
    elif checks.answer is not None:
        record["gold"] = {"output": checks.answer}
    yield ImportedCase(record)
    yield from _files(f"fixtures/{name}", _fixture(tier, instance))
    if github:
        seed = seed_of(instance, dict(tier.below("repos", name)), dict(tier.below("repos-head", name)))
        yield from _files("seeds", {f"{name}.json": _json(seed)})
    if diff:
        yield from _files("diffs", {f"{name}.diff": diff.encode()})
    if checks.hidden:
        yield from _files(f"hidden/{name}", dict(tier.below("tests", name)))
    if patch:
        yield from _files("gold", {f"{name}.patch": patch.encode()})


def _fixture(tier: Tier, instance: Instance) -> Mapping[str, bytes]:
    """Return the workspace: the repository at the pull request's head, its committed settings, or else what is asked about."""
    name = instance.instance_id
    files = dict(tier.below("repos", name)) | dict(tier.below("repos-head", name))
    files |= {f".lastlight/{path}": content for path, content in tier.below("lastlight", name)}
    if files:
        return files
    shown = instance.issue or instance.pr
    asked = shown.model_dump() if shown else {"problem_statement": instance.problem_statement}
    file = "pull-request.json" if instance.pr and not instance.issue else "issue.json"
    return {file: _json(asked)}


def _json(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "replace")


def _files(directory: str, files: Mapping[str, bytes]) -> Iterator[ImportedFile]:
    for path, content in files.items():
        yield ImportedFile(PurePosixPath(directory, path), content)
