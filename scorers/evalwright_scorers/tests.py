"""The scorer that runs hidden tests against what the agent left."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from evalwright.errors import TrialError
from evalwright.interfaces import BoundedOutput, Command, ScoreContext, Scorer, Session
from evalwright.model import Completed, Finding, Score, ScoredTrial
from evalwright_scorers.added_lines import added_lines
from evalwright_scorers.cheating import changed_tests, limited, planted_configuration, planted_programs
from evalwright_scorers.commands import keep_output, render, seconds
from evalwright_scorers.expectation import table
from evalwright_scorers.junit import read_junit
from evalwright_scorers.noded import install_reporter, runs_node_tests
from evalwright_scorers.reports import Listed, Report, ReportUnreadable
from evalwright_scorers.sealed import Seal, install, read_sealed
from evalwright_scorers.tap import read_tap
from evalwright_scorers.tested import judge_report

__all__ = ["Tests", "TestsConfig"]

GOLD = ("_CASE_FILE", "_OUTPUT_FILE", "_SUITE")
MAX_REPORT_BYTES = 16 * 1024 * 1024
READERS: Mapping[str, Callable[[bytes], Report]] = MappingProxyType(
    {"junit": read_junit, "node": read_sealed, "pytest": read_sealed, "tap": read_tap}
)
SEALED = frozenset({"node", "pytest"})


class TestsConfig(BaseModel, extra="forbid", frozen=True, strict=True):
    """The command that runs the tests, and how its result is read.

    ``pytest`` and ``node`` (for ``node --test``) add what makes the runner write a sealed report; with ``junit`` and ``tap``
    the command writes the report to ``$EVALWRIGHT_REPORT_FILE``; ``exit`` reads only the exit status. ``fail_to_pass`` and
    ``pass_to_pass`` name tests that must be listed as passed; without names all listed tests must pass.
    """

    argv: Annotated[list[str], Field(min_length=1)] | None = None
    format: Literal["exit", "tap", "junit", "node", "pytest"] = "exit"
    fail_to_pass: list[str] = []
    pass_to_pass: list[str] = []
    timeout_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 60

    @model_validator(mode="after")
    def _names_need_report(self) -> Self:
        if self.format == "exit" and "format" in self.model_fields_set and self.required:
            raise ValueError("named tests need a report: format must be pytest, node, junit or tap")
        if self.format == "node" and self.argv is not None and not runs_node_tests(self.argv):
            raise ValueError("format node needs an argv with node and --test as words of their own")
        return self

    @property
    def required(self) -> list[str]:
        """Return the named tests, each once."""
        return list(dict.fromkeys([*self.fail_to_pass, *self.pass_to_pass]))


@dataclass(frozen=True, slots=True)
class _Place:
    """A session with the report path and the seal that were made for it alone, and the digests of what the agent changed."""

    session: Session
    report: PurePosixPath
    seal: Seal
    changed: Mapping[str, str | None]


class Tests(Scorer[TestsConfig]):
    """Passes when the required tests are reported as passed and the exit status agrees.

    The tests run on a fresh clone of the final workspace with the case's hidden files laid over it. Time that runs out,
    or success without a report, is a fail: the code under test may have caused it. What the agent changed in visible tests
    and in the configuration of test runners does not take part, and is a finding.
    """

    api = "scorer/1.0"
    Config = TestsConfig
    Expect = MappingProxyType({"tests": TestsConfig})

    def applies(self, expect: Mapping[str, Any]) -> bool:
        """Tell whether the case or the scorer's entry asks for tests."""
        return expect.get("tests") is not None or self.config.argv is not None

    def weakness(self, expect: Mapping[str, Any]) -> str | None:
        """Say that an exit status alone proves little."""
        if self.applies(expect) and table(expect, "tests", self.config).format == "exit":
            return "exit status alone can be forged by the code under test"
        return None

    def score(self, trial: ScoredTrial, context: ScoreContext) -> Score:
        """Run the tests and judge their report."""
        wanted = _complete(table(trial.expect, "tests", self.config))
        with context.session(workspace="final", hidden=True) as session:
            changed = {str(session.workspace / change.path): change.sha256_after for change in trial.changes}
            place = _Place(session, session.exchange / f"report-{secrets.token_hex(16)}", Seal(), changed)
            completed = session.execute(_command(wanted, place, context))
            keep_output(context, completed)
            if completed.canceled:
                raise TrialError("canceled", "the tests were canceled")
            if completed.spawn_error is not None and not _lies_in_workspace(wanted):
                raise TrialError("tests_not_started", f"the tests could not start: {completed.spawn_error}")
            document = None if wanted.format == "exit" else _document(place, context)
            score = _judged(wanted, completed, document, place)
        return replace(score, findings=(*score.findings, *_restored(trial)))


