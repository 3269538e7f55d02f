"""Every plugin that comes with Evalwright keeps the contract of its kind."""

from __future__ import annotations

import gzip
import json
import stat
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evalwright.interfaces import Host
from evalwright.model import Change, Entry, Manifest, ScoredTrial, Transcript, Usage
from evalwright.report.forms.junit import JUnitExporter
from evalwright.testing import (
    DetachedQueue,
    ExporterContract,
    FakeScoreContext,
    ImporterContract,
    QueueContract,
    RunnerContract,
    SandboxContract,
    ScorerContract,
    TranscriptContract,
)
from evalwright_adapters.humaneval import HumanEvalImporter
from evalwright_adapters.lastlight import LastlightImporter
from evalwright_adapters.lastlight.config import LastlightConfig
from evalwright_adapters.quixbugs import QuixBugsImporter
from evalwright_adapters.stream_json import StreamJsonParser
from evalwright_adapters.swebench import SwebenchConfig, SwebenchExporter
from evalwright_plugins.queues.local import LocalQueue
from evalwright_plugins.queues.spoolctl import SpoolctlQueue
from evalwright_plugins.runners.command import CommandConfig, CommandRunner
from evalwright_plugins.sandboxes.bubblewrap import BubblewrapConfig, BubblewrapSandbox
from evalwright_plugins.sandboxes.spoolctl import SpoolctlSandbox
from evalwright_plugins.sandboxes.subprocess import SubprocessConfig, SubprocessSandbox
from evalwright_scorers.choice import Choice, ChoiceConfig
from evalwright_scorers.command import CommandConfig as ScorerCommandConfig
from evalwright_scorers.command import CommandScorer
from evalwright_scorers.exit_code import ExitCode, ExitCodeConfig
from evalwright_scorers.files import FileExists, FileExistsConfig, WorkspaceDiff, WorkspaceDiffConfig
from evalwright_scorers.integrity import Integrity, IntegrityConfig
from evalwright_scorers.json_schema import JsonSchema, JsonSchemaConfig
from evalwright_scorers.number import Number, NumberConfig
from evalwright_scorers.numeric import NumericThreshold, NumericThresholdConfig
from evalwright_scorers.tests import Tests as HiddenTests
from evalwright_scorers.tests import TestsConfig as HiddenTestsConfig
from evalwright_scorers.text import Contains, ContainsConfig, Exact, ExactConfig, Regex, RegexConfig

LASTLIGHT = Path(__file__).parents[1] / "data" / "lastlight"
VERDICT = """
if grep -q right "$EVALWRIGHT_OUTPUT_FILE"
then echo '{"ok": true, "score": 1, "findings": []}'
else echo '{"ok": false, "score": 0, "findings": []}'
fi
"""


class TestSubprocessSandbox(SandboxContract):
    def make(self, host: Host) -> SubprocessSandbox:
        return SubprocessSandbox(SubprocessConfig(), host)


class TestBubblewrapSandbox(SandboxContract):
    def make(self, host: Host) -> BubblewrapSandbox:
        return BubblewrapSandbox(BubblewrapConfig(), host)


class TestLocalQueue(QueueContract):
    def make(self, host: Host) -> LocalQueue:
        return LocalQueue(None, host)


class TestSpoolctlSandbox(SandboxContract):
    def make(self, host: Host) -> SpoolctlSandbox:
        return SpoolctlSandbox(None, host)


class TestSpoolctlQueue(QueueContract):
    def make(self, host: Host) -> SpoolctlQueue:
        return SpoolctlQueue(None, host)


class TestDetachedQueue(QueueContract):
    def make(self, host: Host) -> DetachedQueue:
        return DetachedQueue(None, host)


class TestCommandRunner(RunnerContract):
    def make(self, host: Host) -> CommandRunner:
        return CommandRunner(CommandConfig(argv=["cat", "$EVALWRIGHT_TASK_FILE"]), host)

    def make_failing(self, host: Host) -> CommandRunner:
        return CommandRunner(CommandConfig(shell=True, command="exit 3"), host)

    def make_hanging(self, host: Host) -> CommandRunner:
        return CommandRunner(CommandConfig(argv=["sleep", "300"]), host)


class TestCommandRunnerWithTheTaskOnStdin(RunnerContract):
    def make(self, host: Host) -> CommandRunner:
        return CommandRunner(CommandConfig(argv=["cat"], stdin="task"), host)


