// Loaded before each test file of node's test runner: one test that must fail, and assertions that nobody can replace.
//
// The control asks for `node:assert` as a test does, after the file and all that it requires were loaded. Whatever turns
// outcomes into passes turns this one too. Processes and threads that a test file starts have no control. Node 20 or later.
"use strict";

const { isMainThread } = require("node:worker_threads");

if (isMainThread && process.env.NODE_TEST_CONTEXT === undefined) {
  process.env.EVALWRIGHT_RUNNER = String(process.pid);
} else if (isMainThread && process.env.EVALWRIGHT_RUNNER === String(process.ppid)) {
  delete process.env.EVALWRIGHT_RUNNER;
  const assert = require("node:assert");
  const test = require("node:test");
  for (const owner of [assert, assert.strict, test]) Object.freeze(owner);
  const wait = setTimeout;
  test("control", async () => {
    await new Promise((resolve) => wait(resolve, 0));
    module.require("node:assert").strictEqual(1, 2);
  });
}
