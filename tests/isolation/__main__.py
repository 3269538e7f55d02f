"""Run every program in every sandbox and write the table of ``docs/explanation/isolation.md``."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.isolation.table import PAGE, TABLES, observed, replaced, started


def main() -> None:
    """Build the image of the virtual machines, then write the table."""
    subprocess.run([sys.executable, "-m", "evalwright", "vm", "build", "--root", "busybox"], check=True)
    with tempfile.TemporaryDirectory(prefix="evalwright-hostile-") as name:
        ground = Path(name)
        ground.chmod(0o711)
        rows = observed({name: started(name) for name in TABLES}, ground)
    PAGE.write_text(replaced(PAGE.read_text(encoding="utf-8"), rows), encoding="utf-8")


if __name__ == "__main__":
    main()
