#!/usr/bin/env python3
"""The agent that fixes: a failed verification with more patience, a finding of the reviewer by saying what was not said."""

import json
import os
from pathlib import Path

from repairing import FUNCTION, PROGRAM, commit, repaired

asked = json.loads(Path(os.environ["EVALWRIGHT_INPUT_FILE"]).read_text("utf-8"))
blocking = [one for one in asked.get("findings", []) if one["severity"] in ("P0", "P1")]
if blocking:
    head, line, rest = PROGRAM.read_text("utf-8").partition(f"def {FUNCTION}(arr, k):\n")
    text = f'{head}{line}    """Return arr in order; it holds whole numbers from 0 to k - 1."""\n{rest}'
    commit("Say what bucketsort sorts", text)
else:
    commit("Repair bucketsort, with patience", repaired(budget=200))
