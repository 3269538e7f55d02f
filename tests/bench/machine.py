"""Where and when a row was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

__all__ = ["stamp"]

ROOT = Path(__file__).parents[2]


def stamp() -> dict[str, str]:
    """Return date, load average, machine and versions, as text."""
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {
        "date": now,
        "load": f"{os.getloadavg()[0]:.1f}",
        "processors": f"{os.cpu_count()} x {_processor()}",
        "kernel": f"{platform.system()} {platform.release()}",
        "Python": platform.python_version(),
        "evalwright": f"{version('evalwright')} at {_commit()}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _commit() -> str:
    call = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    try:
        return subprocess.run(call, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return "an unknown commit"
