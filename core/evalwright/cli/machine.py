"""What ``doctor`` finds out about this machine and about what earlier runs left on it."""

from __future__ import annotations

import os
import resource
import shutil
from pathlib import Path
from typing import Any

from evalwright.cli.project import Project

__all__ = ["component", "disk", "limits", "processes", "runs", "workspaces"]

Record = dict[str, Any]
LOW_BYTES = 1 << 30
FILES_PER_TRIAL = 8
FILES_BESIDE = 64
MEMORY_DISKS = frozenset({"tmpfs", "ramfs"})


def component(state: str, details: str, **more: Any) -> Record:
    """Return one component's entry: ``healthy``, ``degraded``, ``unhealthy`` or ``not_configured``, and why."""
    return {"state": state, "details": details, **more}


def workspaces(project: Project) -> Record:
    """Say where trials will live, whether that is a memory disk, how much room there is, and what dead processes left there."""
    from evalwright.workspace import left_scratch

    chosen = project.settings.workspaces
    place = chosen or (Path("/dev/shm") if os.access("/dev/shm", os.W_OK) else None)
    if place is None:
        return component("degraded", "the temporary directory; a writable /dev/shm would be faster")
    if not place.is_dir():
        return component("unhealthy", f"{place} is not a directory")
    left = left_scratch(chosen)
    if left:
        shown = ", ".join(f"{path}{f' ({mounts} mounted)' if mounts else ''}" for path, mounts in left)
        action = {"command": "evalwright jobs prune --yes", "rationale": "remove what dead processes left"}
        return component("degraded", f"left by dead processes: {shown}", recommended_action=action)
    kind = "memory disk" if _file_system(place) in MEMORY_DISKS else "disk; a memory disk would be faster"
    free = shutil.disk_usage(place).free
    return component("healthy" if free else "unhealthy", f"{place} ({kind}), {_size(free)} free")


def disk(project: Project) -> Record:
    """Say how much room there is for runs."""
    place = next(path for path in (project.layout.runs.absolute(), *project.layout.runs.absolute().parents) if path.is_dir())
    free = shutil.disk_usage(place).free
    state = "healthy" if free >= LOW_BYTES else "degraded" if free else "unhealthy"
    return component(state, f"{_size(free)} free for runs at {place}")


def limits(project: Project) -> Record:
    """Say whether this process may open enough files for its width, and what inotify offers to agents."""
    width = project.settings.width
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = width * FILES_PER_TRIAL + FILES_BESIDE
    watches, instances = (_kernel(f"fs/inotify/{name}") for name in ("max_user_watches", "max_user_instances"))
    details = f"{soft} open files (at most {hard}), {watches} inotify watches, {instances} inotify instances"
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return component("healthy", details)
    command = f"ulimit -n {needed}"
    why = f"{width} trials at once need about {needed} open files"
    return component("degraded", f"{details}; {why}", recommended_action={"command": command, "rationale": why})


def processes(project: Project) -> Record:
    """Say whether commands of runs that nobody works on still live."""
    from evalwright.coordinate import lease_state
    from evalwright.processes import living_strays
    from evalwright.rundir import runs_in

    left = {
        run.path.name: count
        for run in runs_in(project.layout)
        if run.journal.is_file() and lease_state(run) != "held" and (count := living_strays(run.journal))
    }
    if not left:
        return component("healthy", "nothing that a dead run left is running")
    details = ", ".join(f"{count} of run {name}" for name, count in left.items())
    action = {"command": f"evalwright status {next(iter(left))}", "rationale": "looking at the run ends them"}
    return component("degraded", f"still running: {details}", recommended_action=action)


def runs(project: Project) -> Record:
    """Say how many runs there are in each state, and which were left behind with a stale lease."""
    from evalwright.coordinate import lease_state, state_of
    from evalwright.rundir import abandoned, runs_in

    states: dict[str, list[str]] = {}
    leases: list[str] = []
    for run in runs_in(project.layout):
        states.setdefault(state_of(run), []).append(run.path.name)
        if lease_state(run) == "stale":
            leases.append(run.path.name)
    unfinished = [run.path.name for run in abandoned(project.layout) if lease_state(run) != "held"]
    if not states and not unfinished:
        return component("not_configured", f"no runs in {project.layout.runs}")
    parts = [f"{len(names)} {state}" for state, names in sorted(states.items())]
    parts += [f"stale leases: {', '.join(leases)}"] if leases else []
    parts += [f"never begun: {', '.join(unfinished)}"] if unfinished else []
    entry = component("degraded" if "stale" in states or leases or unfinished else "healthy", ", ".join(parts))
    if "stale" in states:
        command = f"evalwright run --resume {states['stale'][-1]}"
        entry["recommended_action"] = {"command": command, "rationale": "finish the interrupted run"}
    elif leases or unfinished:
        entry["recommended_action"] = {"command": "evalwright jobs prune", "rationale": "see what can be removed"}
    return entry


def _file_system(place: Path) -> str:
    """Return the type of the file system at a place, as the kernel names it."""
    best, kind = "", ""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return kind
    for line in lines:
        _, escaped, name, *_ = line.split()
        point = escaped.encode().decode("unicode_escape")
        if len(point) >= len(best) and Path(point) in (place.resolve(), *place.resolve().parents):
            best, kind = point, name
    return kind


def _kernel(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text(encoding="utf-8").strip()
    except OSError:
        return "no"


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count // 2**20} MiB"