def _restored(trial: ScoredTrial) -> Iterator[Finding]:
    """Yield what the agent changed in tests and their configuration, and the tests ran without."""
    added = list(added_lines(trial.diff))
    yield from limited(
        [
            *changed_tests(trial.changes),
            *planted_configuration(trial.changes, added),
            *planted_programs(trial.changes, trial.after),
        ]
    )


def _complete(wanted: TestsConfig) -> TestsConfig:
    if wanted.argv is None:
        raise TrialError("expectation_incomplete", "neither expect.tests nor the scorer's entry names argv")
    if wanted.required and wanted.format == "exit":
        raise TrialError("expectation_incomplete", "named tests need a report: format must be pytest, node, junit or tap")
    if wanted.format == "node" and not runs_node_tests(wanted.argv):
        raise TrialError("expectation_incomplete", "format node needs an argv with node and --test as words of their own")
    return wanted


def _command(wanted: TestsConfig, place: _Place, context: ScoreContext) -> Command:
    env = {name: value for name, value in context.environment(place.session).items() if not name.endswith(GOLD)}
    env |= {"PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"}
    argv = render(wanted.argv or (), env | _report_variables(place))
    if wanted.format == "pytest":
        env["PYTHONSAFEPATH"] = "1"
        argv += install(place.session, env)
        stdin = place.seal.orders(place.report, place.changed)
    elif wanted.format == "node":
        argv = install_reporter(place.session, argv)
        stdin = place.seal.orders(place.report, place.changed)
    else:
        env |= _report_variables(place)
        stdin = None
    return Command(argv=argv, env=env, stdin=stdin, timeout=wanted.timeout_seconds, capture=BoundedOutput)


def _lies_in_workspace(wanted: TestsConfig) -> bool:
    """Tell whether the program is a file of the workspace, which the agent may have taken away."""
    program = (wanted.argv or [""])[0]
    return "/" in program and not program.startswith("/")


def _report_variables(place: _Place) -> dict[str, str]:
    return {f"{prefix}_REPORT_FILE": str(place.report) for prefix in ("EVALWRIGHT", "EVALCTL")}


def _document(place: _Place, context: ScoreContext) -> bytes | None:
    try:
        document = place.session.get(place.report, max_bytes=MAX_REPORT_BYTES + 1)
    except OSError:
        return None
    context.keep("report.txt", document[:MAX_REPORT_BYTES])
    return document


def _judged(wanted: TestsConfig, completed: Completed, document: bytes | None, place: _Place) -> Score:
    if completed.spawn_error is not None:
        return Score.failed({"why": f"the tests could not start from the workspace: {completed.spawn_error}"})
    if completed.timed_out:
        return Score.failed({"why": f"tests timed out after {seconds(wanted.timeout_seconds)}"})
    if completed.limit is not None:
        return Score.failed({"why": f"tests reached the limit {completed.limit}"})
    exited = f"tests exited {completed.exit_code}"
    if wanted.format == "exit":
        return Score.passed() if completed.exit_code == 0 else Score.failed({"why": exited})
    if document is None:
        tampered = "; the run was tampered with" if completed.exit_code == 0 else ""
        return Score.failed({"why": f"{exited} without a report{tampered}"})
    if len(document) > MAX_REPORT_BYTES:
        return Score.failed({"why": f"the report is larger than {MAX_REPORT_BYTES} bytes"})
    try:
        report = READERS[wanted.format](place.seal.opened(document) if wanted.format in SEALED else document)
    except ReportUnreadable as error:
        return Score.failed({"why": f"{exited} with an unreadable report: {error}"})
    exit_code = completed.exit_code
    if wanted.format == "node" and exit_code == 1 and not report.lists_failure:
        exit_code = 0
    return judge_report(report, wanted.required, exit_code, lambda test: not _agent_wrote(test, place))


def _agent_wrote(test: Listed, place: _Place) -> bool:
    """Tell whether a file that a test's names speak of is one that the agent left."""
    for path in {alias.partition("::")[0] for alias in test.aliases if "::" in alias}:
        where = place.session.workspace / path
        wanted = place.changed.get(str(where))
        try:
            if wanted is not None and wanted == _digest(place.session.get(where, max_bytes=MAX_REPORT_BYTES)):
                return True
        except OSError:
            continue
    return False


def _digest(content: bytes) -> str:
    return "sha256:" + hashlib.sha256(content).hexdigest()
