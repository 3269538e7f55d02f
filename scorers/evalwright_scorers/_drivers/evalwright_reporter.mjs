// A reporter of node's test runner that writes, under a seal, what each test did.
//
// It runs in the runner's process, which loads no code under test, and reads its orders from stdin before any test file
// starts: the key of the seal, where to report, and which files the agent changed. A test that a file of the agent's own
// registered, or one that was made during the run, does not count. Each test file brings a control that must fail.
import { createHash, createHmac } from "node:crypto";
import { readFileSync, readdirSync, realpathSync, writeFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const CONTROL = join(dirname(fileURLToPath(import.meta.url)), "evalwright_control.cjs");
const MAX_DETAIL_CHARACTERS = 200;
const orders = JSON.parse(readFileSync(0, "utf8"));
const top = realpathSync(".");
const present = new Set(filesBelow(top));
const own = new Set(
  Object.keys(orders.changed)
    .filter((path) => orders.changed[path] !== null && digest(path) === orders.changed[path])
    .map((path) => realpathSync(path)),
);
process.on("SIGUSR1", () => {}); // else it would open a debugger to whoever sends it

export default async function* report(source) {
  const tests = [];
  const above = [];
  const controls = { files: 0, failed: 0, passed: 0 };
  for await (const { type, data } of source) {
    if (type === "test:dequeue" && data.nesting === 0 && data.name === data.file) controls.files += 1;
    if (type === "test:start") above.splice(data.nesting, Infinity, data.name);
    if (type !== "test:pass" && type !== "test:fail") continue;
    if (data.file === CONTROL) {
      controls[type === "test:fail" ? "failed" : "passed"] += 1;
    } else if (counts(data.file)) {
      tests.push(record(type === "test:pass", data, [...above.slice(0, data.nesting), data.name]));
    }
  }
  const control = controls.passed === 0 && controls.failed === controls.files ? "failed" : "passed";
  for (const test of tests) yield `${test.outcome.padEnd(8)} ${test.name}${test.detail && `: ${test.detail}`}\n`;
  const document = JSON.stringify({ tests: tests.map((test) => ({ ...test, control })) });
  const seal = createHmac("sha256", Buffer.from(orders.key, "hex")).update(document).digest("hex");
  writeFileSync(orders.report, `${seal}\n${document}`, { flag: "wx" });
}

function record(passed, data, names) {
  const file = relative(top, data.file);
  const name = data.name === data.file ? file : `${file}::${names.join(" > ")}`;
  const detail = String(data.details?.error?.cause?.message ?? data.details?.error?.message ?? data.skip ?? "");
  return { name, outcome: outcome(passed, data), detail: detail.split(/\s+/).join(" ").slice(0, MAX_DETAIL_CHARACTERS) };
}

function outcome(passed, { skip, todo }) {
  if (todo !== undefined && todo !== false) return passed ? "xpassed" : "xfailed";
  if (!passed) return "failed";
  return skip !== undefined && skip !== false ? "skipped" : "passed";
}

function counts(file) {
  if (file === undefined || own.has(file)) return false;
  return present.has(file) || !file.startsWith(top + sep) || file.includes(`${sep}node_modules${sep}`);
}

function filesBelow(directory) {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) return entry.name === "node_modules" || entry.name === ".git" ? [] : filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

function digest(path) {
  try {
    return `sha256:${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
  } catch {
    return null;
  }
}
