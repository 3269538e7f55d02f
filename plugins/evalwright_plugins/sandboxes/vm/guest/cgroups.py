"""The guest's cgroups: one for each command, so that it is limited, counted and killed as one."""

from __future__ import annotations

import contextlib
import os

CGROUPS = "/sys/fs/cgroup"
COMMANDS = f"{CGROUPS}/commands"
SYSTEM = f"{CGROUPS}/system"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LIMITS = {"memory_bytes": "memory.max", "processes": "pids.max"}


def make(place: str, limits: dict[str, int]) -> None:
    """Make a command's cgroup with its limits."""
    os.mkdir(place)
    write(f"{place}/memory.oom.group", "1")
    for name, file in LIMITS.items():
        if name in limits:
            write(f"{place}/{file}", str(limits[name]))


def prepare() -> None:
    """Make the parents of all commands' cgroups, and this process one that is neither starved nor killed for memory."""
    os.environ["PATH"] = PATH
    for place in (COMMANDS, SYSTEM):
        os.mkdir(place)
        write(f"{place}/cgroup.subtree_control", "+memory +pids +cpu")
    write("/proc/self/oom_score_adj", "-1000")
    os.setpriority(os.PRIO_PROCESS, 0, -20)


def kill(place: str) -> None:
    """Kill everything in a cgroup and below it, at once."""
    with contextlib.suppress(OSError):
        write(f"{place}/cgroup.kill", "1")


def populated(place: str) -> bool:
    """Tell whether anything lives in a cgroup."""
    return "populated 1" in text_of(f"{place}/cgroup.events")


def members(place: str) -> list[int]:
    """Return the processes in a cgroup."""
    return [int(word) for word in text_of(f"{place}/cgroup.procs").split()]


def events(place: str) -> dict[str, int]:
    """Return how often the kernel killed for memory and refused a process."""
    found: dict[str, int] = {}
    for name, file, key in (("oom", "memory.events", "oom_kill"), ("pids", "pids.events", "max")):
        counts = dict(line.split() for line in text_of(f"{place}/{file}").splitlines())
        found[name] = int(counts.get(key, 0))
    return found


def processor_seconds(place: str) -> float:
    """Return the processor time that a cgroup has used."""
    counts = dict(line.split() for line in text_of(f"{place}/cpu.stat").splitlines())
    return int(counts.get("usage_usec", 0)) / 1e6


def text_of(path: str) -> str:
    """Return a small file's text, nothing when it is gone."""
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def write(path: str, text: str) -> None:
    """Write to a file of the kernel."""
    with open(path, "w") as file:
        file.write(text)
