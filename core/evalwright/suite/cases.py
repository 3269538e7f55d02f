"""Check every line of ``cases.jsonl`` against its shape, the files it names, and the scorers that shall read it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from evalwright.canonical import digest_json, is_object
from evalwright.errors import PluginError
from evalwright.interfaces import Scorer
from evalwright.model import Case, PluginTable, ScorerEntry
from evalwright.registry import Registry, model_problems
from evalwright.suite.expect import near_names, own_expectations
from evalwright.suite.paths import overlaps, path_objection
from evalwright.suite.problems import Problems
from evalwright.suite.read import case_lines, parse_json
from evalwright.suite.seeds import SeedChecker
from evalwright.suite.shape import CaseShape
from evalwright.workspace import fixture_problems

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["CaseChecker", "case_options"]

INVALID = "E_CASE_INVALID"
PATHS = (("workspace", "directory"), ("diff", "file"), ("hidden", "directory"))
BUILTIN_KEYS = frozenset(
    [
        "exact",
        "text_contains",
        "text_regex",
        "json_schema",
        "numeric_threshold",
        "files_exist",
        "exit_code",
        "files_changed",
        "files_forbidden",
    ]
)


class CaseChecker:
    """Checks the cases of one suite and keeps what is wrong with them.

    Unless ``complete``, a scorer could not be loaded, and nobody knows what it would have read.
    """

    def __init__(
        self,
        directory: Path,
        problems: Problems,
        scorers: Sequence[tuple[ScorerEntry, Scorer[Any]]],
        files: Sequence[str],
        *,
        native: bool,
        options: type[BaseModel] | None = None,
        seeds: SeedChecker | None = None,
        fixtures: bool = True,
        complete: bool = True,
    ) -> None:
        self.directory = directory
        self.problems = problems
        self.scorers = scorers
        self.files = files
        self.native = native
        self.file = directory
        self.options = options
        self.seeds = seeds or SeedChecker(directory, {})
        self.fixtures = fixtures
        self.complete = complete
        self.owners = self._owners()
        self._objections: dict[tuple[str, str], str | None] = {}

    def check(self, name: Any, opened: Callable[[Path], BinaryIO]) -> tuple[Case, ...]:
        """Return the cases that could be read from what ``opened`` gives; every problem of each is noted."""
        if not isinstance(name, str):
            return ()
        self.file = self.directory / name
        if why := path_objection(self.directory, name, "file"):
            self.problems.add(self.directory / "suite.json", f"cases: {why}", code="E_SUITE_NOT_FOUND", key="cases")
            return ()
        with opened(self.file) as source:
            cases = [case for number, text in case_lines(source) if (case := self._case(number, text)) is not None]
        self._unique(cases)
        self._separate(cases, name)
        return tuple(cases)

    def _case(self, line: int, text: str | None) -> Case | None:
        if text is None:
            self._add(line, "the line is not UTF-8", hint="save the file as UTF-8")
            return None
        try:
            record = parse_json(text)
        except (ValueError, RecursionError) as error:
            message = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            self._add(line, f"not a valid JSON line: {message}")
            return None
        if not is_object(record):
            self._add(line, f"must be a JSON object, not a {type(record).__name__}")
            return None
        shape_problems = model_problems(CaseShape, record, "")
        self.problems.extend(self.file, shape_problems, code=INVALID, line=line)
        if shape_problems:
            return None
        if not record.get("id"):
            record["id"] = digest_json(record)[7:19]
            text = json.dumps(record, ensure_ascii=False)
        case = _case_of(record, line, text)
        if self.fixtures:
            self._paths(case, record)
        self._expectations(case, record.get("expect", {}))
        self._sandbox(case, record.get("sandbox"))
        for problem in self.seeds.problems(case.services, files=self.fixtures):
            self._add(line, **problem)
        return case

    def _paths(self, case: Case, record: Mapping[str, Any]) -> None:
        for key, kind in PATHS:
            raw = record.get(key)
            if raw is not None:
                self._path(case, key, raw, kind)
        if isinstance(case.gold, str):
            patch = case.gold.endswith((".patch", ".diff"))
            self._path(case, "gold", case.gold, "file" if patch else "directory")

    def _path(self, case: Case, key: str, raw: str, kind: str) -> None:
        known = (raw, kind) in self._objections
        if not known:
            self._objections[raw, kind] = path_objection(self.directory, raw, kind)
        if why := self._objections[raw, kind]:
            self._add(case.line, f"{key}: {why}", key)
        elif kind == "directory" and not known:
            for path, why in fixture_problems(self.directory / raw):
                self._add(case.line, f"{key} {raw}: {path} {why}", key)

    def _expectations(self, case: Case, expect: Mapping[str, Any]) -> None:
        ids = [entry.id for entry, _ in self.scorers]
        for key, value in expect.items():
            model = self.owners.get(key)
            if model is not None:
                self._validated(case, key, model, value)
            elif key not in ids:
                self._unclaimed(case, key)
        for entry, scorer in self.scorers:
            if entry.id in expect and entry.id not in self.owners:
                self._by_id(case, entry, scorer, expect[entry.id])
            for name in scorer.services(own_expectations(entry, scorer, expect)):
                if why := self.seeds.objection(name):
                    self._add(case.line, f"{entry.id}: {why[0]}", "expect", why[1])
        if self.native and self.complete and not any(self._decides(expect, entry, scorer) for entry, scorer in self.scorers):
            self._add(case.line, f"case {case.id}: no scorer of this suite can judge it", "expect", "add an expectation")

    def _decides(self, expect: Mapping[str, Any], entry: ScorerEntry, scorer: Scorer[Any]) -> bool:
        return entry.required and not scorer.advisory and scorer.applies(own_expectations(entry, scorer, expect))

    def _by_id(self, case: Case, entry: ScorerEntry, scorer: Scorer[Any], value: Any) -> None:
        """Check the value under a scorer's id: that of its only key, or an object of several."""
        if len(scorer.Expect) == 1:
            self._validated(case, entry.id, next(iter(scorer.Expect.values())), value)
        elif is_object(value):
            for key, item in value.items():
                if key in scorer.Expect:
                    self._validated(case, f"{entry.id}.{key}", scorer.Expect[key], item)
                else:
                    self._unclaimed(case, f"{entry.id}.{key}", list(scorer.Expect))
        elif scorer.Expect:
            self._add(case.line, f"expect.{entry.id}: must be an object", f"expect.{entry.id}")

    def _validated(self, case: Case, key: str, model: type[BaseModel], value: Any) -> None:
        self.problems.extend(self.file, model_problems(model, value, f"expect.{key}"), code=INVALID, line=case.line)

    def _unclaimed(self, case: Case, key: str, known: Sequence[str] = ()) -> None:
        names = sorted(known or {*self.owners, *BUILTIN_KEYS, *(entry.id for entry, _ in self.scorers if entry.explicit_id)})
        near = near_names(key, names)
        if not self.native:
            has_command = any(entry.table.use == "command" for entry, _ in self.scorers)
            if key in BUILTIN_KEYS or (has_command and not near):
                return
        elif not self.complete and not near:
            return
        elif key in BUILTIN_KEYS:
            self._add(case.line, f'"{key}" is read by no scorer of this suite', f"expect.{key}", "add that scorer")
            return
        hint = f"did you mean {near[0]}?" if near else f"known expectations: {', '.join(names)}"
        message = f'unknown expectation "{key}"' + (f'. Did you mean "{near[0]}"?' if near else "")
        self._add(case.line, message, f"expect.{key}", hint, did_you_mean=near[0] if near else None)

    def _sandbox(self, case: Case, options: Any) -> None:
        if not options:
            return
        if self.options is None:
            self._add(case.line, "sandbox: the suite's sandbox takes no options per case", "sandbox")
        else:
            self.problems.extend(self.file, model_problems(self.options, options, "sandbox"), code=INVALID, line=case.line)

    def _unique(self, cases: Sequence[Case]) -> None:
        seen: dict[str, Case] = {}
        for case in cases:
            first = seen.setdefault(case.id.lower(), case)
            if first is not case:
                what = "duplicate case id" if first.id == case.id else f'differs only by case from "{first.id}":'
                self._add(case.line, f'{what} "{case.id}" (first on line {first.line})', "id", "choose another id")

    def _separate(self, cases: Sequence[Case], cases_file: str) -> None:
        """Refuse gold inside what a runner sees, and the reverse."""
        seen = [*(case.workspace for case in cases), *(case.diff for case in cases if case.diff), *self.files]
        secret = {cases_file: "cases"}
        lines: dict[str, int] = {}
        for case in cases:
            for name, path in (("hidden", case.hidden), ("gold", case.gold)):
                if isinstance(path, str):
                    secret[path] = name
                    lines.setdefault(path, case.line)
            for path in case.services.values():
                secret[path] = "services"
                lines.setdefault(path, case.line)
        for name, path, place in overlaps(self.directory, seen, secret):
            message = f"{name} {path} and {place}, which the runner sees, lie inside one another"
            self._add(lines.get(path, 0), message, name, "keep them in separate directories")

    def _owners(self) -> dict[str, type[BaseModel]]:
        owners: dict[str, tuple[type[Scorer[Any]], type[BaseModel]]] = {}
        for entry, scorer in self.scorers:
            for key, model in scorer.Expect.items():
                owner, _ = owners.setdefault(key, (type(scorer), model))
                if owner is not type(scorer):
                    self.problems.add(
                        self.directory / "suite.json",
                        f'scorers: "{entry.table.use}" and {owner.__name__} both read the expectation "{key}"',
                        code="E_SCHEMA_VIOLATION",
                        hint="use one of them in this suite",
                    )
        return {key: model for key, (_, model) in owners.items()}

    def _add(self, line: int, message: str, key: str = "", hint: str = "", **details: Any) -> None:
        self.problems.add(self.file, message, code=INVALID, hint=hint, line=line or None, key=key or None, **details)


def _case_of(record: Mapping[str, Any], line: int, text: str) -> Case:
    services = record.get("services")
    return Case(
        id=record["id"],
        workspace=sys.intern(record["workspace"]),
        text=text.encode(),
        line=line,
        diff=record.get("diff") or None,
        hidden=record.get("hidden"),
        gold=record.get("gold"),
        timeout=record.get("timeout_seconds"),
        tags=tuple(map(sys.intern, record.get("tags", ()))),
        split=record.get("split"),
        **({"services": services} if services else {}),
    )


def case_options(registry: Registry, sandbox: PluginTable) -> type[BaseModel] | None:
    """Return the model of a case's ``sandbox`` table, if the suite's sandbox takes one."""
    try:
        return getattr(registry.load("sandbox", sandbox.use).cls, "CaseConfig", None)
    except PluginError:
        return None
