"""What the agents of this example share: the repair agent beside them, and how a change is committed."""

import json
import subprocess
from pathlib import Path

from agent import repair  # examples/quixbugs/agent.py, copied beside this file

FUNCTION = "bucketsort"
PROGRAM = Path(f"{FUNCTION}.py")


def repaired(budget: int) -> str:
    """Return the program as the repair agent leaves it after so many tries at most."""
    examples = json.loads(Path("examples.json").read_text("utf-8"))
    text, tries, change = repair(PROGRAM.read_text("utf-8"), FUNCTION, examples, budget)
    print(f"changed {change} (tries: {tries})")
    return text


def commit(message: str, text: str) -> None:
    """Write the program and commit it, if that changes anything: a candidate is a commit."""
    if text != PROGRAM.read_text("utf-8"):
        PROGRAM.write_text(text, "utf-8")
        subprocess.run(["git", "commit", "--quiet", "--all", "--message", message], check=True)
