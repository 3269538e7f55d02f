"""A repair agent without a model: change one place at a time, and keep the first change that satisfies every example.

It reads the program and ``examples.json`` of its workspace, and nothing else.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CPU_SECONDS, WALL_SECONDS, MEMORY_BYTES = 0.1, 2.0, 512 * 1024**2
COMPARISONS = {"Lt": "<= > >=", "LtE": "< >= >", "Gt": ">= < <=", "GtE": "> <= <", "Eq": "!= <= >=", "NotEq": "=="}
OPERATORS = {
    "Add": "+",
    "Sub": "-",
    "Mult": "*",
    "FloorDiv": "//",
    "Mod": "%",
    "BitAnd": "&",
    "BitOr": "|",
    "BitXor": "^",
}
TWINS = {"any": "all", "all": "any", "min": "max", "max": "min"}

Change = tuple[int, ast.AST, str]  # rank (the most plausible first), what stands there, the text to put there
text = ast.unparse


def operator_changes(node: ast.AST) -> Iterator[Change]:
    """Yield other operators, operands the other way round, and one operand alone."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        left, right = text(node.left), text(node.comparators[0])
        for operator in COMPARISONS.get(type(node.ops[0]).__name__, "").split():
            yield 1, node, f"{left} {operator} {right}"
    elif isinstance(node, ast.AugAssign):
        yield from ((2, node, f"{text(node.target)} {operator}= {text(node.value)}") for operator in OPERATORS.values())
    elif isinstance(node, ast.BinOp):
        left, right = (f"({text(side)})" for side in (node.left, node.right))
        yield 1, node, f"{right} {OPERATORS.get(type(node.op).__name__, '-')} {left}"
        yield from ((2, node, f"{left} {operator} {right}") for operator in OPERATORS.values())
        yield from ((5, node, side) for side in (left, right))


def call_changes(node: ast.AST) -> Iterator[Change]:
    """Yield a twin of the function, two arguments exchanged, and an argument in place of the whole call."""
    if not isinstance(node, ast.Call) or node.keywords:
        return
    function, arguments = text(node.func), [text(argument) for argument in node.args]
    if function in TWINS:
        yield 1, node, f"{TWINS[function]}({', '.join(arguments)})"
    for i in range(len(arguments)):
        yield 4, node, arguments[i]
        for j in range(i):
            order = arguments.copy()
            order[i], order[j] = order[j], order[i]
            yield 1, node, f"{function}({', '.join(order)})"


def value_changes(node: ast.AST, names: list[str]) -> Iterator[Change]:
    """Yield off-by-one values, other variables, the rest of a sequence, and bounds."""
    if not isinstance(node, ast.expr) or isinstance(getattr(node, "ctx", None), ast.Store):
        return
    old = text(node)
    if isinstance(node, (ast.Name, ast.Call, ast.BinOp, ast.Constant)) and not old.startswith(("'", '"')):
        yield from ((3, node, f"{old} {step}") for step in ("+ 1", "- 1"))
    if isinstance(node, ast.Name) and old in names:
        others = [name for name in names if name != old]
        yield from ((4, node, name) for name in others)
        yield from ((5, node, f"{old}[{start}:]") for start in ("1", *others))
        yield from ((6, node, f"{old} - {name}") for name in others)
    if isinstance(node, (ast.BinOp, ast.Name)):
        yield from ((7, node, f"max({bound}, {old})") for bound in ("0", *names) if bound != old)


def statement_changes(node: ast.AST, names: list[str]) -> Iterator[Change]:
    """Yield other results, wider conditions, and one more ``append`` behind a statement."""
    if isinstance(node, ast.Return) and isinstance(node.value, (ast.List, ast.Constant, ast.ListComp)):
        old = text(node.value)
        results = [f"[{old}]", *(form for name in names for form in (f"[{name}]", f"{name} == 0", f"{name} + {old}"))]
        yield from ((4, node.value, result) for result in results)
    elif isinstance(node, (ast.If, ast.While)):
        yield from ((6, node.test, f"{text(node.test)} or not {name}") for name in names)
    if isinstance(node, (ast.Expr, ast.Assign, ast.For, ast.While)):
        indent = " " * node.col_offset
        pairs = [(target, name) for target in names for name in names if target != name]
        yield from ((8, node, f"\n{indent}{target}.append({name})") for target, name in pairs)


