"""What is wrong with a workflow as a graph: names that nobody has, steps that nothing reaches, steps without a way out."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any, get_args

from evalwright_plugins.workflow.model.workflow import Outcome, Workflow

__all__ = ["graph_problems"]

OUTCOMES = get_args(Outcome)


def graph_problems(workflow: Workflow) -> list[dict[str, Any]]:
    """Return every problem, as envelope records with the ``key`` that holds it."""
    names = [step.id for step in workflow.steps]
    places = [*names, *workflow.terminal]
    found = [
        _problem(f"{name} is there twice", "steps", "give every step and terminal a name of its own") for name in _twice(places)
    ]
    found += _unknown_names(workflow, names, places)
    found += [
        _problem(
            f"{step.id} is a review, and no review holds for another run", f"steps.{number}.reusable", "leave reusable out"
        )
        for number, step in enumerate(workflow.steps)
        if step.reusable and step.id in {way.source for way in workflow.transitions if way.on == "findings-blocking"}
    ]
    found += [
        _problem(f"{source} has two ways on {on}", "transitions", "keep one of them")
        for source, on in _twice((transition.source, transition.on) for transition in workflow.transitions)
    ]
    return found or [*_unreachable(workflow, names)]


def _unknown_names(workflow: Workflow, names: list[str], places: list[str]) -> list[dict[str, Any]]:
    used: list[tuple[str, str, list[str]]] = [("entry", workflow.first, names)]
    for number, transition in enumerate(workflow.transitions):
        used.append((f"transitions.{number}.from", transition.source, names))
        used.append((f"transitions.{number}.to", transition.target, places))
    for number, step in enumerate(workflow.steps):
        used += [(f"steps.{number}.needs", need, [name for name in names if name != step.id]) for need in step.needs]
    used += [(f"budgets.max_attempts.{name}", name, names) for name in workflow.budgets.max_attempts]
    for policy in workflow.policies:
        used += [(f"policies.{policy.id}.steps", name, places) for name in policy.steps or ()]
    return [_missing(key, name, known) for key, name, known in used if name not in known]


def _unreachable(workflow: Workflow, names: list[str]) -> Iterator[dict[str, Any]]:
    ways = {name: {way for outcome in OUTCOMES if (way := workflow.edge(name, outcome))} for name in names}
    reached = _closure(workflow.first, ways)
    for name in names:
        if name not in reached:
            yield _problem(f"nothing leads to step {name}", "steps", f"add a transition to {name}, or leave it out")
        elif not _closure(name, ways) & set(workflow.terminal):
            yield _problem(
                f"no way leads from step {name} to a terminal", "transitions", f"add one of {', '.join(workflow.terminal)}"
            )


def _closure(start: str, ways: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += ways.get(name, ())
    return found


def _twice(values: Iterable[Any]) -> list[Any]:
    seen: dict[Any, int] = {}
    for value in values:
        seen[value] = seen.get(value, 0) + 1
    return [value for value, count in seen.items() if count > 1]


def _missing(key: str, name: str, known: list[str]) -> dict[str, Any]:
    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(known)}"
    return _problem(f"{key}: there is no {name}", key, hint) | ({"did_you_mean": near[0]} if near else {})


def _problem(message: str, key: str, hint: str) -> dict[str, Any]:
    return {"message": message, "key": key, "hint": hint}
