"""The parts of the sandbox ``vm`` that need no machine: archives in and out, the channel's rules, the cache, the verb."""

from __future__ import annotations

import contextlib
import io
import os
import socket
import stat
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError
from tests.plugins.machines import config

from evalwright.errors import SandboxError, SandboxLost
from evalwright.interfaces import Deadline
from evalwright.processes import Supervisor
from evalwright.testing import FakeHost
from evalwright.testing._waiting import soon
from evalwright_plugins.sandboxes.vm import host as machine_host
from evalwright_plugins.sandboxes.vm.archive import read_archive
from evalwright_plugins.sandboxes.vm.cache import Cache
from evalwright_plugins.sandboxes.vm.channel import Channel
from evalwright_plugins.sandboxes.vm.config import VmConfig
from evalwright_plugins.sandboxes.vm.guest import wire
from evalwright_plugins.sandboxes.vm.image import _record
from evalwright_plugins.sandboxes.vm.pack import Tree, pack
from evalwright_plugins.sandboxes.vm.place import discard_place, make_place
from evalwright_plugins.sandboxes.vm.plugin import VmSandbox
from evalwright_plugins.sandboxes.vm.tunnel import Tunnels
from evalwright_plugins.sandboxes.vm.unpack import unpack

if TYPE_CHECKING:
    from tests.conftest import Project

    from evalwright_plugins.sandboxes.vm.image import Image

ROOM = 1 << 20
Entry = tuple[str, bytes, dict[str, Any]]
DIRECTORY: dict[str, Any] = {"type": tarfile.DIRTYPE, "mode": 0o755}
TOP: Entry = ("workspace", b"", DIRECTORY)