def changes(tree: ast.Module, luck: random.Random | None = None) -> list[Change]:
    """Return every change of the program's functions, the most plausible first; ``luck`` shuffles those that are alike."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    nodes = [node for function in functions for node in ast.walk(function)]
    stored = [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
    names = list(dict.fromkeys([node.arg for node in nodes if isinstance(node, ast.arg)] + stored))
    found: list[Change] = []
    for node in nodes:
        found += [*operator_changes(node), *call_changes(node), *value_changes(node, names)]
        found += statement_changes(node, names)
    if luck:
        luck.shuffle(found)
    return sorted(found, key=lambda change: change[0])


def apply(source: str, node: Any, new: str, *, bare: bool) -> str:
    """Return the source with ``new`` in the node's place, or behind the node if it starts a line of its own."""
    lines = source.encode().splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1])) + node.col_offset
    end = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    if new.startswith("\n"):
        start = end
    elif isinstance(node, ast.expr) and not bare:
        new = f"({new})"
    whole = b"".join(lines)
    return (whole[:start] + new.encode() + whole[end:]).decode()


def satisfies(source: str, function: str, examples: list[dict[str, Any]]) -> bool:
    """Tell whether the program passes every example, in a forked process with little time and memory."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0  # the child's own timers bound this wait
    passed = False
    try:
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, WALL_SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        names: dict[str, Any] = {"__name__": function}
        exec(compile(source, function, "exec"), names)
        passed = all(plain(names[function](*case["arguments"])) == case["expected"] for case in examples)
    finally:
        os._exit(0 if passed else 1)


def plain(value: Any) -> Any:
    """Return tuples and generators as lists."""
    if isinstance(value, (list, tuple)) or hasattr(value, "__next__"):
        return [plain(item) for item in value]
    return value


def repair(
    source: str, function: str, examples: list[dict[str, Any]], budget: int, luck: random.Random | None = None
) -> tuple[str, int, str]:
    """Return the program, the number of programs tried, and what was changed, if anything."""
    if satisfies(source, function, examples):
        return source, 0, "nothing: every example is satisfied already"
    seen = {meaning(source), ""}
    for _, node, new in changes(ast.parse(source), luck):
        candidate = apply(source, node, new, bare=False)
        if meaning(candidate) in seen:
            continue
        if len(seen) - 2 >= budget:
            break
        seen.add(meaning(candidate))
        if satisfies(candidate, function, examples):
            bare = apply(source, node, new, bare=True)
            best = bare if meaning(bare) == meaning(candidate) else candidate
            return best, len(seen) - 2, describe(source, best)
    return source, len(seen) - 2, "nothing: no change satisfies the examples"


def meaning(source: str) -> str:
    """Return what the program says without its layout; empty if it is not a program."""
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:
        return ""


def describe(source: str, fixed: str) -> str:
    """Return the first line that differs, and its number."""
    pairs = enumerate(zip(source.splitlines(), fixed.splitlines(), strict=False), start=1)
    return next((f"line {number} to `{new.strip()}`" for number, (old, new) in pairs if old != new), "the last line")


def main() -> None:
    """Repair the program in the workspace and say in one line what was done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=int, default=1000, help="how many changed programs to try at most")
    parser.add_argument("--seed", type=int, help="try changes that are equally plausible in an order of this number's")
    options = parser.parse_args()
    budget: int = options.budget
    luck = None if options.seed is None else random.Random(options.seed)
    workspace = Path(os.environ.get("EVALWRIGHT_WORKSPACE", "."))
    [program] = workspace.glob("*.py")
    examples = json.loads((workspace / "examples.json").read_text("utf-8"))
    source = program.read_text("utf-8")
    fixed, tries, change = repair(source, program.stem, examples, budget, luck)
    if fixed != source:
        program.write_text(fixed, "utf-8")
    print(f"{program.name}: changed {change} (tries: {tries})")


if __name__ == "__main__":
    main()
