"""The ledger under a failing disk, a second writer and ten thousand events: nothing is half written, nothing is read twice."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from evalwright import canonical
from evalwright.coordinate import RunOutcome, RunRequest, Stop, resume_run, run_suite
from evalwright.errors import DiskFull, RunBusy
from evalwright.hooks import Observers
from evalwright.hookspecs import hookimpl
from evalwright.ledger import Ledger, first_damage, read_events
from evalwright.settings import Settings
from evalwright.suite import load_suite
from evalwright.testing import ScriptedRunner, SmallProject, installed

if TYPE_CHECKING:
    from tests.conftest import Project

FEW, MANY = 1_000, 10_000

FILLING = """
import resource, sys
from pathlib import Path
from evalwright.ledger import Ledger, first_damage
path, limit = Path(sys.argv[1]), int(sys.argv[2])
with Ledger(path, run="r") as ledger:
    ledger.append("RUN_STARTED", {})
    ledger.commit()
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    for number in range(2, 5000):
        try:
            ledger.append("TRIAL_FINISHED", {"case": "c" * (number % 97), "number": number})
        except OSError as error:
            code = error.errno
            break
    else:
        sys.exit("the disk never became full")
    content = path.read_bytes()
    assert content.endswith(b"}\\n"), content[-80:]
    assert first_damage(path) is None
    assert len(content.splitlines()) == number - 1
    print(code, flush=True)
    if limit:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        Path(sys.argv[3]).unlink()
    ledger.append("RUN_RESUMED", {"after": number})
    ledger.commit()
assert first_damage(path) is None
"""
OPENING = """
import sys
from pathlib import Path
from evalwright.errors import RunBusy
from evalwright.ledger import Ledger
try:
    Ledger(Path(sys.argv[1]), run="r").close()
    print("opened")
except RunBusy:
    print("busy")