def archive(*entries: Entry) -> io.BytesIO:
    """Return an archive as a guest could write it."""
    file = io.BytesIO()
    for name, content, fields in entries:
        info = tarfile.TarInfo(name)
        info.size = len(content)
        for key, value in fields.items():
            setattr(info, key, value)
        file.write(info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape") + content + bytes(-len(content) % 512))
    file.write(bytes(1024))
    file.seek(0)
    return file


def link(name: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Entry:
    return name, b"", {"type": kind, "linkname": target}


def brought_back(file: io.BytesIO, directory: Path) -> None:
    unpack(read_archive(file, ROOM), file, "workspace", directory)


def snapshot(directory: Path) -> dict[bytes, tuple[int, bytes]]:
    """Return mode and content or link of everything below a directory."""
    root = os.fsencode(directory)
    found: dict[bytes, tuple[int, bytes]] = {}
    for place, names, files in os.walk(root):
        for name in (*names, *files):
            path = os.path.join(place, name)
            mode = os.lstat(path).st_mode
            content = os.readlink(path) if stat.S_ISLNK(mode) else b""
            if stat.S_ISREG(mode):
                content = Path(os.fsdecode(path)).read_bytes()
            found[os.path.relpath(path, root)] = (mode, content)
    return found


HOSTILE: dict[str, list[Entry]] = {
    "absolute": [TOP, ("/outside", b"x", {})],
    "up": [TOP, ("workspace/../outside", b"x", {})],
    "through a link": [TOP, link("workspace/a", "/"), ("workspace/a/outside", b"x", {})],
    "through a file": [TOP, ("workspace/a", b"x", {}), ("workspace/a/b", b"x", {})],
    "in no directory": [TOP, ("workspace/a/b", b"x", {})],
    "link first, directory then": [TOP, link("workspace/a", "/tmp"), ("workspace/a", b"", DIRECTORY)],
    "hard link to the host": [TOP, link("workspace/a", "/etc/passwd", tarfile.LNKTYPE)],
    "hard link to a link": [TOP, link("workspace/a", "/etc/passwd"), link("workspace/b", "workspace/a", tarfile.LNKTYPE)],
    "device": [TOP, ("workspace/a", b"", {"type": tarfile.BLKTYPE})],
    "the top is a link": [link("workspace", "/tmp")],
    "no top": [("other", b"", DIRECTORY)],
    "too much": [TOP, ("workspace/a", bytes(ROOM), {}), ("workspace/b", bytes(1), {})],
    "too much by hard links": [
        TOP,
        ("workspace/a", bytes(ROOM // 2), {}),
        *(link(f"workspace/{number}", "workspace/a", tarfile.LNKTYPE) for number in range(4)),
    ],
    "too deep": [TOP, *(("workspace" + "/d" * depth, b"", DIRECTORY) for depth in range(1, 500))],
    "name of nothing": [TOP, ("workspace//a", b"", {})],
}


@pytest.mark.parametrize("entries", HOSTILE.values(), ids=HOSTILE)
def test_hostile_archive_is_refused_and_changes_nothing(tmp_path: Path, entries: list[Entry]) -> None:
    directory = tmp_path / "host" / "w"
    directory.mkdir(parents=True)
    (directory / "kept").write_text("kept")
    with pytest.raises(SandboxError, match="the guest sent"):
        brought_back(archive(*entries), directory)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["host", "kept", "w"]


@pytest.mark.parametrize("cut", [0, 100, 512, 600, 1100])
def test_archive_that_is_cut_or_damaged_is_refused(cut: int) -> None:
    whole = archive(TOP, ("workspace/a", b"x", {})).getvalue()
    with pytest.raises(SandboxError, match="the guest sent"):
        read_archive(io.BytesIO(whole[:cut]), ROOM)
    damaged = bytearray(whole)
    damaged[600] ^= 1
    with pytest.raises(SandboxError, match="the guest sent"):
        read_archive(io.BytesIO(damaged), ROOM)


def test_file_larger_than_what_was_sent_is_not_made_up(tmp_path: Path) -> None:
    file = archive(TOP, ("workspace/a", b"", {}))
    info = tarfile.TarInfo("workspace/b")
    info.size = ROOM // 2
    file.seek(1024)
    file.write(info.tobuf(tarfile.GNU_FORMAT) + bytes(512))
    file.seek(0)
    with pytest.raises(SandboxError, match="without an end"):
        brought_back(file, tmp_path)


def test_links_in_the_way_on_the_host_are_never_written_through(tmp_path: Path) -> None:
    directory, outside = tmp_path / "w", tmp_path / "outside"
    directory.mkdir()
    outside.mkdir()
    (outside / "f").write_text("of the host")
    (directory / "d").symlink_to(outside)
    (directory / "f").symlink_to(outside / "f")
    brought_back(
        archive(TOP, ("workspace/d", b"", DIRECTORY), ("workspace/d/f", b"x", {}), ("workspace/f", b"x", {})), directory
    )
    assert (outside / "f").read_text() == "of the host"
    assert not (directory / "d").is_symlink()
    assert (directory / "f").read_bytes() == b"x"


def test_rights_of_another_user_do_not_come_back(tmp_path: Path) -> None:
    brought_back(archive(TOP, ("workspace/a", b"x", {"mode": 0o6755})), tmp_path)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o755


def test_everything_that_a_workspace_can_hold_makes_the_round_trip(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "deep" / ("d" * 120) / "empty").mkdir(parents=True)
    target.mkdir()
    (target / "gone").mkdir()
    (target / "gone" / "file").write_text("old")
    for name, content in {b"n\xff\xfe": b"bytes", b"x" * 255: b"long", b"a\nb c": b"", b"-rf": bytes(range(256)) * 9}.items():
        path = os.path.join(os.fsencode(source), name)
        with open(path, "wb") as file:
            file.write(content)
    (source / "run").write_text("#!/bin/sh\n")
    (source / "run").chmod(0o751)
    (source / "deep").chmod(0o500)
    os.symlink("../" * 40 + "x" * 200, source / "link")
    os.mkfifo(source / "fifo", 0o640)
    written = io.BytesIO()
    size = pack([Tree(source=source, target="workspace")], written, ROOM)
    assert size == len(written.getvalue())
    written.seek(0)
    brought_back(written, target)
    assert snapshot(target) == snapshot(source)


def test_what_did_not_change_is_not_touched_whatever_its_times_say(tmp_path: Path) -> None:
    for name in ("same", "other"):
        (tmp_path / name).write_text("12345")
        os.utime(tmp_path / name, (1, 1))
    before = (tmp_path / "same").stat()
    brought_back(
        archive(TOP, ("workspace/same", b"12345", {"mtime": 9}), ("workspace/other", b"54321", {"mtime": 1})), tmp_path
    )
    after = (tmp_path / "same").stat()
    assert (after.st_ino, after.st_mtime) == (before.st_ino, before.st_mtime)
    assert (tmp_path / "other").read_text() == "54321"
    assert (tmp_path / "other").stat().st_mtime != 1


def test_workspace_that_does_not_fit_names_the_setting(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(bytes(5000))
    with pytest.raises(SandboxError) as caught:
        pack([Tree(source=tmp_path, target="workspace")], io.BytesIO(), 4096)
    assert "disk_bytes" in caught.value.hint


def ignored(*_: Any) -> None:
    """Take a connection that nobody carries."""


@pytest.fixture
def wires() -> Iterator[tuple[Channel, socket.socket, list[str]]]:
    """Return the host's end of a channel, the guest's end as a bare socket, and why the guest was given up."""
    ours, theirs = socket.socketpair()
    reasons: list[str] = []
    channel = Channel(ours, silence=5.0, accept=ignored, on_lost=reasons.append)
    with theirs:
        yield channel, theirs, reasons
    channel.close()


def flood(number: int) -> bytes:
    """Return one chunk more than the window of a stream."""
    return b"".join(wire.encode(wire.DATA, number, bytes(wire.CHUNK)) for _ in range(wire.WINDOW // wire.CHUNK + 1))


BREACHES: dict[str, Callable[[int], bytes]] = {
    "more than the window": flood,
    "a frame of no kind": lambda number: wire.encode(77, number),
    "a frame that is too long": lambda number: wire.HEADER.pack(wire.DATA, number, wire.MAX_PAYLOAD + 1),
    "bytes that are none": lambda number: wire.encode(wire.DATA, number),
    "a second end": lambda number: wire.encode(wire.END, number) * 2,
    "credit for nothing": lambda number: wire.encode(wire.CREDIT, number, bytes([0, 0, 0, 1])),
    "a word that is no JSON": lambda _: wire.encode(wire.OPEN, wire.GUEST_STREAMS + 1, b"{"),
    "a word that is no object": lambda _: wire.encode(wire.OPEN, wire.GUEST_STREAMS + 1, b"[]"),
}


@pytest.mark.parametrize("breach", BREACHES.values(), ids=BREACHES)
def test_guest_that_breaks_the_channels_rules_is_lost(
    wires: tuple[Channel, socket.socket, list[str]], breach: Callable[[int], bytes]
) -> None:
    channel, guest, reasons = wires
    stream = channel.open({"do": "anything"})
    guest.sendall(breach(stream.number))
    assert soon(lambda: reasons, 10.0)
    with pytest.raises(SandboxLost):
        stream.answer(Deadline.after(10.0))
    assert len(reasons) == 1
    with pytest.raises(SandboxLost):
        channel.open({"do": "more"})


def test_guest_that_hangs_up_is_lost_and_whoever_waits_to_send_is_released(
    wires: tuple[Channel, socket.socket, list[str]],
) -> None:
    channel, guest, _ = wires
    stream = channel.open({"do": "anything"})
    sent: list[int] = []

    def send() -> None:
        with contextlib.suppress(SandboxLost):
            while sent[-1:] != [0]:
                sent.append(stream.send(bytes(wire.CHUNK)))

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    guest.recv(1 << 16)
    guest.shutdown(socket.SHUT_RDWR)
    sender.join(10.0)
    assert not sender.is_alive()
    with pytest.raises(SandboxLost):
        stream.answer(Deadline.after(10.0))


def test_endpoints_keep_their_ports_and_sockets_get_the_free_ones() -> None:
    tunnels = Tunnels({"a": "unix:/run/a", "api": "127.0.0.1:8080", "b": "unix:/run/b", "six": "[::1]:9000"})
    assert tunnels.ports == {8080: "127.0.0.1:8080", 9000: "[::1]:9000", 8081: "unix:/run/a", 8082: "unix:/run/b"}


@pytest.mark.parametrize("address", ["8080", "host:", "host:http", "host:0", "host:70000", ":80"])
def test_endpoint_that_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(SandboxError, match='endpoint "x"'):
        Tunnels({"x": address})


def test_two_endpoints_of_one_port_are_refused() -> None:
    with pytest.raises(SandboxError, match="taken by another endpoint"):
        Tunnels({"x": "a:80", "y": "b:80"})


def test_of_many_who_want_the_same_thing_one_makes_it(tmp_path: Path) -> None:
    cache, makers, together = Cache(tmp_path), list[int](), threading.Barrier(6)

    def want(number: int) -> None:
        together.wait(10.0)
        with cache.making("things", "one") as draft:
            if draft:
                makers.append(number)
                (draft / "made").write_text("whole")

    threads = [threading.Thread(target=want, args=(number,), daemon=True) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10.0)
    assert len(makers) == 1
    assert (cache.place("things", "one") / "made").read_text() == "whole"


def test_what_could_not_be_made_leaves_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    with pytest.raises(OSError, match="no"), cache.making("things", "one"):
        raise OSError("no")
    assert list((tmp_path / "things").iterdir()) == []
    with cache.making("things", "one") as draft:
        assert draft is not None


def test_only_a_machines_own_directory_is_ever_removed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="refusing"):
        discard_place(tmp_path)
    place = make_place("owner", 4096)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    discard_place(place)
    assert not place.exists()


@pytest.mark.parametrize(
    "options", [{"network": "host"}, {"memory_bytes": 1}, {"root": "other"}, {"memroy_bytes": 1 << 30}, {"silence_seconds": 0}]
)
def test_configuration_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        type(config()).model_validate(options)


def test_preflight_names_the_missing_image_and_its_cure(tmp_path: Path) -> None:
    with FakeHost() as host:
        problems = VmSandbox(config(cache=str(tmp_path)), host).check("worker")
    assert len(problems) == 1
    assert problems[0].details["code"] == "E_VM_UNAVAILABLE"
    assert "install" in problems[0].hint or "evalwright vm build --root busybox" in problems[0].hint


def test_run_without_an_image_ends_before_the_first_trial(project: Project, tmp_path: Path) -> None:
    table = {"use": "vm", "root": "busybox", "cache": str(tmp_path / "nothing")}
    project.suite(cases=[{"id": "a", "expect": {"exit_code": 0}}], scorers=[{"use": "exit-code"}], sandbox=table)
    answer = project.call("run", "demo")
    assert answer.exit_code == 3
    assert "E_VM_UNAVAILABLE" in answer.stdout


def test_status_of_an_empty_cache_says_how_to_build(project: Project, tmp_path: Path) -> None:
    answer = project.call("vm", "status", "--cache", str(tmp_path / "empty"))
    assert answer.exit_code == 0
    assert answer.data["images"] == []
    assert answer.envelope["commands"][0]["command"] == "evalwright vm build"


def test_busybox_root_takes_no_packages(project: Project, tmp_path: Path) -> None:
    answer = project.call("vm", "build", "--root", "busybox", "--package", "git", "--cache", str(tmp_path / "c"))
    assert (answer.exit_code, answer.error_codes) == (1, ["E_CASE_INVALID"])


@pytest.mark.parametrize("place", ["/dev/null", "/dev/null/below", "/proc/evalwright"])
def test_cache_in_which_nothing_can_be_kept_is_a_usage_error(project: Project, place: str) -> None:
    answer = project.call("vm", "build", "--root", "busybox", "--cache", place)
    assert (answer.exit_code, answer.error_codes) == (1, ["E_CASE_INVALID"])
    assert place in answer.envelope["errors"][0]["message"]


def test_preflight_names_the_image_that_is_there_instead(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    place = cache.place("images", "key")
    place.mkdir(parents=True)
    (place / "root.squashfs").touch()
    cache.write(_record("busybox"), {"key": "key"})
    with FakeHost() as host:
        (problem,) = VmSandbox(VmConfig(cache=str(tmp_path)), host).check("worker")
    assert "there is one of busybox" in problem.message or "not installed" in problem.message
    assert '"root": "busybox"' in problem.hint or "apt-get" in problem.hint


def test_kvm_that_does_not_work_is_refused_by_preflight(vm_image: Image) -> None:
    with FakeHost() as host:
        with Supervisor() as supervisor:
            if machine_host.accelerator(Cache(), vm_image, "auto", supervisor) == "kvm":
                pytest.skip("KVM works here")
        problems = VmSandbox(VmConfig(root="busybox", accelerator="kvm"), host).check("coordinator")
    assert [problem.message for problem in problems] == ["no guest starts with KVM here"]
    assert problems[0].fatal


def test_pruning_spares_what_is_wanted_or_in_use(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for key in ("wanted", "used", "old"):
        with cache.making("things", key) as draft:
            assert draft
    with cache.use("things", "used"):
        assert cache.prune("things", {"wanted"}) == ["old"]
    assert cache.prune("things", {"wanted"}) == ["used"]
    assert [path.name for path in (tmp_path / "things").iterdir()] == ["wanted"]


def test_records_that_nobody_used_for_long_are_forgotten(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for name in ("build-a.json", "build-b.json", "other.json"):
        cache.write(name, {"key": name})
        os.utime(tmp_path / name, (1, 1))
    assert cache.read("build-a.json", touch=True) == {"key": "build-a.json"}
    assert cache.recent("build-*.json", 3600.0) == [{"key": "build-a.json"}]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["build-a.json", "other.json"]
