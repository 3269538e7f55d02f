"""Three agents without a model, over the repair agent of this suite. The one that builds looks at a single example."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from agent import repair, satisfies

BUDGET = 100
[PROGRAM] = Path.cwd().glob("*.py")
EXAMPLES: list[dict[str, Any]] = json.loads(Path("examples.json").read_text("utf-8"))


def change(examples: list[dict[str, Any]]) -> None:
    """Repair the program as far as these examples go, and commit it if that changed anything."""
    source = PROGRAM.read_text("utf-8")
    text, tries, what = repair(source, PROGRAM.stem, examples, BUDGET)
    print(f"changed {what} (tries: {tries})")
    if text != source:
        PROGRAM.write_text(text, "utf-8")
        subprocess.run(["git", "commit", "--quiet", "--all", "--message", f"Change {what}"], check=True)


def review() -> None:
    """Report every example that the program does not satisfy."""
    source = PROGRAM.read_text("utf-8")
    wrong = [one for one in EXAMPLES if not satisfies(source, PROGRAM.stem, [one])]
    findings = [{"severity": "P1", "summary": f"not {one['expected']} for {one['arguments']}"} for one in wrong]
    Path(os.environ["EVALWRIGHT_OUTPUT_FILE"]).write_text(json.dumps({"findings": findings}), "utf-8")


if __name__ == "__main__":
    match sys.argv[1]:
        case "build":
            change(EXAMPLES[:1])
        case "fix":
            change(EXAMPLES)
        case _:
            review()
