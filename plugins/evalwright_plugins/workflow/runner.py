"""The runner ``workflow``: several agents in turn are the agent of a case."""

from __future__ import annotations

import re
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, model_validator

from evalwright.canonical import is_object
from evalwright.errors import PluginError, SuiteError, TrialError
from evalwright.interfaces import Deadline, Host, Problem, Runner, RunnerContext
from evalwright.model import RunnerResult, TrialView
from evalwright.processes import Supervisor
from evalwright.registry import Registry
from evalwright_plugins.workflow.model.config import Gate, Retry
from evalwright_plugins.workflow.model.loading import PRESETS, Plan, plan_of, resolved
from evalwright_plugins.workflow.model.policy import Policy
from evalwright_plugins.workflow.model.workflow import Budgets, Name
from evalwright_plugins.workflow.sites.plugins import Plugins
from evalwright_plugins.workflow.trial import Evaluation

__all__ = ["WorkflowConfig", "WorkflowRunner"]

WORK = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,80}")


class WorkflowConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """A run's configuration, as ``work`` has it, without what a trial settles: work, base, sandbox, environment.

    ``workflow`` is a preset, a file of the suite, or the workflow itself. ``prompt`` is the case's task where it is empty.
    ``on_gate`` answers every request, since nobody is there to ask.
    """

    workflow: str | dict[str, Any]
    prompt: str = ""
    prompts: dict[Name, str] = {}
    workers: Annotated[dict[Name, dict[str, Any]], Field(min_length=1)]
    scope: list[str] = []
    artifacts: dict[Name, str] = {}
    policies: list[Policy] = []
    budgets: Budgets = Budgets()
    retry: Retry = Retry()
    stop_at: list[Name] = []
    on_gate: Literal["approve", "reject", "fail"] | Gate = "approve"
    triage: Literal["ask", "auto"] = "ask"
    toolchain: list[str] = []
    reuse: bool = False

    @model_validator(mode="after")
    def _workflow_holds(self) -> WorkflowConfig:
        """Refuse at once what needs no file to be seen."""
        if isinstance(self.workflow, str) and self.workflow not in PRESETS:
            if PurePosixPath(self.workflow).is_absolute() or ".." in PurePosixPath(self.workflow).parts:
                raise ValueError(f"workflow: {self.workflow} does not lie in the suite")
            return self
        try:
            plan_of(self.document() | {"workflow": self._given()}, "the workflow")
        except SuiteError as error:
            raise ValueError("; ".join(f"{one['message']} ({one['hint']})" for one in error.records())) from error
        return self

    def document(self) -> dict[str, Any]:
        """Return the configuration of a run, but for the trial's part; only what is said."""
        return {
            "work": "case",
            **self.model_dump(by_alias=True, exclude_unset=True),
            "on_gate": self._gate(),
            "reuse": self.reuse,
        }

    def _given(self) -> dict[str, Any]:
        given = self.workflow
        return given if is_object(given) else resolved({"workflow": given}, Path())["workflow"]

    def _gate(self) -> Any:
        return self.on_gate if isinstance(self.on_gate, str) else self.on_gate.model_dump()


class WorkflowRunner(Runner[WorkflowConfig]):
    """Drives one run of the workflow for each trial. Thread-safe: trials share the workers' plugins and nothing else."""

    api = "runner/1.0"
    Config = WorkflowConfig
    needs_workspace = True

    def __init__(self, config: WorkflowConfig, host: Host) -> None:
        super().__init__(config, host)
        self._supervisor = Supervisor()
        self._workers = Plugins(host.file("."))
        self._lock = threading.Lock()
        self._document: dict[str, Any] | None = None

    def uses(self) -> Sequence[str]:
        """Name the workers' runners, whose versions are recorded with the run."""
        return list(dict.fromkeys(f"runner:{table.get('use', 'command')}" for table in self.config.workers.values()))

    def check(self, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Say what is wrong with the workflow, its files and its workers."""
        try:
            self._plan("case", "task")
        except SuiteError as error:
            return [Problem(message=str(one["message"]), hint=str(one["hint"])) for one in error.records()]
        return [problem for name in self.config.workers for problem in self._objections(name, where)]

    def run(self, trial: TrialView, context: RunnerContext) -> RunnerResult:
        """Drive the workflow to its end. Raises ``TrialError`` for a sandbox elsewhere, and for infrastructure that is gone."""
        context.session()
        workspace = context.workspace()
        if workspace is None:
            raise TrialError(
                "workspace_elsewhere",
                "the runner workflow needs a sandbox that keeps the workspace on this host, such as bubblewrap or subprocess",
            )
        work = trial.id if WORK.fullmatch(trial.id) else "case"
        with tempfile.TemporaryDirectory(prefix="evalwright-workflow-") as place:
            evaluation = Evaluation(self._plan(work, trial.task), context, self._worker, self._supervisor, Path(place))
            return evaluation.run(workspace)

    def close(self, deadline: Deadline) -> None:
        """Release the workers."""
        self._workers.close()
        self._supervisor.close()

    def _plan(self, work: str, task: str) -> Plan:
        file = self.host.file("suite.json")
        with self._lock:
            if self._document is None:
                self._document = resolved(self.config.document(), file)
            document = self._document
        return plan_of(document | {"work": work, "prompt": document["prompt"] or task}, file)

    def _objections(self, name: str, where: Literal["coordinator", "worker"]) -> Sequence[Problem]:
        """Return what keeps a worker from working; nothing is started."""
        table = {"use": "command", **self.config.workers[name]}
        config = {key: value for key, value in table.items() if key != "use"}
        try:
            worker: Runner[Any] = Registry(self.host.file(".")).create("runner", str(table["use"]), config, self.host)
            return worker.check(where)
        except PluginError as error:
            return [Problem(message=f"worker {name}: {error.message}", hint=error.hint)]

    def _worker(self, name: str, table: Mapping[str, Any]) -> Runner[Any]:
        with self._lock:
            try:
                return self._workers.runner(name, table)
            except PluginError as error:
                raise PluginError(f"worker {name}: {error.message}", hint=error.hint) from error
