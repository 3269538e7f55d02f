"""From the user's files to a plan: everything resolved, everything checked, and pinned by digests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from evalwright.canonical import canonical_json, digest_text, is_object
from evalwright.errors import SuiteError
from evalwright.registry import model_problems
from evalwright_plugins.workflow.model.config import WorkConfig
from evalwright_plugins.workflow.model.documents import read_document
from evalwright_plugins.workflow.model.graph import graph_problems
from evalwright_plugins.workflow.model.workflow import Workflow

__all__ = ["PRESETS", "Plan", "load_plan", "load_workflow", "plan_of", "preset", "resolved"]

PRESETS = ("readback", "software-delivery")
SUFFIXES = (".yaml", ".yml", ".toml", ".json")
TEXT = "file://"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run does, resolved: no file is read again. ``document`` is what is pinned, ``digest`` its digest."""

    workflow: Workflow
    config: WorkConfig
    document: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """Return the digest of everything."""
        return _digest(self.document)

    @property
    def workflow_digest(self) -> str:
        """Return the digest of the workflow with the run's own policies and budgets."""
        return _digest(self.document["workflow"])

    @property
    def intent_digest(self) -> str:
        """Return the digest of the task."""
        return digest_text(self.config.prompt)

    @property
    def prompts_digest(self) -> str:
        """Return the digest of the prompts of the steps."""
        return _digest(self.document["config"]["prompts"])


def load_plan(path: Path, overrides: Mapping[str, Any] | None = None) -> Plan:
    """Read a run's configuration, and the workflow and texts that it names. ``overrides`` replace keys of the file.

    Raises ``SuiteError`` with every problem at once.
    """
    document = read_document(path) | dict(overrides or {})
    problems = model_problems(WorkConfig, document, "")
    if problems:
        raise invalid(path, problems)
    return plan_of(resolved(document, path), path)


def resolved(document: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return a configuration with the workflow and the texts that it names in their places. Raises ``SuiteError``."""
    given = document["workflow"]
    workflow = given if is_object(given) else _named(given, path.parent)
    prompts = {step: _text(text, path) for step, text in document.get("prompts", {}).items()}
    return dict(document) | {"workflow": workflow, "prompt": _text(document.get("prompt", ""), path), "prompts": prompts}


def plan_of(document: Mapping[str, Any], path: Path | str) -> Plan:
    """Return the plan of a resolved configuration, whose ``workflow`` is a table. ``path`` stands in what is reported.

    The run's own policies are added to the workflow's, its budgets replace the workflow's by key. Raises ``SuiteError``.
    """
    config = WorkConfig.model_validate(dict(document) | {"workflow": ""})
    workflow = dict(document["workflow"])
    problems = model_problems(Workflow, workflow, "workflow")
    if problems:
        raise invalid(path, problems)
    own = config.budgets.model_dump(exclude_none=True, exclude_unset=True)
    budgets = dict(workflow.get("budgets", {})) | own
    added = [policy.model_dump(by_alias=True, exclude_unset=True) for policy in config.policies]
    workflow |= {"budgets": budgets, "policies": [*workflow.get("policies", []), *added]}
    parsed = Workflow.model_validate(workflow)
    problems = graph_problems(parsed) or _table_problems(parsed, config)
    if problems:
        raise invalid(path, problems)
    pinned = {
        "workflow": parsed.model_dump(by_alias=True, mode="json", exclude_none=True),
        "config": config.model_dump(by_alias=True, mode="json", exclude_none=True, exclude={"workflow", "policies", "budgets"}),
    }
    return Plan(workflow=parsed, config=config, document=pinned)


def unpinned(document: Mapping[str, Any]) -> Plan:
    """Return the plan that was pinned."""
    config = WorkConfig.model_validate(document["config"] | {"workflow": ""})
    return Plan(workflow=Workflow.model_validate(document["workflow"]), config=config, document=document)


def load_workflow(path: Path) -> Workflow:
    """Read one workflow. Raises ``SuiteError`` with every problem at once."""
    document = read_document(path)
    problems = model_problems(Workflow, document, "") or graph_problems(Workflow.model_validate(document))
    if problems:
        raise invalid(path, problems)
    return Workflow.model_validate(document)


def preset(name: str) -> dict[str, Any]:
    """Return the document of a workflow that comes with Evalwright."""
    with resources.as_file(resources.files("evalwright_plugins.workflow.model") / "presets" / f"{name}.yaml") as path:
        return read_document(path)


def invalid(path: Path | str, problems: Sequence[Mapping[str, Any]]) -> SuiteError:
    """Return the error that names every problem of a file."""
    named = [
        {"code": SuiteError.code, "file": str(path), **problem, "message": f"{path}: {problem['message']}"}
        for problem in problems
    ]
    return SuiteError(f"{path} has {len(problems)} problem{'s' * (len(problems) > 1)}", problems=named)


def _named(name: str, directory: Path) -> dict[str, Any]:
    if name in PRESETS:
        return preset(name)
    path = directory / name
    if path.suffix in SUFFIXES and path.is_file():
        return read_document(path)
    hint = f"it is one of {', '.join(PRESETS)}, or a file ({', '.join(SUFFIXES)})"
    raise SuiteError(f"there is no workflow {name}", hint=hint, key="workflow", file=str(path))


def _text(text: str, path: Path) -> str:
    if not text.startswith(TEXT):
        return text
    file = path.parent / text.removeprefix(TEXT)
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SuiteError(
            f"{path}: the prompt {file} cannot be read: {error}", hint="correct the path", file=str(path)
        ) from error


def _table_problems(workflow: Workflow, config: WorkConfig) -> list[dict[str, Any]]:
    """Name tables and prompts of steps that do not exist. A step without a worker is none: people do it."""
    steps, places = [step.id for step in workflow.steps], [*(step.id for step in workflow.steps), *workflow.terminal]
    known = {"workers": [step.table for step in workflow.steps], "prompts": steps, "stop_at": places}
    used: dict[str, Iterable[str]] = {"workers": config.workers, "prompts": config.prompts, "stop_at": config.stop_at}
    found: list[dict[str, Any]] = []
    for key, names in used.items():
        for name in names:
            if name not in known[key]:
                hint = f"the workflow has: {', '.join(known[key])}"
                found.append({"message": f"{key}.{name}: no step of that name", "key": f"{key}.{name}", "hint": hint})
    return found


def _digest(value: Any) -> str:
    return digest_text(canonical_json(value))