class TestExact(ScorerContract):
    expect = MappingProxyType({"exact": "42\n"})

    def make(self, host: Host) -> Exact:
        return Exact(ExactConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial("42\n")

    def wrong(self) -> ScoredTrial:
        return self.trial("42")


class TestContains(ScorerContract):
    expect = MappingProxyType({"text_contains": ["one", "two"]})

    def make(self, host: Host) -> Contains:
        return Contains(ContainsConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial("two one")

    def wrong(self) -> ScoredTrial:
        return self.trial("one")


class TestRegex(ScorerContract):
    expect = MappingProxyType({"text_regex": ["^a+$"]})

    def make(self, host: Host) -> Regex:
        return Regex(RegexConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial("b\naaa\n")

    def wrong(self) -> ScoredTrial:
        return self.trial("ab")


class TestIntegrity(ScorerContract):
    expect = MappingProxyType({"scope": ["src/**"]})

    def make(self, host: Host) -> Integrity:
        return Integrity(IntegrityConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial("done")

    def wrong(self) -> ScoredTrial:
        change = Change(path="tests/test_a.py", status="deleted", kind="file", sha256_before="sha256:0", sha256_after=None)
        return self.trial("done", changes=(change,))


class TestJsonSchema(ScorerContract):
    expect = MappingProxyType({"json_schema": {"type": "object", "required": ["a"]}})

    def make(self, host: Host) -> JsonSchema:
        return JsonSchema(JsonSchemaConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial('{"a": 1}')

    def wrong(self) -> ScoredTrial:
        return self.trial("[]")


class TestNumericThreshold(ScorerContract):
    expect = MappingProxyType({"numeric_threshold": {"path": "a.0", "gte": 1}})

    def make(self, host: Host) -> NumericThreshold:
        return NumericThreshold(NumericThresholdConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial('{"a": [1]}')

    def wrong(self) -> ScoredTrial:
        return self.trial('{"a": [0]}')


class TestFileExists(ScorerContract):
    expect = MappingProxyType({"files_exist": ["src/*.py"]})

    def make(self, host: Host) -> FileExists:
        return FileExists(FileExistsConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial(after=Manifest((Entry(path="src/a.py", kind="file"),)))

    def wrong(self) -> ScoredTrial:
        return self.trial(after=Manifest((Entry(path="a.py", kind="file"),)))


class TestWorkspaceDiff(ScorerContract):
    expect = MappingProxyType({"files_changed": ["a"], "files_forbidden": ["b"]})

    def make(self, host: Host) -> WorkspaceDiff:
        return WorkspaceDiff(WorkspaceDiffConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial(changes=(_change("a"),))

    def wrong(self) -> ScoredTrial:
        return self.trial(changes=(_change("a"), _change("b")))


class TestExitCode(ScorerContract):
    expect = MappingProxyType({"exit_code": 2})

    def make(self, host: Host) -> ExitCode:
        return ExitCode(ExitCodeConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial(exit_code=2)

    def wrong(self) -> ScoredTrial:
        return self.trial(exit_code=0)


class TestNumber(ScorerContract):
    expect = MappingProxyType({"number": {"target": 42}})

    def make(self, host: Host) -> Number:
        return Number(NumberConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial("Answer: 42")

    def wrong(self) -> ScoredTrial:
        return self.trial("Answer: 41")


class TestChoice(ScorerContract):
    expect = MappingProxyType({"choice": {"target": "A", "choices": ["A", "B"]}})

    def make(self, host: Host) -> Choice:
        return Choice(ChoiceConfig(), host)

    def right(self) -> ScoredTrial:
        return self.trial("Answer: A")

    def wrong(self) -> ScoredTrial:
        return self.trial("Answer: B")


class TestCommandScorer(ScorerContract):
    def make(self, host: Host) -> CommandScorer:
        return CommandScorer(ScorerCommandConfig(shell=True, command=VERDICT), host)

    def right(self) -> ScoredTrial:
        return self.trial("right")

    def wrong(self) -> ScoredTrial:
        return self.trial("wrong")


class TestHiddenTests(ScorerContract):
    expect = MappingProxyType({"tests": {"argv": ["./hidden.sh"], "format": "tap", "pass_to_pass": ["works"]}})

    def make(self, host: Host) -> HiddenTests:
        return HiddenTests(HiddenTestsConfig(), host)

    def fill(self, context: FakeScoreContext) -> None:
        (context.final / "answer").write_text("right\n")
        script = context.hidden / "hidden.sh"
        script.write_text('#!/bin/sh\ngrep -q right answer && printf "1..1\\nok 1 - works\\n" > "$EVALWRIGHT_REPORT_FILE"\n')
        script.chmod(script.stat().st_mode | stat.S_IXUSR)

    def right(self) -> ScoredTrial:
        return self.trial()


class TestLastlightImporter(ImporterContract):
    def make(self, host: Host) -> LastlightImporter:
        return LastlightImporter(LastlightConfig(), host)

    def write_source(self, place: Path) -> Path:
        path = place / "code-fix.json"
        path.write_bytes((LASTLIGHT / "tiers" / "code-fix.json").read_bytes())
        return path


class TestLastlightResults(ImporterContract):
    records = 8

    def make(self, host: Host) -> LastlightImporter:
        return LastlightImporter(LastlightConfig(), host)

    def write_source(self, place: Path) -> Path:
        directory = place / "2026-08-22_184650-00cc469"
        directory.mkdir(exist_ok=True)
        card = LASTLIGHT / "band" / directory.name / "scorecard.json"
        (directory / "scorecard.json").write_bytes(card.read_bytes())
        return directory / "scorecard.json"


class TestJUnitExporter(ExporterContract):
    def make(self, host: Host) -> JUnitExporter:
        return JUnitExporter(None, host)


class TestSwebenchExporter(ExporterContract):
    def make(self, host: Host) -> SwebenchExporter:
        return SwebenchExporter(SwebenchConfig(), host)


class TestQuixBugsImporter(ImporterContract):
    records = 2

    def make(self, host: Host) -> QuixBugsImporter:
        return QuixBugsImporter(None, host)

    def write_source(self, place: Path) -> Path:
        programs = [
            {"name": "gcd", "buggy": "x\n", "correct": "y\n", "testcases": [[[1, 2], 1], [[4, 2], 2]]},
            {"name": "short", "buggy": "x\n", "correct": "y\n", "testcases": [[[1], 1]]},
        ]
        path = place / "quixbugs.jsonl"
        path.write_text("".join(json.dumps(program) + "\n" for program in programs))
        return path


class TestHumanEvalImporter(ImporterContract):
    records = 1

    def make(self, host: Host) -> HumanEvalImporter:
        return HumanEvalImporter(None, host)

    def write_source(self, place: Path) -> Path:
        problem: dict[str, Any] = {
            "task_id": "Toy/7",
            "prompt": "def double(x):\n",
            "entry_point": "double",
            "canonical_solution": "    return x + x\n",
            "test": "def check(candidate):\n    assert candidate(2) == 4\n",
        }
        path = place / "HumanEval.jsonl.gz"
        path.write_bytes(gzip.compress(json.dumps(problem).encode(), mtime=0))
        return path


def _change(path: str) -> Change:
    return Change(path=path, status="modified", kind="file", sha256_before="sha256:a", sha256_after="sha256:b")


class TestStreamJsonParser(TranscriptContract):
    sample = b"".join(
        json.dumps(event).encode() + b"\n"
        for event in (
            {"type": "system", "subtype": "init", "model": "m"},
            {
                "type": "assistant",
                "uuid": "1",
                "message": {"id": "a", "model": "m", "content": [{"type": "tool_use", "id": "t"}]},
            },
            {
                "type": "user",
                "uuid": "2",
                "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "is_error": True}]},
            },
            {
                "type": "result",
                "uuid": "3",
                "num_turns": 2,
                "total_cost_usd": 0.25,
                "usage": {
                    "input_tokens": 3,
                    "output_tokens": 5,
                    "cache_read_input_tokens": 7,
                    "cache_creation_input_tokens": 0,
                },
                "result": "done",
            },
        )
    )
    expected = Transcript(
        usage=Usage(input=3, output=5, cache_read=7, cache_write=0, turns=2, tool_calls=1, tool_errors=1, cost=0.25, model="m"),
        model="m",
        final_text="done",
    )

    def make(self, host: Host) -> StreamJsonParser:
        return StreamJsonParser(None, host)
