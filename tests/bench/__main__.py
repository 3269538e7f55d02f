"""Measure every row, or those that are named, and print a table and JSON."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.bench.bench import Absent, Bench
from tests.bench.lines import Row
from tests.bench.machine import ROOT, stamp
from tests.bench.page import as_page, as_text
from tests.bench.peers import cache
from tests.bench.records import keep, kept
from tests.bench.rows.scale import SIZES
from tests.bench.table import ROWS, Measure

PAGE = ROOT / "docs" / "reference" / "benchmarks.md"
MISSED, BROKEN = 6, 3


def main() -> int:
    """Measure, print and keep; or write the page. Return 6 when asked to check and a target is missed, 3 for a broken row."""
    options = _options()
    record = cache() / "rows.json"
    if options.page:
        PAGE.write_text(as_page(kept(record), {name: what for name, (what, _) in ROWS.items()}), encoding="utf-8")
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-", dir=options.scratch) as scratch:
        bench = Bench(Path(scratch), quick=options.quick, largest=options.largest)
        rows: list[Row] = []
        for name in options.rows or ROWS:
            rows.append(measured(bench, name, *ROWS[name]))
            if not (options.quick or rows[-1].broken):
                keep(record, rows[-1])
    print(json.dumps([row.as_json() for row in rows]))
    return verdict(rows) if options.check else 0


def verdict(rows: list[Row]) -> int:
    """Name each row that misses a target, or broke, on stderr; return the exit status."""
    for row in rows:
        for line in row.missed:
            wanted = ", ".join(target.words(line.unit) for target in line.targets if target.held_by(line.sides) is False)
            print(f"{row.id} misses its target: {line.label} is not {wanted}", file=sys.stderr)
        if row.broken:
            print(f"{row.id} broke: {row.absent}", file=sys.stderr)
    return MISSED if any(row.missed for row in rows) else BROKEN if any(row.broken for row in rows) else 0


def measured(bench: Bench, name: str, what: str, measure: Measure) -> Row:
    """Measure one row and print it. What is missing, or breaks, becomes a row that says so, and the others go on."""
    begun = stamp()
    try:
        row = Row(id=name, what=what, lines=list(measure(bench)))
    except Absent as error:
        row = Row(id=name, what=what, absent=str(error))
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        row = Row(id=name, what=what, absent=str(error), broken=True)
    row = replace(row, stamp=begun | {"load": f"{begun['load']} to {stamp()['load']}"})
    print(as_text(row), flush=True)
    return row


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"one of {', '.join(ROWS)} (default: all)")
    parser.add_argument("--quick", action="store_true", help="small counts: to try the bench, not to believe; nothing is kept")
    parser.add_argument("--check", action="store_true", help="exit 6 when a target is missed")
    parser.add_argument("--page", action="store_true", help="measure nothing; write the page from what is kept")
    parser.add_argument(
        "--scratch", type=Path, help="where runs are made (default: the temporary directory); not a memory disk"
    )
    parser.add_argument("--largest", type=int, default=SIZES[-1], choices=SIZES, help="trials of the curve's largest run")
    options = parser.parse_args()
    unknown = [row for row in options.rows if row not in ROWS]
    if unknown:
        parser.error(f"no row {', '.join(unknown)}; there are {', '.join(ROWS)}")
    return options


if __name__ == "__main__":
    sys.exit(main())
