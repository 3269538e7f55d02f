"""The peer in environments of its own, made once and kept in the user's cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["PEERS", "cache", "peer"]

PEERS = ("0.3.0", "1.1.0")
INSTALL_SECONDS = 300


def cache() -> Path:
    """Return the directory in which the bench keeps what outlives a run of it, outside of the tree."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "evalwright-bench")


def peer(version: str) -> Path:
    """Return the program of a version of evalctl, installed now when it never was.

    Raises ``subprocess.CalledProcessError`` when it cannot be installed.
    """
    place = cache() / f"evalctl-{version}"
    program = place / "bin" / "evalctl"
    if not program.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True, timeout=INSTALL_SECONDS)
        pip = [place / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", f"evalctl=={version}"]
        subprocess.run(pip, check=True, capture_output=True, timeout=INSTALL_SECONDS)
    return program
