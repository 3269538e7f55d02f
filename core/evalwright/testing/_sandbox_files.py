"""Checks of a sandbox: files in and out, and what an agent may leave in the way."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

from evalwright.errors import SandboxError
from evalwright.interfaces import Deadline, Mount
from evalwright.testing._contract import since
from evalwright.testing._sandbox_place import SandboxPlace
from evalwright.testing._waiting import within

__all__ = ["FileChecks"]

CONTENT = bytes(range(256)) * 300
SECONDS = 10.0


def same(left: bytes, right: bytes) -> bool:
    """Compare without letting a test runner show the difference of long contents, which takes it minutes."""
    return left == right


class FileChecks(SandboxPlace):
    """``put``, ``get``, ``collect`` and mounts."""

    @since("1.0")
    def test_put_and_get_round_trip(self, tmp_path: Path) -> None:
        """Bytes, a file and a directory of the host arrive unchanged, in directories that did not exist."""
        source = tmp_path / "source"
        (source / "deep").mkdir(parents=True)
        (source / "deep" / "file").write_bytes(CONTENT)
        with self.session(tmp_path) as session:
            place = session.workspace
            session.put(CONTENT, place / "a" / "bytes")
            session.put(source / "deep" / "file", place / "b" / "file")
            session.put(source, place / "c")
            for path in ("a/bytes", "b/file", "c/deep/file"):
                assert same(session.get(place / path, max_bytes=len(CONTENT)), CONTENT), f"{path} has other bytes"
            assert same(self.sh(session, "cat c/deep/file").stdout.head, CONTENT), "the command reads other bytes"
            session.put(b"task", session.exchange / "task.txt")
            assert session.get(session.exchange / "task.txt", max_bytes=100) == b"task"

    @since("1.0")
    def test_get_reads_what_a_command_wrote_and_no_more_than_asked(self, tmp_path: Path) -> None:
        """``max_bytes`` bounds what is read."""
        with self.session(tmp_path) as session:
            self.sh(session, "head -c 100000 /dev/zero > zeros")
            assert session.get(session.workspace / "zeros", max_bytes=10) == b"\0" * 10

    @since("1.0")
    def test_get_of_a_missing_file_says_so(self, tmp_path: Path) -> None:
        """The core tells "no answer file" from other trouble by ``FileNotFoundError``."""
        with self.session(tmp_path) as session, pytest.raises(FileNotFoundError):
            session.get(session.workspace / "missing", max_bytes=10)

    @since("1.0")
    def test_get_refuses_links_and_directories(self, tmp_path: Path) -> None:
        """What an agent linked is never read in its name."""
        with self.session(tmp_path) as session:
            self.sh(session, "echo secret > real; ln -s real link; ln -s /etc/passwd out; mkdir directory")
            for name in ("link", "out", "directory"):
                with pytest.raises(OSError):  # noqa: PT011  # any OSError will do
                    session.get(session.workspace / name, max_bytes=10)

    @since("1.0")
    def test_get_refuses_a_fifo_and_never_hangs(self, tmp_path: Path) -> None:
        """A FIFO without a writer would block for ever."""
        with self.session(tmp_path) as session:
            self.sh(session, "mkfifo fifo")
            with pytest.raises(OSError):  # noqa: PT011  # any OSError will do
                within(SECONDS / 2, lambda: session.get(session.workspace / "fifo", max_bytes=10), "get of a FIFO")

    @since("1.0")
    def test_paths_outside_are_refused(self, tmp_path: Path) -> None:
        """``put`` and ``get`` reach the workspace and the exchange directory only."""
        with self.session(tmp_path) as session:
            for path in (PurePosixPath("/etc/hostname"), session.workspace / ".." / ".." / "escaped"):
                with pytest.raises((SandboxError, OSError)):
                    session.put(b"x", path)
                with pytest.raises((SandboxError, OSError)):
                    session.get(path, max_bytes=10)
        assert not list(tmp_path.rglob("escaped"))

    @since("1.0")
    def test_collect_brings_the_changes_back(self, tmp_path: Path) -> None:
        """After ``kill`` and ``collect`` the request's own directory holds the final workspace."""
        request = self.request(tmp_path)
        (request.workspace / "kept").write_text("before\n")
        (request.workspace / "gone").write_text("before\n")
        with self.made() as sandbox:
            session = self.begun(sandbox, request)
            assert self.sh(session, "cat kept").stdout.text == "before\n", "the workspace's files are not there"
            self.sh(session, "echo after > kept; rm gone; mkdir new; echo x > new/file")
            session.kill(Deadline.after(SECONDS))
            session.collect(Deadline.after(SECONDS))
            session.destroy(Deadline.after(SECONDS))
        back = {path.relative_to(request.workspace).as_posix(): path for path in request.workspace.rglob("*") if path.is_file()}
        assert sorted(back) == ["kept", "new/file"], f"the workspace that came back holds {sorted(back)}"
        assert (back["kept"].read_text(), back["new/file"].read_text()) == ("after\n", "x\n")

    @since("1.0")
    def test_mounts_are_readable_where_inside_says(self, tmp_path: Path) -> None:
        """``inside`` names the place of a mounted directory as commands see it."""
        source = tmp_path / "mounted"
        source.mkdir()
        (source / "tool").write_text("of the agent\n")
        mount = Mount(source=source, target=PurePosixPath("/agent"))
        with self.session(tmp_path, mounts=[mount]) as session:
            text = self.sh(session, f"cat '{session.inside(source)}/tool'").stdout.text
        assert text == "of the agent\n"

    @since("1.0")
    def test_writable_mounts_are_written_and_refused_where_not_declared(self, tmp_path: Path) -> None:
        """With ``writable-mounts`` commands change what is mounted writable, and nothing of a read-only mount over it."""
        request = self.request(tmp_path)
        source = request.workspace.parent / "mounted"
        (source / "closed").mkdir(parents=True)
        target = PurePosixPath("/agent")
        over = Mount(source=source / "closed", target=target / "closed")
        asked = replace(request, mounts=[Mount(source=source, target=target, writable=True), over])
        with self.made() as sandbox:
            if "writable-mounts" not in sandbox.capabilities:
                with pytest.raises(SandboxError):
                    self.begun(sandbox, asked)
                return
            session = self.begun(sandbox, asked)
            place = session.inside(source)
            self.sh(session, f"echo new > '{place}/open'; echo new > '{place}/closed/file'")
            session.kill(Deadline.after(SECONDS))
            session.collect(Deadline.after(SECONDS))
            session.destroy(Deadline.after(SECONDS))
        assert (source / "open").is_file(), "what was written to a writable mount is not on the host"
        assert not (source / "closed" / "file").exists(), "a read-only mount over a writable one was written"
