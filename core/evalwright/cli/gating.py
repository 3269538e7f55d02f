"""``--gate`` and ``--baseline``: read before anything runs, decided when everything has."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalwright.cli.envelope import Reply
from evalwright.errors import RunCorrupt, UsageError
from evalwright.report.experiment import ExperimentView, read_subject
from evalwright.report.figures.comparison import Side, sides_of
from evalwright.report.figures.gates import Gate, GateResult, check_gates, check_metrics, parse_gate
from evalwright.rundir import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Gates", "named_sides"]


@dataclass(frozen=True, slots=True)
class Gates:
    """What a run must hold, and what it is held against."""

    gates: Sequence[Gate]
    baseline: Side | None

    @staticmethod
    def read(layout: Layout, options: Any) -> Gates:
        """Return what the flags say. Raises ``UsageError``, ``RunNotFound`` and ``RunCorrupt`` before anything runs."""
        gates = [parse_gate(text) for text in options.gate]
        baseline: Side | None = None
        if options.baseline is not None:
            view, sides = named_sides(layout, options.baseline)
            if view.damaged:
                broken = ", ".join(view.damaged)
                raise RunCorrupt(
                    f"the baseline {options.baseline} is damaged: {broken}", hint=f"see: evalwright verify {view.id}"
                )
            if len(sides) > 1:
                arms = " or ".join(f"{options.baseline}:{side.name}" for side in sides)
                raise UsageError(f"the baseline {options.baseline} has {len(sides)} arms", hint=f"name one: {arms}")
            baseline = replace(sides[0], name=options.baseline)
            if not gates:
                raise UsageError("--baseline is for a gate", hint="add: --gate no-regression", key="baseline")
        check_gates([gate for gate in gates if not gate.operator], [], baseline, alpha=0.05)
        return Gates(gates, baseline)

    def check_metrics(self, scorer_ids: Sequence[str]) -> None:
        """Refuse gates on what no scorer gives. Raises ``UsageError``."""
        check_metrics(self.gates, scorer_ids)

    def decide(self, layout: Layout, subject: str, reply: Reply) -> Reply:
        """Add what every gate says of a run or an experiment to an answer, and its exit status.

        That is 6 for a miss, 3 where only the harness kept it open.
        """
        view = read_subject(layout, subject)
        results = check_gates(self.gates, sides_of(view), self.baseline, alpha=view.alpha)
        reply.data = {**reply.data, "gates": [result.as_json() for result in results]}
        reply.text += "\n" + "".join(map(_line, results))
        verdicts = {result.verdict for result in results}
        if "fail" in verdicts:
            reply.exit_code = 6
        elif "undecided" in verdicts:
            reply.exit_code = reply.exit_code or 3
        return reply


def named_sides(layout: Layout, reference: str) -> tuple[ExperimentView, list[Side]]:
    """Return what ``ID`` or ``ID:ARM`` names. Raises ``UsageError`` for an arm that is not there."""
    name, colon, arm = reference.partition(":")
    view = read_subject(layout, name)
    sides = sides_of(view)
    if not colon:
        return view, sides
    chosen = [side for side in sides if side.name == arm]
    if not chosen:
        raise UsageError(f'{name} has no arm "{arm}"', hint=f"its arms: {', '.join(view.arms)}", valid_values=view.arms)
    return view, chosen


def _line(result: GateResult) -> str:
    mark = {"pass": "✓", "fail": "✗", "undecided": "?"}[result.verdict]
    return f"  {mark} gate {result.gate} ({result.arm}): {result.why}\n"
