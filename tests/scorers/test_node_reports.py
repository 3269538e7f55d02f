"""Reports of node's test runner under a seal, against programs that aim at their own verdict."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError
from tests.conftest import shortened
from tests.scorers.conftest import make, trial

from evalwright.errors import TrialError
from evalwright.model import Change
from evalwright_scorers import tests as hidden_tests

if TYPE_CHECKING:
    from tests.scorers.conftest import Bench

Scorer = hidden_tests.Tests
TABLE = {"argv": ["node", "--test", "f.test.js"], "format": "node"}
TESTS = """
const test = require("node:test");
const f = require("./f.js");
const assert = require("node:assert");
test("answer", () => assert.strictEqual(f(), 42));
test.describe("group", () => { test.it("sign", () => assert.ok(f() > 0)); });
"""
NAMES = ["answer", "f.test.js::group > sign"]
WRONG = "module.exports = () => -1;\n"
FRAMES = """
const write = process.stdout.write;
process.stdout.write = function (chunk, ...rest) {
  const text = Buffer.from(chunk).toString("latin1").replaceAll("test:fail", "test:pass");
  return write.call(this, Buffer.from(text, "latin1"), ...rest);
};
"""
TAP = 'require("node:fs").writeSync(1, "TAP version 13\\nok 1 - answer\\nok 2 - group\\n1..2\\n");\n'
HOSTILE = {
    "writes TAP and leaves": TAP + "process.exit(0);\n",
    "writes TAP and leaves in a test": TAP + "module.exports = () => process.exit(0);\n",
    "replaces an assertion": 'require("node:assert").strictEqual = require("node:assert").ok = () => {};\n' + WRONG,
    "replaces a strict assertion": 'require("node:assert/strict").strictEqual = () => {};\n' + WRONG,
    "defines an assertion anew": 'Object.defineProperty(require("node:assert"), "strictEqual", {value() {}});\n' + WRONG,
    "hands out another assert": """
const { prototype } = require("node:module");
const real = prototype.require;
const lenient = Object.assign(() => {}, { ok() {}, strictEqual() {} });
prototype.require = function (name) { return name.endsWith("assert") ? lenient : real.call(this, name); };
""" + WRONG,
    "sets the exit code": 'process.on("exit", () => { process.exitCode = 0; process.reallyExit(0); });\n' + WRONG,
    "defines the exit code": 'Object.defineProperty(process, "exitCode", {get: () => 0, set() {}});\n' + WRONG,
    "registers tests of the same names": """
const test = require("node:test");
test("answer", () => {});
test.describe("group", () => { test.it("sign", () => {}); });
process.on("exit", () => process.reallyExit(0));
module.exports = () => process.exit(0);
""",
    "registers tests in a file that it makes": """
require("node:fs").writeFileSync("g.test.js",
  'const t = require("node:test"); t("answer", () => {}); t.describe("group", () => { t.it("sign", () => {}); });');
require("./g.test.js");
module.exports = () => process.exit(0);
""",
    "turns what its process reports": FRAMES + WRONG,
    "replaces test": 'require("node:test").describe = require("node:test").test = (name) => {};\n' + WRONG,
    "ends the runner": "process.kill(process.ppid, 'SIGKILL');\n" + WRONG,
    "opens a debugger in the runner": """
process.kill(process.ppid, "SIGUSR1");
const until = Date.now() + 300;
while (Date.now() < until);
const answer = require("node:child_process").spawnSync(process.execPath, ["-e",
  "require('net').connect(9229, '127.0.0.1').on('connect', () => process.exit(7)).on('error', () => process.exit(0))"]);
module.exports = () => (answer.status === 7 ? 42 : -1);
""",
    "finds the orders": """
