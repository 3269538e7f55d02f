"""``work status``, ``inbox``, ``events`` and ``metrics``: what there is, and how it goes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from evalwright.errors import EvalwrightError
from evalwright.interfaces import VerbAnswer
from evalwright.ledger import read_events
from evalwright_plugins.workflow.commands.common import (
    age_of,
    exit_code,
    here,
    line_of,
    opened,
    request_data,
    request_text,
    run_text,
    span,
)
from evalwright_plugins.workflow.commands.lines import event_line
from evalwright_plugins.workflow.commands.screen import Motion, Screen, motion_of, still, until
from evalwright_plugins.workflow.commands.standing import Past, standing, standing_lines
from evalwright_plugins.workflow.commands.tally import tally, tally_text, total
from evalwright_plugins.workflow.drive.ask import commands_of
from evalwright_plugins.workflow.drive.runs import Run, Runs
from evalwright_plugins.workflow.record import State, advance

__all__ = ["events", "inbox", "metrics", "status"]

Warn = Callable[[str, str], None]
Record = dict[str, Any]


def status(options: Any, warn: Warn) -> VerbAnswer:
    """Say how a run stands, or all runs of the repository."""
    with opened(options) as runs:
        look = _one if options.target else _all
        if options.watch:
            _watch(options, runs, warn)
        answer = look(options, runs, warn)
    plain = options.watch and not options.json and options.format != "json"
    return replace(answer, body=answer.text) if plain else answer


def inbox(options: Any, warn: Warn) -> VerbAnswer:
    """Show every open request of the repository, the oldest first."""
    with opened(options) as runs:
        asked = [(run, state) for run, state in _states(runs, warn) if state.request and not state.decision]
    asked = [one for one in asked if not one[0].foreign and options.work in (None, one[1].work)]
    asked.sort(key=lambda one: one[1].asked_at)
    rows: list[Record] = []
    lines = [f"{len(asked)} open request{'s' * (len(asked) != 1)}" if asked else "no open requests: nothing waits for you"]
    for run, state in asked:
        assert state.request
        commands = here(commands_of(run.id, state.request), options)
        age = age_of(state.asked_at)
        row = {"run": run.id, "work": state.work, **request_data(state.request), "age_seconds": age, "commands": commands}
        rows.append(row)
        lines += ["", f"{run.id} · {state.work} · asked {span(age or 0.0)} ago"]
        lines += request_text(run.id, state.request, options)
    steps: dict[str, str] = rows[0]["commands"] if rows else {}
    return VerbAnswer(data={"requests": rows, "count": len(rows)}, text="\n".join(lines) + "\n", next_steps=steps)


def events(options: Any, warn: Warn) -> VerbAnswer:
    """Show what happened in a run, one line an event; through a pipe the lines of the ledger."""
    del warn
    with opened(options) as runs:
        run = runs.find(options.target)
        raw = options.format != "text" and not sys.stdout.isatty()
        if options.follow:
            return _followed(run, raw=raw or options.json)
        found = read_events(run.files.ledger)
        lines = _lines(run)
    body = "".join(lines[: len(found)]) if raw and not options.json and options.format != "json" else None
    text = "".join(f"{event_line(event)}\n" for event in found)
    return VerbAnswer(data={"run": run.id, "events": found, "count": len(found)}, text=text, body=body)


def metrics(options: Any, warn: Warn) -> VerbAnswer:
    """Count what runs took and what came of it: of one, of a work, or of the whole repository."""
    with opened(options) as runs:
        chosen: Iterable[Run] = [runs.find(options.target)] if options.target else [run for run, _ in _states(runs, warn)]
        rows = [tally(run.id, read_events(run.files.ledger)) for run in chosen]
    rows = [row for row in rows if options.work in (None, row["work"])]
    return VerbAnswer(data={"runs": rows, "total": total(rows)}, text=tally_text(rows))


def _one(options: Any, runs: Runs, warn: Warn, past: Past | None = None) -> VerbAnswer:
    del warn
    run = runs.find(options.target)
    state = run.state()
    data = standing(run, state, past or Past.of(runs))
    text = run_text(run, state, options) + "".join(f"{line}\n" for line in standing_lines(data))
    return VerbAnswer(data=data, text=text, exit_code=exit_code(state), next_steps=_next(run, state, data, options))


def _next(run: Run, state: State, data: Record, options: Any) -> dict[str, str]:
    if run.foreign or state.status.terminal:
        return here({f"evalwright work events {run.id}": "read what happened"}, options)
    if data["interrupted"]:
        return here({f"evalwright work resume {run.id}": "nobody drives it: drive it on"}, options)
    if state.request and not state.decision:
        return here(commands_of(run.id, state.request), options)
    return here({f"evalwright work status {run.id} --watch": "look until it ends or waits"}, options)


def _all(options: Any, runs: Runs, warn: Warn, past: Past | None = None) -> VerbAnswer:
    past = past or Past.of(runs)
    rows: list[tuple[Run, State, Record]] = []
    for run, state in _states(runs, warn):
        try:
            rows.append((run, state, standing(run, state, past)))
        except EvalwrightError as error:
            warn("W_ARTIFACT_TAMPERED", line_of(error.message))
    rows.sort(key=lambda row: (_rank(row[2]), -row[0].files.ledger.stat().st_mtime_ns))
    lines = [_summary(run, state, data) for run, state, data in rows]
    if not lines:
        steps = {"evalwright work start --config FILE": "start one"}
        return VerbAnswer(data={"runs": [], "count": 0}, text="no runs yet\n", next_steps=here(steps, options))
    data = {"runs": [data for _, _, data in rows], "count": len(rows)}
    steps = here({f"evalwright work status {rows[0][0].id}": "look closer"}, options)
    return VerbAnswer(data=data, text="\n".join(lines) + "\n", next_steps=steps)


def _rank(data: Record) -> int:
    """Live runs come first, then those that wait, those that were left, those that ended, and imported ones."""
    if data["foreign"]:
        return 4
    if data["driver"]:
        return 0
    return 3 if data["reason"] is not None else 2 if data["interrupted"] else 1


def _summary(run: Run, state: State, data: Record) -> str:
    line = run_text(run, state).partition("\n")[0]
    if data["foreign"]:
        return f"{line} (imported)"
    if data["interrupted"]:
        return f"{line}; nobody drives it"
    if data["running"]:
        elapsed = data["running"]["elapsed_seconds"]
        return f"{line}, attempt {data['running']['attempt']}, {span(elapsed or 0.0)} so far"
    if data["request"]:
        return f"{line}: {data['request']['kind']}, asked {span(data['request']['age_seconds'] or 0.0)} ago"
    return line if data["reason"] is None else f"{line}: {line_of(data['reason'], 80)}"


def _states(runs: Runs, warn: Warn) -> list[tuple[Run, State]]:
    """Return every run with its state; of those whose ledger is damaged a warning tells."""
    found: list[tuple[Run, State]] = []
    for run in runs:
        try:
            found.append((run, run.state()))
        except (EvalwrightError, OSError) as error:
            warn("W_ARTIFACT_TAMPERED", line_of(f"{run.id} cannot be read: {error}; see: evalwright work verify {run.id}", 500))
    return found


def _watch(options: Any, runs: Runs, warn: Warn) -> None:
    """Show it anew until nothing moves. What a person reads goes to stderr where stdout is the envelope's."""
    past, in_place = Past.of(runs), still() and not options.json
    screen = Screen(sys.stderr if options.json or options.format == "json" else sys.stdout, still=in_place)

    def look() -> Motion:
        runs_now = [runs.find(options.target)] if options.target else list(runs)
        motions: list[Motion] = []
        for run in runs_now:
            with contextlib.suppress(EvalwrightError, OSError):
                motions.append(motion_of(run, run.state()))
        motion: Motion = "moves" if "moves" in motions else "unowned" if "unowned" in motions else "rests"
        if motion != "rests" or not in_place:
            screen.show(_shown(options, runs, warn, past, in_place=in_place))
        return motion

    until(look)
    if in_place:
        screen.show("")


def _shown(options: Any, runs: Runs, warn: Warn, past: Past, *, in_place: bool) -> str:
    if in_place:
        return (_one if options.target else _all)(options, runs, warn, past).text
    chosen = [runs.find(options.target)] if options.target else list(runs)
    lines: list[str] = []
    for run in chosen:
        with contextlib.suppress(EvalwrightError, OSError):
            state = run.state()
            lines.append(run_text(run, state).partition("\n")[0])
    return "\n".join(lines)


def _followed(run: Run, *, raw: bool) -> VerbAnswer:
    state = State()

    def look() -> Motion:
        found = read_events(run.files.ledger)
        lines = _lines(run) if raw else [f"{event_line(event)}\n" for event in found]
        for event, line in zip(found[state.seq :], lines[state.seq :], strict=False):
            advance(state, event)
            sys.stdout.write(line)
        sys.stdout.flush()
        return motion_of(run, state)

    until(look)
    return VerbAnswer(data=None, text="", body="", exit_code=exit_code(state))


def _lines(run: Run) -> list[str]:
    """Return the lines of a ledger as they are, the newest ones too that were not there when it was verified."""
    return [f"{line}\n" for line in run.files.ledger.read_bytes().decode("utf-8", "replace").split("\n")]
