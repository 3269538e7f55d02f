#!/usr/bin/env python3
"""The agent that reviews: what it finds goes into the output envelope, for people and for the fixer."""

import ast
import json
import os
from pathlib import Path

from repairing import FUNCTION, PROGRAM

findings: list[dict[str, object]] = []
for node in ast.parse(PROGRAM.read_text("utf-8")).body:
    if isinstance(node, ast.FunctionDef) and not ast.get_docstring(node):
        summary = f"{node.name}() does not say that it sorts only whole numbers from 0 to k - 1"
        findings.append({"severity": "P1", "summary": summary, "file": PROGRAM.name, "line": node.lineno})
findings.append({"severity": "P3", "summary": f"{FUNCTION} could be called counting sort", "file": PROGRAM.name})
Path(os.environ["EVALWRIGHT_OUTPUT_FILE"]).write_text(json.dumps({"findings": findings}), "utf-8")