"""

LIMITED = """
import resource, sys
from evalwright.cli import main
resource.setrlimit(resource.RLIMIT_FSIZE, (12288, resource.RLIM_INFINITY))
sys.exit(main(sys.argv[1:]))
"""


class Watch:
    """Stands for the module ``os`` in the ledger: counts calls on the ledger's own file and fails some of them."""

    def __init__(self, ledger: Path) -> None:
        self.written: list[int] = []
        self.syncs = 0
        self.fail: Callable[[str, int], None] = allowed
        self.short = False
        self._ledger = str(ledger)

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, descriptor: int, data: bytes) -> int:
        if not self._watched(descriptor):
            return os.write(descriptor, data)
        self.written.append(len(data))
        self.fail("write", len(self.written))
        return os.write(descriptor, data[: len(data) // 2] if self.short else data)

    def fdatasync(self, descriptor: int) -> None:
        if self._watched(descriptor):
            self.syncs += 1
            self.fail("fdatasync", self.syncs)
        os.fdatasync(descriptor)

    def ftruncate(self, descriptor: int, size: int) -> None:
        if self._watched(descriptor):
            self.fail("ftruncate", size)
        os.ftruncate(descriptor, size)

    def replace(self, source: Path, target: Path) -> None:
        if str(target) == self._ledger.removesuffix(".jsonl") + ".head.json":
            self.fail("replace", self.syncs)
        os.replace(source, target)

    def _watched(self, descriptor: int) -> bool:
        return os.readlink(f"/proc/self/fd/{descriptor}") == self._ledger


def allowed(call: str, number: int) -> None:
    """Let a call through."""


def failing(call: str, number: int, code: int) -> Callable[[str, int], None]:
    """Return what fails a call from the numbered one on."""

    def fail(made: str, count: int) -> None:
        if made == call and count >= number:
            raise OSError(code, os.strerror(code))

    return fail


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.jsonl"


@pytest.fixture
def watch(path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch(path)
    monkeypatch.setattr("evalwright.ledger.os", watch)
    return watch


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Return a ledger of a thousand events and one of ten thousand."""
    found = {count: tmp_path_factory.mktemp("long") / "ledger.jsonl" for count in (FEW, MANY)}
    for count, path in found.items():
        with Ledger(path, run="r") as ledger:
            for number in range(count):
                ledger.append("TRIAL_FINISHED", {"case": f"c{number:05}"})
            ledger.commit()
    return found


class Effort:
    """Counts what the ledger module computes and reads: digests, and bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.computed = 0
        self.read = 0
        for name in ("digest_bytes", "digest_text"):
            monkeypatch.setattr(f"evalwright.ledger.{name}", self._counting(getattr(canonical, name)))
        effort, plain = self, Path.open

        class Counted(io.FileIO):
            def readinto(self, buffer: Any) -> int:
                count: int = super().readinto(buffer)
                effort.read += count
                return count

        def counting_open(path: Path, mode: str = "r", *args: Any, **options: Any) -> Any:
            return io.BufferedReader(Counted(path)) if mode == "rb" else plain(path, mode, *args, **options)

        monkeypatch.setattr(Path, "open", counting_open)

    def _counting(self, digest: Callable[[Any], str]) -> Callable[[Any], str]:
        def counting(value: Any) -> str:
            self.computed += 1
            return digest(value)

        return counting

    def of(self, action: Callable[[], object]) -> tuple[int, int]:
        self.computed = self.read = 0
        action()
        return self.computed, self.read


def opened(path: Path) -> None:
    Ledger(path, run="r").close()


@pytest.mark.parametrize("action", [opened, read_events, first_damage], ids=["open", "read", "verify"])
def test_effort_of_opening_grows_with_the_number_of_events_and_no_faster(
    long: dict[int, Path], monkeypatch: pytest.MonkeyPatch, action: Callable[[Path], object]
) -> None:
    effort = Effort(monkeypatch)

    computed, read = effort.of(lambda: action(long[FEW]))
    more_computed, more_read = effort.of(lambda: action(long[MANY]))

    assert computed >= FEW
    assert more_computed <= 12 * computed
    assert read > FEW * 100
    assert more_read <= 12 * read


def test_append_reads_nothing_and_writes_one_line_however_long_the_ledger_is(
    long: dict[int, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    effort = Effort(monkeypatch)
    costs: list[tuple[int, int]] = []
    for count in (FEW, MANY):
        path = Path(shutil.copy(long[count], tmp_path / "ledger.jsonl"))
        before = path.stat().st_size
        watch = Watch(path)
        with Ledger(path, run="r") as ledger:
            with monkeypatch.context() as patched:
                patched.setattr("evalwright.ledger.os", watch)
                for name in ("read", "pread", "readv", "lseek"):
                    patched.setattr(os, name, forbidden)
                costs.append(effort.of(lambda: ledger.append("RUN_RESUMED", {"pending": 1})))
            added = path.read_bytes()[before:]
        assert watch.written == [len(added)]
        assert (added.count(b"\n"), added[-1:]) == (1, b"\n")

    assert costs[0] == costs[1]
    assert costs[0][1] == 0


def forbidden(*_: object) -> bytes:
    raise AssertionError("an append read something")


def test_another_process_cannot_write_beside_this_one(path: Path) -> None:
    def opened_elsewhere() -> str:
        done = subprocess.run([sys.executable, "-c", OPENING, str(path)], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    with Ledger(path, run="r") as ledger:
        ledger.append("RUN_STARTED", {})
        assert opened_elsewhere() == "busy"
    assert opened_elsewhere() == "opened"


def test_another_thread_gets_the_ledger_when_the_first_one_is_done_and_not_before(path: Path) -> None:
    first = Ledger(path, run="r")
    got: list[int] = []

    def wait_for_it() -> None:
        with pytest.raises(RunBusy):
            Ledger(path, run="r")
        asked.set()
        with Ledger(path, run="r", patience=20) as ledger:
            got.append(ledger.append("RUN_RESUMED", {})["seq"])

    asked = threading.Event()
    thread = threading.Thread(target=wait_for_it)
    thread.start()
    assert asked.wait(20)
    first.append("RUN_STARTED", {})
    first.close()
    thread.join(20)

    assert got == [2]
    assert first_damage(path) is None


def test_child_that_a_writer_started_does_not_hold_its_ledger(path: Path) -> None:
    ledger = Ledger(path, run="r")
    child = subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    ledger.close()
    try:
        opened(path)
    finally:
        child.communicate()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EFBIG], ids=errno.errorcode.get)
def test_append_that_fails_leaves_the_ledger_as_it_was_and_the_next_one_continues(path: Path, watch: Watch, code: int) -> None:
    with Ledger(path, run="r") as ledger:
        ledger.append("RUN_STARTED", {})
        before = path.read_bytes()
        watch.fail = failing("write", 1, code)
        with pytest.raises(OSError, match=os.strerror(code)):
            ledger.append("TRIAL_FINISHED", {"case": "lost"})
        assert path.read_bytes() == before
        watch.fail = allowed
        assert ledger.append("TRIAL_FINISHED", {"case": "kept"})["seq"] == 2

    assert [event["data"] for event in read_events(path)] == [{}, {"case": "kept"}]


def test_line_that_was_written_in_part_is_taken_back_before_anything_is_joined_to_it(path: Path, watch: Watch) -> None:
    with Ledger(path, run="r") as ledger:
        ledger.append("RUN_STARTED", {})
        before = path.read_bytes()
        watch.short = True
        with pytest.raises(OSError, match="space"):
            ledger.append("TRIAL_FINISHED", {"case": "half"})
        assert path.read_bytes() == before
        watch.short = False
        ledger.append("TRIAL_FINISHED", {"case": "whole"})

    assert first_damage(path) is None
    assert [event["seq"] for event in read_events(path)] == [1, 2]


def test_half_line_that_cannot_be_taken_back_stops_the_writer_and_is_repaired_by_the_next(path: Path, watch: Watch) -> None:
    with Ledger(path, run="r") as ledger:
        ledger.append("RUN_STARTED", {})
        watch.short, watch.fail = True, failing("ftruncate", 0, errno.EIO)
        with pytest.raises(OSError):  # noqa: PT011  # which of the two errors is told does not matter
            ledger.append("TRIAL_FINISHED", {"case": "half"})
        watch.short, watch.fail = False, allowed
        with pytest.raises(RunBusy):
            ledger.append("TRIAL_FINISHED", {"case": "joined"})

    with Ledger(path, run="r") as later:
        assert later.repaired
        later.append("TRIAL_FINISHED", {"case": "whole"})
    assert [event["type"] for event in read_events(path)] == ["RUN_STARTED", "LEDGER_TAIL_REPAIRED", "TRIAL_FINISHED"]


def test_file_that_may_not_grow_ends_with_a_whole_line_and_goes_on_when_it_may(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FILLING, str(path), "20000"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) in {errno.EFBIG, errno.ENOSPC}
    assert read_events(path)[-1]["type"] == "RUN_RESUMED"


@pytest.fixture
def small_disk(tmp_path: Path, require: Callable[[str], None]) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """Return what runs shell text in a mount namespace where ``$1`` is a disk of 256 KiB."""
    require("unshare")
    mount = 'mkdir -p "$1"; mount -t tmpfs -o size=256k tmpfs "$1" || exit 99\n'

    def run(script: str) -> subprocess.CompletedProcess[str]:
        words = ["unshare", "-m", "--propagation", "private", "/bin/sh", "-c", mount + script, "sh", str(tmp_path / "disk")]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        if done.returncode == 99 or "unshare failed" in done.stderr:
            message = f"nobody but root can mount a small disk: {done.stderr.strip()}"
            if os.environ.get("EVALWRIGHT_REQUIRE_ALL") == "1":
                pytest.fail(message)
            pytest.skip(message)
        return done

    return run


def test_full_disk_ends_the_ledger_with_a_whole_line_and_it_goes_on_after_space_was_freed(
    tmp_path: Path, small_disk: Callable[[str], subprocess.CompletedProcess[str]]
) -> None:
    (tmp_path / "fill.py").write_text(FILLING)
    script = f'head -c 200000 /dev/zero > "$1/ballast"\n{sys.executable} {tmp_path}/fill.py "$1/l.jsonl" 0 "$1/ballast"\n'

    done = small_disk(f'{script} c=$?; cp "$1/l.jsonl" {tmp_path}/copy.jsonl; exit $c')

    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == errno.ENOSPC
    assert read_events(tmp_path / "copy.jsonl")[-1]["type"] == "RUN_RESUMED"


class Heard:
    """An observer that notes which trials it was told of."""

    def __init__(self) -> None:
        self.finished: list[str] = []

    @hookimpl
    def trial_finished(self, case: str) -> None:
        self.finished.append(case)


class Bench:
    """A run of three trials one after another, in this process, with a ledger that can be made to fail."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        scripts = {name: (name, name) for name in ("a", "b", "c")}
        self.layout = SmallProject(place, scripts, runner={"use": "scripted-answer"}).layout
        self.run_directory = self.layout.run("r")
        self.heard = Heard()
        self.watch = Watch(self.run_directory.ledger)
        monkeypatch.setattr("evalwright.ledger.os", self.watch)
        monkeypatch.setattr("evalwright.ledger.HEAD_SECONDS", -1.0)

    def run(self) -> RunOutcome:
        request = RunRequest(
            checked=load_suite(self.layout.suites / "demo"),
            layout=self.layout,
            settings=Settings(evals=self.layout.evals, jobs=1),
            run_id="r",
        )
        return run_suite(request, stop=Stop(), observers=self.observers, warn=ignored)

    def resume(self) -> RunOutcome:
        settings = Settings(evals=self.layout.evals, jobs=1)
        return resume_run(
            self.run_directory, self.layout, settings, stop=Stop(), observers=self.observers, warn=ignored, environment={}
        )

    def observers(self, complain: Callable[[str], None]) -> Observers:
        return Observers([("heard", self.heard)], complain)

    def finished(self) -> list[str]:
        events = read_events(self.run_directory.ledger)
        return [event["data"]["case"] for event in events if event["type"] == "TRIAL_FINISHED"]


def ignored(code: str, message: str) -> None:
    """Take a warning and do nothing."""


@pytest.fixture(scope="module", autouse=True)
def runner() -> Iterator[None]:
    with installed("runner", "scripted-answer", ScriptedRunner, distribution="test-scripted"):
        yield


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("call", "number", "code"),
    [
        ("write", 1, errno.EROFS),
        ("write", 2, errno.ENOSPC),
        ("write", 3, errno.EDQUOT),
        ("write", 5, errno.EIO),
        ("write", 8, errno.EFBIG),
        ("fdatasync", 1, errno.EIO),
        ("fdatasync", 3, errno.EIO),
        ("fdatasync", 5, errno.ENOSPC),
        ("replace", 2, errno.ENOSPC),
    ],
    ids=str,
)
def test_run_whose_ledger_cannot_be_written_is_stopped_keeps_its_state_and_is_finished_later(
    bench: Bench, call: str, number: int, code: int
) -> None:
    bench.watch.fail = failing(call, number, code)
    with pytest.raises(DiskFull) as caught:
        bench.run()

    assert (caught.value.code, caught.value.exit_code) == ("E_DISK_FULL", 4)
    assert str(bench.run_directory.ledger) in caught.value.message
    assert not bench.run_directory.manifest.exists()
    assert first_damage(bench.run_directory.ledger) is None
    told = list(bench.heard.finished)
    assert set(told) <= set(bench.finished()), "an observer heard of a trial that is not in the ledger"
    bench.watch.fail = allowed

    outcome = bench.resume()

    assert [case.status for case in outcome.report.cases] == ["pass"] * 3
    assert sorted(bench.finished()) == ["a", "b", "c"]
    assert first_damage(bench.run_directory.ledger) is None


@pytest.mark.parametrize("call", ["fdatasync", "replace"])
def test_trial_whose_result_could_not_be_made_durable_is_told_to_nobody(bench: Bench, call: str) -> None:
    bench.watch.fail = failing(call, 3, errno.EIO)

    with pytest.raises(DiskFull):
        bench.run()

    assert bench.finished() == ["a", "b"]
    assert bench.heard.finished == ["a"]


def test_run_whose_ledger_reached_the_size_limit_of_its_process_is_finished_without_it(project: Project) -> None:
    cases = [{"id": f"c{number:02}", "expect": {"exact": ""}} for number in range(30)]
    project.suite(runner={"argv": ["true"]}, cases=cases)
    words = ("run", "demo", "--run-id", "r", "--jobs", "1", "--json")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("EVAL", "SOURCE_DATE"))}
    limited = subprocess.run(
        [sys.executable, "-B", "-c", LIMITED, *words],
        cwd=project.path,
        env=environment,
        capture_output=True,
        timeout=120,
    )
    ledger = project.run_dir("r") / "ledger.jsonl"

    assert limited.returncode == 4, limited.stderr
    assert json.loads(limited.stdout)["errors"][0]["code"] == "E_DISK_FULL"
    assert first_damage(ledger) is None
    assert any(event["type"] == "TRIAL_FINISHED" for event in read_events(ledger))
    resumed = project.call("run", "--resume", "r", "--json")
    assert resumed.data["run"]["status_counts"]["pass"] == 30
