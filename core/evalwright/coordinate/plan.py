"""From a request to trials: the suite's identity, the resolved tables, and one spec per case."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalwright.canonical import digest_json, digest_text, is_object
from evalwright.coordinate.inputs import Inputs
from evalwright.coordinate.judges import check_judges
from evalwright.errors import CapabilityMissing, PluginFailed, UsageError
from evalwright.interfaces import Runner
from evalwright.model import DEFAULT_ARM, Case, Manifest, PluginTable, Suite, TrialSpec
from evalwright.prices import read_prices
from evalwright.registry import Loaded, Registry
from evalwright.settings import Settings
from evalwright.suite import CheckedSuite
from evalwright.suite.judges import self_judging
from evalwright.worker import lock_of

__all__ = ["Plan", "check_requirements", "make_plan"]

TELLING_KEYS = frozenset({"diff", "split", "tags"})
UNMEASURED = frozenset({"cases_file", "prices"})
SECRET_KEYS = frozenset({"expect", "hidden", "gold", "human", "services"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Everything that decides what a run does. ``timeout`` overrides the suite's where it is not ``None``.

    ``warnings`` are of what casts doubt on its results.
    """

    suite: Suite
    cases: tuple[Case, ...]
    tables: Mapping[str, Any]
    plugins: tuple[Loaded, ...]
    timeout: float | None
    keep_workspace: str
    workspaces: Path | None
    clone: str
    paranoid: bool
    profile: bool
    queue: str
    lock: str
    arm: str = DEFAULT_ARM
    repeat: int = 1
    warnings: tuple[Mapping[str, str], ...] = ()
    suite_hash: str = field(init=False)

    def __post_init__(self) -> None:
        """Work out what all trials share."""
        object.__setattr__(self, "suite_hash", digest_json(dict(self.suite.document)))

    @property
    def timeout_seconds(self) -> float:
        """Return the run's own time limit per trial; a case may have another."""
        return self.timeout if self.timeout is not None else self.suite.agent.timeout

    @property
    def isolated(self) -> bool:
        """Tell whether the sandbox keeps commands away from the user's files."""
        return any("fs-isolated" in loaded.cls.capabilities for loaded in self.plugins if loaded.kind == "sandbox")

    @property
    def arm_digest(self) -> str:
        """Return the identity of the configuration under test."""
        tables = {key: value for key, value in self.tables.items() if key not in UNMEASURED}
        return digest_json({"tables": tables, "timeout": self.timeout})

    @property
    def sandbox(self) -> str:
        """Return the name of the sandbox that agents run in."""
        return str(self.tables["sandbox"]["use"])

    def identity(self, inputs: Inputs, gold: Manifest) -> dict[str, Any]:
        """Return ``suite_identity``: two runs with the same one measure the same thing."""
        return {
            "suite_name": self.suite.name,
            "suite_hash": self.suite_hash,
            "cases": sorted([case.id, digest_json(case.record)] for case in self.cases),
            "fixtures_hash": inputs.fixtures_hash(),
            "hidden_hash": inputs.hidden_hash(gold, self.cases),
            "arm_digest": self.arm_digest,
            "repeat": self.repeat,
        }

    def spec(self, case: Case, attempt: int, *, run_id: str, inputs: Inputs, **places: Any) -> TrialSpec:
        """Return the spec of one trial; ``places`` says how its worker reaches its inputs and what it continues."""
        record = case.record
        return TrialSpec(
            run_id=run_id,
            suite=self.suite.name,
            suite_digest=self.suite_hash,
            native=self.suite.native,
            case_id=case.id,
            case_digest=digest_json(record),
            line=case.line,
            case=self._view(record, run_id),
            fixture_digest=inputs.fixtures[case.workspace],
            gold_digest=inputs.gold,
            files_digest=inputs.files,
            diff_digest=inputs.diffs.get(case.diff or ""),
            seeds={name: inputs.seeds[path] for name, path in case.services.items()},
            hidden=case.hidden,
            arm=self.arm,
            repeat=self.repeat,
            attempt=attempt,
            tables=self.tables,
            timeout=self.timeout if self.timeout is not None else case.timeout or self.suite.agent.timeout,
            keep_workspace=self.keep_workspace,
            workspaces=str(self.workspaces.resolve()) if self.workspaces else None,
            clone=self.clone,
            paranoid=self.paranoid,
            profile=self.profile,
            seed=seed_of(case.id, self.repeat),
            **places,
        )

    def _view(self, record: Mapping[str, Any], run_id: str) -> dict[str, Any]:
        """Return the case as its runner sees it: without gold, under an id that tells nothing, nor do paths or tags."""
        shown: frozenset[str] = frozenset() if self.suite.agent.reveal_expect else SECRET_KEYS
        view = {key: value for key, value in record.items() if key not in shown}
        if not self.suite.agent.reveal_id:
            view = {key: value for key, value in view.items() if key not in TELLING_KEYS}
            view |= {"id": digest_text(f"{run_id}/{record['id']}")[7:19], "workspace": "."}
        return view


