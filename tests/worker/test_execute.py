"""One trial from spec to sealed bundle, as a queue's worker calls it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from evalwright.errors import EvalwrightError
from evalwright.interfaces import Beat, Job
from evalwright.model import TrialSpec
from evalwright.rundir import changed_artifacts, sealed_digests
from evalwright.store import DirectoryStore
from evalwright.testing import SmallProject, in_threads, soon, within
from evalwright.worker import execute, shut_down, write_failure

EXPECTED = {"changes": "pass", "fails": "fail", "passes": "pass", "unicode": "pass", "wrong": "fail"}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[SmallProject]:
    yield SmallProject(tmp_path)
    shut_down()


def go_on() -> Literal["continue", "cancel"]:
    return "continue"


def carried_out(job: Job, beat: Beat = go_on, **spec: Any) -> dict[str, Any]:
    data = replace(TrialSpec.from_bytes(job.spec), **spec).to_bytes()
    result: dict[str, Any] = json.loads(execute(data, store=None, bundle=job.bundle, beat=beat))
    return result


def test_each_trial_has_its_status_and_a_seal_that_covers_every_file(project: SmallProject) -> None:
    for job in project.jobs():
        result = carried_out(job)

        assert job.bundle is not None
        digests = sealed_digests(job.bundle)
        assert result["status"] == EXPECTED[result["case_id"]]
        assert digests is not None
        assert result["digests"] == digests
        assert changed_artifacts(job.bundle, digests) == []
        on_disk = {str(path.relative_to(job.bundle)) for path in job.bundle.rglob("*") if path.is_file()}
        assert on_disk == {*digests, "bundle.json"}


def test_two_executions_of_one_spec_agree_in_every_deterministic_artifact(project: SmallProject) -> None:
    names = ("output.txt", "score.json", "workspace-after.json", "workspace.diff", "input.json")
    (one, *_), (two, *_) = project.jobs(run_id="one"), project.jobs(run_id="one")
    first = carried_out(one)
    second = carried_out(replace(two, bundle=project.place / "again"))

    assert {name: first["digests"][name] for name in names} == {name: second["digests"][name] for name in names}


def test_manifest_of_a_large_fixture_is_one_file_for_the_trials_of_a_run_and_another_in_other_runs(
    project: SmallProject,
) -> None:
    for number in range(220):
        (project.suite / "fixtures" / "w" / f"f{number}").write_text(f"{number}\n")
    files: dict[str, set[int]] = {}
    for run_id in ("one", "two"):
        for job in project.jobs(run_id=run_id):
            assert job.bundle is not None
            result = carried_out(job)
            assert changed_artifacts(job.bundle, result["digests"]) == []
            files.setdefault(run_id, set()).add((job.bundle / "workspace-before.json").stat().st_ino)
            same = (job.bundle / "workspace-after.json").samefile(job.bundle / "workspace-before.json")
            assert same is (result["case_id"] != "changes")

    assert [len(inodes) for inodes in files.values()] == [1, 1]
    assert files["one"].isdisjoint(files["two"])


def test_bundle_travels_through_the_store_when_there_is_no_directory_for_it(project: SmallProject) -> None:
    job = replace(project.jobs()[0], bundle=None)

    result = carried_out(job)

    names = {entry.path for entry in DirectoryStore(project.layout.store).tree(result["bundle"]).entries}
    assert {"bundle.json", "output.txt", "score.json"} <= names


def test_trials_in_many_threads_of_one_process_do_not_disturb_each_other(project: SmallProject) -> None:
    jobs = [job for number in range(4) for job in project.jobs(run_id=f"t{number}")]

    results = in_threads(lambda number: carried_out(jobs[number]), threads=len(jobs))

    assert [result["status"] for result in results] == [EXPECTED[result["case_id"]] for result in results]


def test_canceled_trial_ends_soon_and_leaves_no_sealed_bundle(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    project = SmallProject(tmp_path, {"slow": (f"touch {marker}; trap '' TERM; sleep 60; sleep 60", "x")})
    (job,) = project.jobs()
    wish = threading.Event()
    threading.Thread(target=lambda: (soon(marker.exists, 10), wish.set())).start()
    try:
        result = within(10, lambda: carried_out(job, lambda: "cancel" if wish.is_set() else "continue"), "the trial")
    finally:
        shut_down()

    assert result["status"] == "canceled"
    assert job.bundle is not None
    assert not (job.bundle / "bundle.json").exists()


def test_spec_without_a_store_is_an_error_with_a_cure(project: SmallProject) -> None:
    with pytest.raises(EvalwrightError) as caught:
        carried_out(project.jobs()[0], store=None)

    assert caught.value.hint


def test_spec_of_a_newer_version_is_refused(project: SmallProject) -> None:
    record = json.loads(project.jobs()[0].spec) | {"from_the_future": 1}

    with pytest.raises(TypeError, match="from_the_future"):
        execute(json.dumps(record).encode(), store=None, bundle=None, beat=go_on)


def test_spec_holds_no_expectation_and_no_value_of_an_allowed_variable(project: SmallProject) -> None:
    for job in project.jobs():
        spec = TrialSpec.from_bytes(job.spec)

        assert not {"expect", "hidden", "gold", "human"} & set(spec.case)
        assert spec.case["id"] != spec.case_id


def test_failure_record_has_everything_that_a_report_reads(project: SmallProject) -> None:
    job = project.jobs()[0]
    assert job.bundle is not None

    result = write_failure(
        TrialSpec.from_bytes(job.spec), job.bundle, "the worker died \ud800", store=DirectoryStore(project.layout.store)
    )

    assert (result["status"], result["fault"]) == ("error", "harness")
    digests = sealed_digests(job.bundle)
    assert digests is not None
    assert changed_artifacts(job.bundle, digests) == []
    json.dumps(result, ensure_ascii=False).encode()
