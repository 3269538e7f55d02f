"""The handbook for agents that drive Evalwright."""

from __future__ import annotations

__all__ = ["HANDBOOK"]

HANDBOOK = """# Evalwright: handbook for agents

## In short

    evalwright capabilities --json          what exists: verbs, flags, exit codes, error codes
    evalwright schema run --json            the shape of one verb's data
    evalwright init --json                  a sample suite in evals/
    evalwright validate NAME --json         all problems of a suite at once, nothing is executed
    evalwright audit NAME --json            can the suite tell good from bad?
    evalwright audit NAME --leak --json     can the agent reach the answers?
    evalwright run NAME --json              run it; data.run_id names the run
    evalwright report RUN --format json     verdicts with reasons, recomputed from sealed artifacts
    evalwright explain RUN CASE --json      one trial hop by hop

When stdout is not a terminal every verb prints one JSON line, the envelope:
`{ok, tool_version, data, meta, warnings[], commands[], errors[]}`. `commands[]` holds paste-ready next steps. An error names
its `code`, a `hint`, and where it applies `file`, `line`, `key`, `did_you_mean` and `corrected_command`. Progress goes
to stderr.

## Make a suite

1. `evalwright suite add demo --native --runner-argv "python3 agent.py" --json`
2. Put a fixture directory under `evals/suites/demo/fixtures/`.
3. `evalwright case add demo --task "..." --workspace fixtures/NAME --expect-json '{"exact": "ok"}' --json`,
   or pipe many: `evalwright case add demo --stdin --json < cases.jsonl`.
4. `evalwright scorer add demo --name exact --json`
5. `evalwright validate demo --json`, then `evalwright audit demo --json`.

Every `add` may be repeated: the same content answers `created: false`, other content under that id exits 5.

## What the agent under test gets

Its working directory is a private copy of the fixture. Paths come in the environment, under the prefixes `EVALWRIGHT_` and
`EVALCTL_`: `CASE_FILE` (the case without its expectations), `TASK_FILE`, `DIFF_FILE`, `OUTPUT_FILE` (write the answer
there, or to stdout), `USAGE_FILE` and `TRANSCRIPT_FILE` (what it consumed), `WORKSPACE`, `AGENT` (its own files).
In `argv` write `$EVALWRIGHT_TASK_FILE`; a shell line gets them by environment.

## Exit codes

0 success; 1 your input is wrong; 2 a required capability is missing; 3 the environment is broken; 4 try again or resume;
5 conflict; 6 the evaluation failed (`--fail-on-fail`, `audit`); 130 interrupted.

A trial's own trouble (timeout, crash, a scorer that could not judge) is data, not an exit code: the case is `error`,
W_PARTIAL_RUN warns, and `runner.json` or the score names the code.

## Interrupted runs

A run survives Ctrl-C, SIGKILL and a full disk. `evalwright run --resume RUN --json` keeps finished trials and runs the rest;
exactly one of several simultaneous resumes works, the others answer E_RUN_BUSY. `evalwright status RUN --json` shows a
live run.

## Trust

`report` recomputes verdicts from artifacts whose digests still fit; W_ARTIFACT_TAMPERED names what changed.
`evalwright verify RUN --json` checks ledger, manifest and every artifact. `report_hash` covers verdicts and reasons;
`content_hash` covers inputs and outputs too.
"""