const fs = require("node:fs");
const read = (at) => { try { return String(fs.readFileSync(at)); } catch { return ""; } };
const seen = [0, `/proc/${process.ppid}/fd/0`].map(read);
const known = [`/proc/${process.ppid}/cmdline`, `/proc/${process.ppid}/environ`, "/proc/self/environ", "/proc/self/cmdline"];
seen.push(...known.map((at) => String(fs.readFileSync(at))));
module.exports = () => (/"key"|report-/.test(seen.join("")) ? 42 : -1);
""",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _node(require: Callable[[str], None]) -> None:
    require("node")


def graded(bench: Bench, solution: str, names: list[str] = NAMES, tests: str = TESTS, **table: Any) -> Any:
    """Run the hidden tests over a solution that the agent wrote."""
    (bench.final / "f.js").write_text(solution)
    (bench.hidden / "f.test.js").write_text(tests)
    digest = "sha256:" + hashlib.sha256(solution.encode()).hexdigest()
    change = Change(path="f.js", status="added", kind="file", sha256_before=None, sha256_after=digest)
    scored = trial(Scorer, {"tests": {"fail_to_pass": names}}, changes=(change,))
    return make(Scorer, TABLE | table).score(scored, bench)


def test_a_right_solution_passes_and_nobody_hears_of_the_control(bench: Bench) -> None:
    score = graded(bench, "module.exports = () => 42;\n")

    assert (score.ok, score.findings) == (True, ())
    assert bench.kept["stdout.txt"].decode().splitlines() == [
        "passed   f.test.js::answer",
        "passed   f.test.js::group > sign",
        "passed   f.test.js::group",
    ]
    assert b"evalwright" not in bench.kept["report.txt"]


def test_a_wrong_solution_fails_by_name_with_the_reason(bench: Bench) -> None:
    score = graded(bench, "module.exports = () => 1;\n")

    assert [(finding["test"], finding["why"]) for finding in score.findings] == [("answer", "failed")]
    assert "1 !== 42" in score.findings[0]["detail"]


@pytest.mark.parametrize("name", shortened(HOSTILE, list(HOSTILE)[::3]))
def test_a_program_that_aims_at_its_verdict_fails(bench: Bench, name: str) -> None:
    score = graded(bench, HOSTILE[name])

    assert (score.ok, score.error) == (False, False)


def test_outcomes_that_were_turned_are_called_tampered(bench: Bench) -> None:
    assert {finding["why"] for finding in graded(bench, FRAMES + WRONG).findings} == {"tampered"}


OUTCOMES = """
import test from "node:test";
test("skips", { skip: "no" }, () => {});
test("later", { todo: true }, () => { throw new Error("known"); });
await test("above", async (t) => { await t.test("below", () => { throw new Error("why"); }); });
"""


@pytest.mark.parametrize(("name", "why"), [("skips", "skipped"), ("later", None), ("above > below", "failed")])
def test_each_outcome_is_read_from_modules_too(bench: Bench, name: str, why: str | None) -> None:
    (bench.hidden / "g.test.mjs").write_text(OUTCOMES)

    score = graded(bench, "", [name], argv=["/usr/bin/env", "node", "--test", "g.test.mjs"])

    assert {finding["why"] for finding in score.findings} == ({why} if why else set())


def test_processes_and_threads_of_a_test_have_no_control(bench: Bench) -> None:
    tests = """
const test = require("node:test");
const assert = require("node:assert");
const { fork } = require("node:child_process");
const { Worker } = require("node:worker_threads");
const ended = (what) => new Promise((resolve) => what.on("exit", resolve));
test("fork", async () => assert.strictEqual(await ended(fork("./f.js")), 0));
test("thread", async () => assert.strictEqual(await ended(new Worker("./f.js")), 0));
"""
    assert graded(bench, "\n", ["fork", "thread"], tests).ok


def test_an_unnamed_failure_beside_the_required_tests_does_not_matter(bench: Bench) -> None:
    assert graded(bench, "module.exports = () => 1;\n", ["group > sign"]).ok


def test_a_file_that_cannot_be_loaded_is_listed_with_its_path(bench: Bench) -> None:
    score = graded(bench, "throw new Error('at import')\n", ["f.test.js"])

    assert [finding["why"] for finding in score.findings] == ["failed"]


@pytest.mark.parametrize("argv", [["npm", "test"], ["node", "f.test.js"], ["sh", "-c", "node --test"]])
def test_a_command_that_options_cannot_be_added_to_is_refused(bench: Bench, argv: list[str]) -> None:
    with pytest.raises(ValidationError):
        make(Scorer, {"argv": argv, "format": "node"})
    with pytest.raises(TrialError, match="--test"):
        bench.score(Scorer, {"argv": argv}, {"tests": {"format": "node"}})
