#!/usr/bin/env python3
"""The step that verifies: every example call, no agent. Its exit status is its verdict."""

import json
import sys
from pathlib import Path

from repairing import FUNCTION, PROGRAM

names: dict[str, object] = {"__name__": FUNCTION}
exec(compile(PROGRAM.read_text("utf-8"), FUNCTION, "exec"), names)
wrong = 0
for case in json.loads(Path("examples.json").read_text("utf-8")):
    try:
        found = names[FUNCTION](*case["arguments"])  # type: ignore[operator]  # the program's own function
    except Exception as error:
        found = repr(error)
    if found != case["expected"]:
        wrong += 1
        print(f"{FUNCTION}({', '.join(map(repr, case['arguments']))}) gives {found}, not {case['expected']}")
sys.exit(1 if wrong else 0)
