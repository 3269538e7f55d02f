"""Measure where the time of a trial that does nothing goes, and put picture and table into ``docs/explanation``.

``python -m tests.bench.profile``
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.bench.measure import environment
from tests.bench.suites import write_suite

__all__ = ["main"]

TRIALS = 300
PAGE = Path(__file__).parents[2] / "docs/explanation/performance.md"
TABLE = re.compile(r"(?<=^```text\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)


def main() -> None:
    """Run a suite of trials that do nothing one after another, measured; write the picture, and its table into the page."""
    with tempfile.TemporaryDirectory(prefix="evalwright-profile-") as place:
        project = Path(place)
        write_suite(project, "idle", TRIALS)
        words = [sys.executable, "-m", "evalwright", "run", "idle", "--run-id", "idle", "--jobs", "1", "--profile"]
        subprocess.run(words, cwd=project, env=environment(), check=True, stdout=subprocess.DEVNULL)
        profile = project / "evals/runs/idle/profile.txt"
        table = profile.read_text(encoding="utf-8")
        shutil.copy(profile.with_suffix(".svg"), PAGE.with_suffix(".svg"))
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: table, text, count=1), encoding="utf-8", newline="")


if __name__ == "__main__":
    main()
