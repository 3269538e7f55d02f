"""Full disks: the state is kept, the exit status says try again, and after space is freed the run is finished."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.conftest import shortened

if TYPE_CHECKING:
    from tests.conftest import Project

Shell = Callable[..., dict[str, Any]]

SMALL_DISK = """
set -e
mount -t tmpfs -o size={size} tmpfs "$1/disk"
{script}
"""


@pytest.fixture
def on_small_disk(project: Project, require: Callable[[str], None]) -> Callable[..., list[tuple[int, dict[str, Any]]]]:
    """Return what runs shell text in a mount namespace where ``disk`` is a small disk; it calls ``tool WORDS``.

    Each call's exit status and envelope come back; everything on the disk is gone afterwards.
    """
    require("unshare")
    if os.getuid() != 0:
        pytest.skip("only root can mount a small disk")
    (project.path / "disk").mkdir()

    def run(script: str, size: str = "2m") -> list[tuple[int, dict[str, Any]]]:
        out = project.path / "out"
        out.mkdir(exist_ok=True)
        tool = (
            f'tool() {{ n=$((n+1)); {sys.executable} -m evalwright "$@" --json > {out}/$n 2>{out}/$n.err && c=0 || c=$?; '
            f"echo $c > {out}/$n.code; }}; n=0\n"
        )
        text = SMALL_DISK.format(size=size, script=tool + f'cd "{project.path}"\n' + script)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("EVAL", "SOURCE_DATE"))}
        done = subprocess.run(
            ["unshare", "-m", "--propagation", "private", "/bin/sh", "-c", text, "sh", str(project.path)],
            env=environment | {"EVALWRIGHT_RUNS": str(project.path / "disk/runs")},
            capture_output=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr.decode()
        calls = sorted((path for path in out.iterdir() if path.suffix == ".code"), key=lambda path: int(path.stem))
        return [(int(path.read_text()), json.loads(path.with_suffix("").read_bytes() or b"{}")) for path in calls]

    return run


def test_full_disk_stops_the_run_keeps_what_is_done_and_lets_it_resume(
    project: Project, shell_runner: Shell, on_small_disk: Callable[..., list[tuple[int, dict[str, Any]]]]
) -> None:
    cases = [{"id": f"c{number}", "expect": {"exit_code": 0}} for number in range(6)]
    line = "head -c 200000 /dev/zero | tr '\\0' x"
    project.suite(runner=shell_runner(line), scorers=[{"use": "exit-code"}], cases=cases)

    first, second = on_small_disk(
        "head -c 900000 /dev/zero > disk/ballast\n"
        "tool run demo --run-id r --jobs 1\n"
        "cp disk/runs/r/ledger.jsonl out/ledger; test -d disk/runs/r/suite-snapshot\n"
        "rm disk/ballast; mount -o remount,size=20m disk\n"
        "tool run --resume r\n"
    )

    assert first[0] == 4, first[1]
    assert first[1]["errors"][0]["code"] == "E_DISK_FULL"
    kept = (project.path / "out" / "ledger").read_text().count("TRIAL_FINISHED")
    assert kept >= 1
    assert second[0] == 0, second[1]
    assert second[1]["data"]["run"]["status_counts"]["pass"] == 6


@pytest.mark.parametrize("free", shortened([0, 8, 20, 28, 44, 76, 108], [0, 28, 76]))
def test_wherever_the_disk_becomes_full_the_answer_is_disk_full_and_a_resume_or_rerun_finishes(
    project: Project, shell_runner: Shell, on_small_disk: Callable[..., list[tuple[int, dict[str, Any]]]], free: int
) -> None:
    cases = [{"id": f"c{n}", "expect": {"exact": "x"}} for n in range(2)]
    project.suite(runner=shell_runner("printf x; echo y > new"), cases=cases)

    full, again = on_small_disk(
        "mkdir disk/runs; dd if=/dev/zero of=disk/ballast bs=4096 2>/dev/null || true\n"
        f"truncate -s $(( $(stat -c %s disk/ballast) - {free} * 1024 )) disk/ballast\n"
        "tool run demo --run-id r --jobs 1\n"
        "rm disk/ballast\n"
        "if [ -d disk/runs/r ]; then tool run --resume r; else tool run demo --run-id r; fi\n"
    )

    assert full[0] in {0, 4}, full
    if full[0] == 4:
        assert full[1]["errors"][0]["code"] == "E_DISK_FULL", full
    assert again[0] == 0, again
    assert again[1]["data"]["run"]["status_counts"]["pass"] == 2, again


def test_workspaces_on_a_full_disk_stop_the_run_instead_of_failing_its_cases(
    project: Project, shell_runner: Shell, on_small_disk: Callable[..., list[tuple[int, dict[str, Any]]]]
) -> None:
    cases = [{"id": f"c{n}", "expect": {"exact": ""}} for n in range(2)]
    project.suite(runner=shell_runner("true"), cases=cases, files={"fixtures/w/big": b"x" * 3_000_000})

    first, second = on_small_disk(
        f"mkdir disk/scratch; export EVALWRIGHT_WORKSPACES={project.path}/disk/scratch EVALWRIGHT_RUNS={project.path}/runs\n"
        "tool run demo --run-id r --jobs 1\n"
        "mount -o remount,size=20m disk\n"
        "tool run --resume r\n"
    )

    assert first[0] == 4, first[1]
    assert first[1]["errors"][0]["code"] == "E_DISK_FULL"
    assert second[0] == 0, second[1]
    assert second[1]["data"]["run"]["status_counts"]["pass"] == 2


def test_space_of_a_trial_is_released_before_the_next_one(
    project: Project, shell_runner: Shell, on_small_disk: Callable[..., list[tuple[int, dict[str, Any]]]]
) -> None:
    cases = [{"id": f"c{n}", "expect": {"exit_code": 0}} for n in range(6)]
    project.suite(runner=shell_runner("head -c 1200000 /dev/zero > big"), scorers=[{"use": "exit-code"}], cases=cases)

    (only,) = on_small_disk(
        f"mkdir disk/scratch; export EVALWRIGHT_WORKSPACES={project.path}/disk/scratch EVALWRIGHT_RUNS={project.path}/runs\n"
        "tool run demo --run-id r --jobs 1\n"
    )

    assert only[0] == 0, only[1]
    assert only[1]["data"]["run"]["status_counts"]["pass"] == 6


def test_store_that_cannot_be_written_is_disk_full_before_the_first_case(
    project: Project, shell_runner: Shell, on_small_disk: Callable[..., list[tuple[int, dict[str, Any]]]]
) -> None:
    project.suite(
        runner=shell_runner("true"), cases=[{"id": "a", "expect": {"exact": ""}}], files={"fixtures/w/big": b"x" * 3_000_000}
    )

    (only,) = on_small_disk(
        "cp -r evals disk/evals; export EVALWRIGHT_EVALS=disk/evals; unset EVALWRIGHT_RUNS\ntool run demo --run-id r\n",
        size="4m",
    )

    assert only[0] == 4, only[1]
    assert only[1]["errors"][0]["code"] == "E_DISK_FULL"
