"""A directory to a checked suite, or to the complete list of what is wrong with it."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

from evalwright.canonical import is_object
from evalwright.errors import PluginError, PluginNotFound, SuiteNotFound
from evalwright.interfaces import Scorer
from evalwright.model import BUILTIN_SCORERS, AgentTable, Arm, Case, PluginTable, Retry, ScorerEntry, Suite
from evalwright.registry import PluginHost, Registry, configuration_problems, model_problems, unknown_key
from evalwright.suite.arms import merged_judges, overridden
from evalwright.suite.cases import CaseChecker, case_options
from evalwright.suite.inline import FILE_MARK, file_text
from evalwright.suite.judges import judge_tables, self_judging, split_table
from evalwright.suite.metrics import analysis_of, metric_problems
from evalwright.suite.paths import path_objection
from evalwright.suite.problems import Problems, line_of
from evalwright.suite.read import parse_suite, suite_file
from evalwright.suite.seeds import SeedChecker, seed_model
from evalwright.suite.shape import AGENT_KEYS, CASE_ID, AgentShape, JudgeShape, RetryShape, ScorerShape, SuiteShape

__all__ = ["CheckedSuite", "load_scorers", "load_suite"]

SCHEMA = "E_SCHEMA_VIOLATION"
ARM_KEYS = ("runner", "sandbox", "judges")
COMPATIBLE: Mapping[str, Mapping[str, Any]] = {
    "workspace-diff": {"always": True, "globs": "fnmatch"},
    "file-exists": {"globs": "fnmatch"},
    "command": {"cwd": "workspace"},
}
"""What the evalctl form means where the native form means something else, as configuration of the shipped scorers."""


@dataclass(frozen=True, slots=True)
class CheckedSuite:
    """A suite that passed every check, with its scorers created and the warnings that go with it."""

    suite: Suite
    scorers: tuple[tuple[ScorerEntry, Scorer[Any]], ...]
    registry: Registry
    host: PluginHost
    warnings: tuple[dict[str, str], ...] = ()

    def arm(self, name: str) -> CheckedSuite:
        """Return the suite as one arm sees it; a name without an entry in ``arms`` is the suite itself."""
        arm = self.suite.arms.get(name)
        if arm is None:
            return self
        suite = replace(self.suite, agent=arm.agent, runner=arm.runner, sandbox=arm.sandbox, judges=arm.judges)
        return replace(self, suite=suite, host=self.host.with_tables("judges", judge_tables(arm.judges)))


def load_suite(
    directory: Path,
    registry: Registry | None = None,
    *,
    read: Callable[[Path], bytes] = Path.read_bytes,
    fixtures: bool = True,
) -> CheckedSuite:
    """Read and check a suite. Static: nothing of it is executed but the plugins' own validation.

    ``read`` gives a file's bytes, so that a change can be checked before it is written. Without ``fixtures`` the files that
    cases name are not looked at: a run's snapshot holds them by digest.
    Raises ``SuiteNotFound``, or ``SuiteError`` with all problems of ``suite.json`` and ``cases.jsonl`` at once.
    """
    return _Loader(directory, registry or Registry(directory), read, fixtures=fixtures).load()


def load_scorers(directory: Path) -> tuple[tuple[tuple[ScorerEntry, Scorer[Any]], ...], bool]:
    """Return the scorers of a suite's document, and whether it is native; its cases are not looked at.

    Raises as :func:`load_suite`.
    """
    return _Loader(directory, Registry(directory)).scorers_only()


class _Loader:
    def __init__(
        self,
        directory: Path,
        registry: Registry,
        read: Callable[[Path], bytes] = Path.read_bytes,
        *,
        fixtures: bool = True,
    ) -> None:
        self.directory = directory
        self.read = read
        self.fixtures = fixtures
        self.registry = registry
        self.file = suite_file(directory)
        self.problems = Problems()
        self.text = ""
        self.warnings: list[dict[str, str]] = []

    def load(self) -> CheckedSuite:
        document = self._document()
        native = document.get("schema_version") is not None
        agent, runner = self._runner(document["runner"]) if "runner" in document else (AgentTable(), PluginTable(use=""))
        sandbox = self._table("sandbox", document.get("sandbox", "subprocess"), "sandbox")
        named = self._tables("sandbox", "sandboxes", document)
        services = self._tables("service", "services", document)
        judges = self._judges(document.get("judges") or {})
        host = PluginHost(self.registry, {"sandboxes": named, "services": services, "judges": judges})
        scorers = self._scorers(document.get("scorers") or [], native, host)
        if len(scorers) == len(document.get("scorers") or BUILTIN_SCORERS):
            self._extend(metric_problems(document, [entry.id for entry, _ in scorers]))
        self._used(scorers, host)
        arms = self._arms(document)
        files = tuple(dict.fromkeys([*agent.files, *(file for arm in arms.values() for file in arm.agent.files)]))
        cases_file, cases = self._cases(document, scorers, files, sandbox, services)
        self.problems.raise_all()
        if any(table.reveal_expect or table.reveal_id for table in (agent, *(arm.agent for arm in arms.values()))):
            self.warnings.append({"code": "W_GOLD_REVEALED", "message": "the suite shows its runner what it expects"})
        self._self_judging(document, arms, [reference for _, scorer in scorers for reference in scorer.uses()], host)
        suite = Suite(
            name=document["name"],
            directory=self.directory,
            document=document,
            native=native,
            cases=cases,
            agent=agent,
            runner=runner,
            sandbox=sandbox,
            services=services,
            judges=merged_judges(document, {}),
            scorers=tuple(entry for entry, _ in scorers),
            cases_file=cases_file,
            arms=arms,
            **_plain(document),
        )
        return CheckedSuite(suite, tuple(scorers), self.registry, host, tuple(self.warnings))

    def _cases(
        self,
        document: Mapping[str, Any],
        scorers: list[tuple[ScorerEntry, Scorer[Any]]],
        files: tuple[str, ...],
        sandbox: PluginTable,
        services: Mapping[str, PluginTable],
    ) -> tuple[str, tuple[Case, ...]]:
        """Check the cases; return the name of their file, and them."""
        checker = CaseChecker(
            self.directory,
            self.problems,
            scorers,
            files,
            native=document.get("schema_version") is not None,
            options=case_options(self.registry, sandbox),
            seeds=SeedChecker(self.directory, {name: seed_model(self.registry, table) for name, table in services.items()}),
            fixtures=self.fixtures,
            complete=len(scorers) == len(document.get("scorers") or BUILTIN_SCORERS),
        )
        name = document.get("cases", "cases.jsonl")
        return name, checker.check(name, self._opened)

    def _opened(self, path: Path) -> BinaryIO:
        """Open a file that may be long; it is in memory only if it is not on disk."""
        return io.BytesIO(self.read(path)) if self.read is not Path.read_bytes else path.open("rb")

    def scorers_only(self) -> tuple[tuple[tuple[ScorerEntry, Scorer[Any]], ...], bool]:
        document = self._document()
        native = document.get("schema_version") is not None
        scorers = self._scorers(document.get("scorers") or [], native, PluginHost(self.registry))
        self.problems.raise_all()
        return tuple(scorers), native

    def _document(self) -> dict[str, Any]:
        """Return the document; what makes everything else unreadable is raised at once."""
        try:
            self.text = self.read(self.file).decode("utf-8-sig")
            document = parse_suite(self.file, self.text)
        except OSError as error:
            raise SuiteNotFound(f"{self.file}: {error.strerror}", hint="start with: evalwright init") from error
        except (ValueError, RecursionError) as error:
            line = getattr(error, "lineno", None)
            self.problems.add(self.file, f"cannot be read: {error}", code=SCHEMA, line=line)
            self.problems.fail()
        if not is_object(document):
            self.problems.add(self.file, "must hold one JSON object", code=SCHEMA)
            self.problems.fail()
        problems = model_problems(SuiteShape, document, "")
        self._extend(problems)
        bad = {str(problem["key"]).partition(".")[0] for problem in problems}
        return {key: value for key, value in document.items() if key not in bad}

    def _arms(self, document: Mapping[str, Any]) -> dict[str, Arm]:
        """Check every arm; what is wrong with the tables that they all start from is told once, by the suite's own."""
        arms: dict[str, Arm] = {}
        if any(str(record.get("key")).partition(".")[0] in ARM_KEYS for record in self.problems.records):
            return arms
        written: Mapping[str, Mapping[str, Any]] = document.get("arms") or {}
        for name, overrides in written.items():
            place = f"arms.{name}"
            runner = overridden(document.get("runner", "command"), overrides.get("runner"), "command")
            sandbox = overridden(document.get("sandbox", "subprocess"), overrides.get("sandbox"), "subprocess")
            agent, table = self._runner(runner, f"{place}.runner")
            arms[name] = Arm(
                agent=agent,
                runner=table,
                sandbox=self._table("sandbox", sandbox, f"{place}.sandbox"),
                judges=merged_judges(document, overrides),
            )
            if "judges" in overrides:
                self._judges(arms[name].judges, f"{place}.judges")
        return arms

    def _self_judging(
        self, document: Mapping[str, Any], arms: Mapping[str, Arm], references: Sequence[str], host: PluginHost
    ) -> None:
        """Warn of every arm, or of the suite that has none, whose agent is asked to judge itself."""
        if not arms:
            self.warnings += self_judging(document["runner"], host.reach("judges", references))
        for name, arm in arms.items():
            runner = overridden(document["runner"], document["arms"][name].get("runner"), "command")
            judges = host.with_tables("judges", judge_tables(arm.judges)).reach("judges", references)
            self.warnings += self_judging(runner, judges, f" of arm {name}")

    def _runner(self, reference: dict[str, Any] | str, place: str = "runner") -> tuple[AgentTable, PluginTable]:
        table: dict[str, Any] = {"use": reference} if isinstance(reference, str) else reference
        shared = {key: value for key, value in table.items() if key in AGENT_KEYS}
        self._extend(model_problems(AgentShape, shared, place))
        config = {k: v for k, v in table.items() if k not in AGENT_KEYS and k != "use"}
        runner = self._configured("runner", table.get("use", "command"), config, place, also=AGENT_KEYS)
        try:
            shape = AgentShape.model_validate(shared)
        except ValueError:
            shape = AgentShape()
        self._agent_files(shape.files, place)
        agent = AgentTable(
            timeout=shape.timeout_seconds,
            score_on_timeout=shape.score_on_timeout,
            max_output_bytes=shape.max_output_bytes,
            env_allowlist=tuple(shape.env_allowlist),
            env=shape.env,
            redact_env_values=tuple(shape.redact_env_values),
            redact_patterns=tuple(shape.redact_patterns),
            files=tuple(shape.files),
            reveal_expect=shape.reveal_expect,
            reveal_id=shape.reveal_id,
            transcript=self._transcript(shape, place),
            limits=shape.limits.model_dump(exclude_none=True) or None,
        )
        return agent, runner

    def _transcript(self, shape: AgentShape, place: str) -> dict[str, Any] | None:
        if shape.transcript is None:
            return None
        table = self._table("transcript", shape.transcript.parser, f"{place}.transcript.parser")
        return {"parser": table.as_json(), "path": shape.transcript.path}

    def _agent_files(self, files: Sequence[str], place: str) -> None:
        for file in files:
            if why := path_objection(self.directory, file, "any"):
                self._add(f"{place}.files: {why}", f"{place}.files")

    def _tables(self, kind: str, section: str, document: Mapping[str, Any]) -> dict[str, PluginTable]:
        tables: Mapping[str, Any] = document.get(section) or {}
        return {name: self._table(kind, table, f"{section}.{name}") for name, table in tables.items()}

    def _table(self, kind: str, table: Any, place: str) -> PluginTable:
        if isinstance(table, str):
            return self._configured(kind, table, {}, place)
        use = table.get("use", "subprocess" if kind == "sandbox" else None) if is_object(table) else "subprocess"
        config = {key: value for key, value in table.items() if key != "use"} if is_object(table) else {}
        return self._configured(kind, use, config, place)

    def _judges(self, tables: Mapping[str, Any], section: str = "judges") -> dict[str, PluginTable]:
        """Return the judges with their plugins' own keys; those that every judge shares are checked here."""
        found: dict[str, PluginTable] = {}
        for name, written in tables.items():
            place = f"{section}.{name}"
            table: dict[str, Any] = {"use": written} if isinstance(written, str) else written
            shared, own = split_table(table)
            self._extend(model_problems(JudgeShape, shared, place))
            found[name] = self._configured("judge", table.get("use"), own, place, also=tuple(JudgeShape.model_fields))
        return found

    def _used(self, scorers: Sequence[tuple[ScorerEntry, Scorer[Any]]], host: PluginHost) -> None:
        """Check that every other plugin that a scorer asks for is in the suite."""
        for entry, scorer in scorers:
            for reference in scorer.uses():
                try:
                    host.resolve(reference)
                except PluginNotFound as error:
                    self._add(f"scorer {entry.id}: {error.message}", "scorers", error.hint)

    def _configured(
        self, kind: str, use: Any, config: Mapping[str, Any], place: str, *, also: Sequence[str] = ()
    ) -> PluginTable:
        """Check a table against its plugin's ``Config``."""
        if not isinstance(use, str):
            self._add(f"{place}.use: must be the name of a {kind}", f"{place}.use")
            return PluginTable(use="")
        try:
            loaded = self.registry.load(kind, use)
        except PluginError as error:
            record = {"message": f"{place}: {error.message}", "hint": error.hint, "key": place, **error.details}
            found = isinstance(error, PluginNotFound)
            record |= {"error_code": error.code} if found else {"code": error.code, "exit_code": error.exit_code}
            self._extend([record])
            return PluginTable(use=use)
        for record in configuration_problems(loaded.cls, config, place):
            where, _, key = str(record.get("key", "")).rpartition(".")
            if "unknown key" in record["message"] and "did_you_mean" not in record and also and where == place:
                record = unknown_key(place, key, also)
            self._extend([record])
        return PluginTable(use=use, config=config)

    def _scorers(
        self, entries: list[dict[str, Any] | str], native: bool, host: PluginHost
    ) -> list[tuple[ScorerEntry, Scorer[Any]]]:
        named = [{"use": entry} if isinstance(entry, str) else entry for entry in entries]
        written = named or [{"name": name} for name in BUILTIN_SCORERS]
        found: list[tuple[ScorerEntry, Scorer[Any]]] = []
        for number, entry in enumerate(written):
            checked = self._scorer(entry, f"scorers.{number}", native)
            if checked is None:
                continue
            if checked.id in [other.id for other, _ in found]:
                self._add(f'scorers.{number}: the id "{checked.id}" stands twice', "scorers", "give each its own id")
                continue
            try:
                scorer = self.registry.create("scorer", checked.table.use, checked.table.config, host)
            except PluginError:
                continue
            found.append((checked, scorer))
        return found

    def _scorer(self, entry: dict[str, Any], place: str, native: bool) -> ScorerEntry | None:
        shared = {key: value for key, value in entry.items() if key in ScorerShape.model_fields}
        config = {key: value for key, value in entry.items() if key not in ScorerShape.model_fields}
        problems = model_problems(ScorerShape, shared, place)
        self._extend(problems)
        use = entry.get("use") or entry.get("name")
        if problems or not isinstance(use, str):
            if not problems:
                self._add(f"{place}: say which scorer, with use", place)
            return None
        if not native:
            config = {**COMPATIBLE.get(use, {}), **config}
        identifier = entry.get("id") or self.registry.default_id("scorer", use)
        if why := _id_objection(identifier, "id" in entry, use):
            self._add(f"{place}.id: {why}", f"{place}.id")
        config = self._inlined(use, config, place)
        table = self._configured("scorer", use, config, place, also=tuple(ScorerShape.model_fields))
        return ScorerEntry(
            table=table, id=identifier, required=entry.get("required", True), explicit_id=entry.get("id") is not None
        )

    def _inlined(self, use: str, config: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Return a scorer's table with the content of the files that it names, where the scorer takes them."""
        read = dict(config)
        for key in [key for key, value in config.items() if isinstance(value, str) and value.startswith(FILE_MARK)]:
            try:
                if key in self.registry.load("scorer", use).cls.files:
                    read[key] = file_text(self.directory, config[key])
            except PluginError:
                return read
            except ValueError as error:
                self._add(f"{place}.{key}: {error}", f"{place}.{key}")
        return read

    def _add(self, message: str, key: str, hint: str = "", **details: Any) -> None:
        details.pop("key", None)
        self.problems.add(self.file, message, code=SCHEMA, hint=hint, line=line_of(self.text, key), key=key, **details)

    def _extend(self, records: Sequence[Mapping[str, Any]]) -> None:
        for record in records:
            line = line_of(self.text, str(record.get("key", "")))
            self.problems.extend(self.file, [record], code=SCHEMA, line=line)


def _id_objection(identifier: str, explicit: bool, use: str) -> str | None:
    if use == "command" and not explicit:
        return "a command scorer needs an id of its own"
    if CASE_ID.fullmatch(identifier) and ".." not in identifier:
        return None
    return "use letters, digits, dot, underscore, dash" if explicit else "a scorer by module or file needs an id of its own"


def _plain(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the suite takes from its document as it stands there."""
    return {
        "requires": tuple(document.get("requires", ())),
        "retry": _retry(document.get("retry", {})),
        "acknowledged": document.get("acknowledged_unsandboxed_runner", False),
        "repeats": document.get("repeats", 1),
        **analysis_of(document),
    }


def _retry(table: Mapping[str, Any]) -> Retry:
    shape = RetryShape(**table)
    return Retry(infrastructure=shape.infrastructure, backoff=shape.backoff_seconds)