def seed_of(case_id: str, repeat: int) -> int:
    """Return 31 bits for an agent's random choices: equal for all arms of a pass, so that luck does not tell them apart."""
    return int(digest_text(f"{case_id}/{repeat}")[7:15], 16) & 0x7FFFFFFF


def make_plan(
    checked: CheckedSuite, cases: Sequence[Case], settings: Settings, *, arm: str = DEFAULT_ARM, repeat: int = 1
) -> Plan:
    """Return the plan of one pass of an arm; refuses before the first trial what could not work.

    Raises ``CapabilityMissing`` for a requirement that the plugins do not meet, and what a plugin's ``check`` objects to.
    """
    checked = checked.arm(arm)
    suite = _with_defaults(checked.suite, settings, arm)
    chosen = settings.sandbox if settings.outranks_suite("sandbox") else None
    sandbox = PluginTable(use=chosen) if chosen else suite.sandbox
    queue = settings.queue or "local"
    if queue == "local" and settings.origin("slots") == "command line":
        raise UsageError("--slots is for a queue with workers of its own", hint="use --jobs, or choose a --queue", key="slots")
    tables = _tables(suite, sandbox, settings)
    registry = checked.registry
    uses = [("runner", suite.runner.use), ("sandbox", sandbox.use)]
    uses += [("scorer", entry.table.use) for entry in suite.scorers]
    uses += [("service", table.use) for table in suite.services.values()]
    if suite.agent.transcript:
        uses.append(("transcript", suite.agent.transcript["parser"]["use"]))
    _check_workspace(registry.load("runner", suite.runner.use), registry.load("sandbox", sandbox.use))
    used = _preflight(checked, sandbox, queue)
    if workers := [use for kind, use in dict.fromkeys(used) if kind == "runner"]:
        tables["workers"] = workers
    plugins = tuple(registry.load(kind, use) for kind, use in dict.fromkeys([*uses, *used]))
    plugins = (*plugins, Registry(Path()).load("queue", queue))
    check_requirements(suite, plugins, sandbox.use, checked.registry)
    return Plan(
        suite=suite,
        cases=tuple(cases),
        tables=tables,
        plugins=plugins,
        timeout=settings.timeout if settings.outranks_suite("timeout") else None,
        keep_workspace=settings.keep_workspace,
        workspaces=settings.workspaces,
        clone=settings.clone,
        paranoid=settings.paranoid,
        profile=settings.profile,
        queue=queue,
        lock=lock_of(tables, registry),
        arm=arm,
        repeat=repeat,
        warnings=tuple(_doubts(checked, arm)),
    )


def _tables(suite: Suite, sandbox: PluginTable, settings: Settings) -> dict[str, Any]:
    """Return the resolved tables of every trial; the user's prices go with them, since workers may be elsewhere."""
    tables: dict[str, Any] = {
        "runner": suite.runner.as_json(),
        "agent": suite.agent.as_json(),
        "sandbox": sandbox.as_json(),
        "sandboxes": {
            name: {"use": table} if isinstance(table, str) else dict(table)
            for name, table in suite.document.get("sandboxes", {}).items()
        },
        "scorers": [entry.as_json() for entry in suite.scorers],
        "cases_file": suite.cases_file,
    }
    if suite.judges:
        tables["judges"] = {name: dict(table) for name, table in suite.judges.items()}
    if suite.services:
        tables["services"] = {name: table.as_json() for name, table in suite.services.items()}
    if settings.prices:
        tables["prices"] = read_prices(settings.prices).as_json()
    return tables


