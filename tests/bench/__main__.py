"""Measure every row, or those that are named, and print a table and JSON."""

from __future__ import annotations

import json
import os
import platform
import sys

from tests.bench.rows import ROWS


def main() -> None:
    """Measure and print."""
    wanted = sys.argv[1:] or list(ROWS)
    results = {name: ROWS[name]() for name in wanted}
    load = os.getloadavg()[0]
    print(f"Python {platform.python_version()}, {os.cpu_count()} processors, load {load:.1f}\n")
    for name, rows in results.items():
        for label, row in rows.items():
            print(f"{name:<10} {label:<28} ours {row['ours']:9.2f}   floor {row['floor']:9.2f}   {row['ratio']:6.1f} x")
    print(json.dumps(results))


if __name__ == "__main__":
    main()
