"""A new run directory: built aside, complete with record and snapshot, locked, then renamed into place."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from evalwright import __version__
from evalwright.canonical import finite
from evalwright.coordinate.inputs import Inputs, left_out
from evalwright.coordinate.lease import Lease
from evalwright.coordinate.plan import Plan
from evalwright.coordinate.request import RunRequest
from evalwright.coordinate.variables import fingerprints
from evalwright.errors import RunConflict, UsageError
from evalwright.registry import Loaded
from evalwright.rundir import OUR_FORMAT, Layout, RunDirectory, check_id, disk_errors, write_document
from evalwright.workspace import copy_tree, remove_tree

__all__ = ["create_run", "created_timestamp", "default_run_id", "provenance_of", "run_record", "snapshot_suite"]


def default_run_id(layout: Layout, suite: str) -> str:
    """Return an unused id made from the real clock and the suite's name."""
    base = f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}-{suite}"
    names = [base, *(f"{base}-{number}" for number in range(2, 1000))]
    return next(check_id(name) for name in names if not (layout.runs / name).exists())


def created_timestamp(environment: Any) -> str:
    """Return the time to store: ``SOURCE_DATE_EPOCH`` where it is set, else now. Raises ``UsageError`` for nonsense."""
    epoch = environment.get("SOURCE_DATE_EPOCH")
    try:
        moment = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"SOURCE_DATE_EPOCH must be whole seconds since 1970, not {epoch!r}", hint="correct or unset it"
        ) from error
    return moment.isoformat().replace("+00:00", "Z")


def create_run(
    request: RunRequest, plan: Plan, inputs: Inputs, identity: dict[str, Any], run_id: str, experiment: str
) -> Lease:
    """Make the directory and return the lease on it. Raises ``RunConflict`` when the name was taken meanwhile."""
    layout = request.layout
    with disk_errors(layout.runs):
        layout.runs.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(dir=layout.runs, prefix=".new-"))
    run = RunDirectory(aside)
    lease: Lease | None = None
    try:
        lease = Lease.take(run, request.settings.reservation_ttl)
        with disk_errors(aside):
            run.cases.mkdir()
            snapshot_suite(plan, run.snapshot, layout)
            write_document(run.run_json, run_record(request, plan, inputs, identity, run_id, experiment))
        return _settle(lease, layout.run(run_id), replace=request.replace)
    except BaseException:
        remove_tree(aside, inside=layout.runs)
        if lease:
            lease.release()
        raise


def _settle(lease: Lease, target: RunDirectory, *, replace: bool) -> Lease:
    aside = lease.run.path
    if replace and target.path.exists():
        former = Path(tempfile.mkdtemp(dir=aside.parent, prefix=".old-"))
        os.rename(target.path, former / "run")
        remove_tree(former, inside=aside.parent)
    try:
        os.rename(aside, target.path)
    except OSError as error:
        lease.release()
        raise RunConflict(f"the run {target.path.name} exists already", hint="choose another --run-id") from error
    lease.moved(target)
    return lease


def snapshot_suite(plan: Plan, target: Path, layout: Layout) -> None:
    """Copy the suite, without results that lie in it.

    A native suite's fixtures are in the store; one in evalctl form stays readable as a whole.
    """
    skip = left_out(plan.suite, layout, fixtures=plan.suite.native)
    copy_tree(plan.suite.directory, target, skip=skip, special=True)
    if not (target / "suite.json").is_file():
        write_document(target / "suite.json", dict(plan.suite.document))


def run_record(
    request: RunRequest, plan: Plan, inputs: Inputs, identity: dict[str, Any], run_id: str, experiment: str
) -> dict[str, Any]:
    """Return ``run.json``."""
    settings = request.settings
    return {
        "format": OUR_FORMAT,
        "schema_version": 1,
        "run_id": run_id,
        "created_ts": created_timestamp(request.environment),
        "suite_identity": identity,
        "experiment": {"id": experiment, "arm": plan.arm, "repeat": plan.repeat},
        "execution": {
            "mode": "synchronous",
            "jobs": settings.jobs,
            "timeout_seconds": _number(plan.timeout_seconds),
            "sandbox": plan.tables["sandbox"]["use"],
            "queue": plan.queue,
        },
        "replayed_from": request.replayed_from,
        "suite_dir": finite(request.origin or str(plan.suite.directory)),
        "queue": None,
        "inputs": inputs.as_json(),
        "warnings": [dict(warning) for warning in plan.warnings],
        "resolved": {
            "tables": dict(plan.tables),
            "timeout": plan.timeout,
            "keep_workspace": plan.keep_workspace,
            "paranoid": plan.paranoid,
            "slots": settings.slots,
            "sandbox": settings.sandbox if settings.outranks_suite("sandbox") else None,
        },
        "provenance": provenance_of(
            request.argv,
            plan.plugins,
            git=git_commit(plan.suite.directory),
            env_names=plan.suite.agent.env_allowlist,
            env_digests=fingerprints(plan.suite.agent, os.environ),
        ),
    }


def provenance_of(
    argv: Sequence[str],
    plugins: Sequence[Loaded],
    *,
    git: str | None = None,
    env_names: Sequence[str] = (),
    env_digests: Mapping[str, str] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return what made a run: this program, the call, the plugins with their versions, variables without their values."""
    return {
        "tool": f"evalwright {__version__}",
        "python": sys.version.split()[0],
        "platform": _platform(),
        "argv": finite(list(argv)),
        "plugins": [loaded.provenance() for loaded in plugins],
        "git": git,
        "env_names": sorted(env_names),
        "env_digests": dict(env_digests),
    }


def _platform() -> str:
    """Return what ``platform.platform`` does on Linux, which asks another program for it and reads the interpreter's file."""
    system = os.uname()
    parts = [system.sysname, system.release, system.machine]
    with contextlib.suppress(ValueError, OSError):
        libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
        parts += ["with", libc.replace(" ", "")]
    return "-".join(parts)


def git_commit(directory: Path) -> str | None:
    """Return the commit that the repository around a directory has checked out, read from its files; else ``None``."""
    for parent in (directory.resolve(), *directory.resolve().parents):
        git = parent / ".git"
        if not (git / "HEAD").is_file():
            continue
        try:
            head = (git / "HEAD").read_text(encoding="utf-8").strip()
            name = head.removeprefix("ref: ")
            if name == head or (git / name).is_file():
                return head if name == head else (git / name).read_text(encoding="utf-8").strip()
            packed = (git / "packed-refs").read_text(encoding="utf-8").splitlines()
            return next((line.partition(" ")[0] for line in packed if line.endswith(f" {name}")), None)
        except (OSError, UnicodeDecodeError):
            return None
    return None


def _number(value: float) -> float:
    return int(value) if value == int(value) else value