def _doubts(checked: CheckedSuite, arm: str) -> Iterator[Mapping[str, str]]:
    """Yield a warning for every judge that the arm's agent is itself."""
    suite = checked.suite
    asked = [reference for _, scorer in checked.scorers for reference in scorer.uses()]
    runner = {**suite.runner.as_json(), "env": dict(suite.agent.env)}
    yield from self_judging(runner, checked.host.reach("judges", asked), f" of arm {arm}" if arm in suite.arms else "")


def _with_defaults(suite: Suite, settings: Settings, arm: str) -> Suite:
    """Return the suite with what ``evalwright.toml`` says about things that suite and arm leave open."""
    own: Mapping[str, Any] = suite.document.get("arms", {}).get(arm, {})
    written = [table for table in (suite.document["runner"], own.get("runner")) if is_object(table)]
    if settings.timeout is not None and not any("timeout_seconds" in table for table in written):
        suite = replace(suite, agent=replace(suite.agent, timeout=settings.timeout))
    if settings.sandbox is not None and "sandbox" not in suite.document and "sandbox" not in own:
        suite = replace(suite, sandbox=PluginTable(use=settings.sandbox))
    return suite


def check_requirements(suite: Suite, plugins: Sequence[Loaded], sandbox: str, registry: Registry) -> None:
    """Raise ``CapabilityMissing``, naming what would do, when no plugin of the run has a capability that the suite requires."""
    offered = {capability for loaded in plugins for capability in loaded.cls.capabilities}
    missing = [name for name in suite.requires if name not in offered]
    if missing:
        better = sorted(registry.names_with("sandbox", frozenset(missing)))
        raise CapabilityMissing(
            f"the suite {suite.name} requires {', '.join(missing)}; the sandbox {sandbox} does not give that",
            hint=f"choose one that does: --sandbox {' or '.join(better)}" if better else "no installed sandbox does",
            valid_values=sorted(offered),
        )


def _check_workspace(runner: Loaded, sandbox: Loaded) -> None:
    """Raise ``CapabilityMissing`` for a sandbox that keeps the workspace where the runner cannot work with it."""
    if issubclass(runner.cls, Runner) and runner.cls.needs_workspace and not getattr(sandbox.cls, "in_place", True):
        raise CapabilityMissing(
            f"the runner {runner.reference} works with the workspace on this host; the sandbox {sandbox.reference} keeps it "
            "elsewhere",
            hint="choose one that keeps it here: --sandbox bubblewrap or subprocess",
        )


def _preflight(checked: CheckedSuite, sandbox: PluginTable, queue: str) -> list[tuple[str, str]]:
    """Ask every plugin what would keep it from working, before hours of work depend on it.

    Return the kind and reference of every other plugin that one of them will ask for.
    """
    registry, suite = checked.registry, checked.suite
    transcript = suite.agent.transcript
    parser = PluginTable.from_json(transcript["parser"]) if transcript else None
    plugins = [
        *([registry.create("transcript", parser.use, parser.config, checked.host)] if parser else []),
        registry.create("runner", suite.runner.use, suite.runner.config, checked.host),
        registry.create("sandbox", sandbox.use, sandbox.config, checked.host),
        Registry(Path()).create("queue", queue, {}, checked.host),
        *(scorer for _, scorer in checked.scorers),
        *(checked.host.create(f"services.{name}") for name in suite.services),
    ]
    used: list[tuple[str, str]] = []
    for plugin in plugins:
        used += [checked.host.resolve(reference) for reference in plugin.uses()]
        used += check_judges(checked.host, plugin.uses())
        for problem in plugin.check("coordinator"):
            if problem.fatal:
                raise PluginFailed(problem.message, hint=problem.hint, **problem.details)
    return used
