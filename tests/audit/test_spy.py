"""What the spy finds, in which form, and what it leaves unread."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import lzma
import os
import subprocess
import sys
import tempfile
import time
import zipfile
import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import pytest

from evalwright.audit import spy
from evalwright.audit.canaries import new_codes, token
from evalwright.audit.spy import Spy, encoded_marks

CODES = new_codes()
CANARY = token(CODES, "gold").encode()
Found = set[tuple[str, str, str, str]]


def found(place: Path, *, since: float = 0.0, known: dict[int, set[str]] | None = None) -> Found:
    """Return what a spy finds below a directory."""
    one = Spy(60.0, since, known or {})
    one.tree(os.fsencode(place))
    return one.hits


def zipped(data: bytes) -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.txt", data)
    return whole.getvalue()


def pack(data: bytes) -> bytes:
    """Return the beginning of a pack of git: header, an empty object, and one that holds ``data``."""
    return b"PACK\0\0\0\2\0\0\0\2" + b"\x30" + zlib.compress(b"") + b"\xb5\x0a" + zlib.compress(data) + b"\0" * 20


FORMS: dict[str, tuple[bytes, str]] = {
    "plain": (b"some words " + CANARY + b" and others", "plain"),
    "plain among zeros": (b"\0" * 5000 + CANARY, "plain"),
    "across two chunks": (b"x" * (spy.CHUNK_BYTES - 20) + CANARY, "plain"),
    "json": (b'{"expect": {"exact": "' + CANARY + b'"}}', "plain"),
    **{f"base64 at {n}": (base64.b64encode(b"x" * n + CANARY + b"y" * n), "base64") for n in range(4)},
    "base64 in lines": (base64.encodebytes(b"x" * 40 + CANARY), "base64"),
    "base64 at the end": (base64.b64encode(CANARY).rstrip(b"="), "base64"),
    "base64url": (base64.urlsafe_b64encode(b"\xff\xfe\xfd" + CANARY), "base64"),
    "base64 across two chunks": (b" " * (spy.CHUNK_BYTES - 20) + base64.b64encode(CANARY), "base64"),
    "hex": (CANARY.hex().encode(), "hex"),
    "hex in capitals": (CANARY.hex().upper().encode(), "hex"),
    "gzip": (gzip.compress(CANARY), "compressed"),
    "bzip2": (bz2.compress(CANARY), "compressed"),
    "xz": (lzma.compress(b"tree" * 2000 + CANARY), "compressed"),
    "zip": (zipped(CANARY), "zip"),
    "base64 in gzip": (gzip.compress(base64.b64encode(CANARY)), "base64 in compressed"),
    "git object": (zlib.compress(b"blob 50\0" + CANARY), "git object"),
    "git object, fast": (zlib.compress(b"blob 50\0" + CANARY, 1), "git object"),
    "git pack": (pack(b"tree" * 2000 + CANARY), "git object"),
}


@pytest.mark.parametrize("form", FORMS)
def test_canary_is_found_in_every_form(tmp_path: Path, form: str) -> None:
    content, how = FORMS[form]
    (tmp_path / "deep" / "er").mkdir(parents=True)
    path = tmp_path / "deep" / "er" / "file"
    path.write_bytes(content)

    assert found(tmp_path) == {("gold", CODES["gold"], how, str(path))}


def test_name_and_link_that_hold_a_canary_are_finds(tmp_path: Path) -> None:
    (tmp_path / CANARY.decode()).mkdir()
    (tmp_path / "link").symlink_to(f"/nowhere/{CANARY.decode()}")

    assert {(how, Path(path).name) for _, _, how, path in found(tmp_path)} == {("name", CANARY.decode()), ("link", "link")}


def test_directory_behind_a_link_is_not_entered(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_bytes(CANARY)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link").symlink_to(tmp_path / "there")

    assert found(tmp_path / "here") == set()


def test_fifo_and_unreadable_places_stop_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "odd\n\t\udcff").write_bytes(CANARY)

    assert {path for _, _, _, path in found(tmp_path)} == {f"{tmp_path}/odd??\\xff"}


def test_file_older_than_every_canary_is_not_read_but_for_its_size(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(CANARY)
    (tmp_path / "gold").write_bytes(b"the gold itself")
    os.utime(tmp_path / "old", (4e9, 4e9))
    known = {15: {sha256(b"the gold itself").hexdigest()}}

    assert found(tmp_path, since=time.time() + 60, known=known) == {("suite", "", "same content", str(tmp_path / "gold"))}


def test_changed_times_of_a_file_do_not_hide_it(tmp_path: Path) -> None:
    since = time.time() - 1
    (tmp_path / "file").write_bytes(CANARY)
    os.utime(tmp_path / "file", (1.5e9, 1.5e9))

    assert len(found(tmp_path, since=since)) == 1


def test_content_that_is_only_as_long_as_gold_is_no_find(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"another content")

    assert found(tmp_path, known={15: {sha256(b"the gold itself").hexdigest()}}) == set()


def test_open_file_without_a_name_and_variables_are_found() -> None:
    with tempfile.TemporaryFile() as file:
        file.write(CANARY)
        file.flush()
        number = file.fileno()
        code = "from evalwright.audit.spy import Spy; Spy(60.0, 0.0, {}).own()"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={"WORD": CANARY.decode()},
            pass_fds=[number],
            capture_output=True,
            text=True,
            check=True,
        )

    paths = {line.split("\t")[4] for line in done.stdout.splitlines()}
    assert paths == {f"descriptor {number}", "environment variable WORD"}


def test_directory_of_another_process_is_entered(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(CANARY)
    child = subprocess.Popen(["sleep", "60"], cwd=tmp_path)
    try:
        places = Spy(60.0, 0.0, {}).processes()
    finally:
        child.kill()
        child.wait()

    assert os.fsencode(tmp_path) in places


def test_search_ends_when_the_time_is_up_and_says_so(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    spy.main({"seconds": 0.0, "since": 0.0, "workspace": str(tmp_path), "exchange": str(tmp_path), "known": {}})

    last = capfdbinary.readouterr().out.splitlines()[-1].split(b"\t")
    assert (last[0], last[4]) == (b"done", b"0")


LARGE: dict[str, bytes] = {
    "grows": gzip.compress(bytes(spy.UNPACKED_BYTES + 1), 1),
    "is large itself": gzip.compress(b"") + bytes(spy.UNPACKED_BYTES),
    "large pack": pack(b"a") + bytes(spy.UNPACKED_BYTES),
}


@pytest.mark.parametrize("name", LARGE)
def test_content_too_large_to_unpack_makes_the_search_incomplete(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_bytes(LARGE[name])
    one = Spy(60.0, 0.0, {})

    one.tree(os.fsencode(tmp_path))
    one.put_off()

    assert one.cut


def test_large_file_is_read_last(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(spy.LARGE_BYTES + 1) + CANARY)
    one = Spy(60.0, 0.0, {})

    one.tree(os.fsencode(tmp_path))
    before = set(one.hits)
    one.put_off()

    assert (before, len(one.hits), one.cut) == (set(), 1, False)


def test_what_the_spy_carries_is_no_find(tmp_path: Path) -> None:
    for name in ("spy.py", "spy.sh", "canaries.py", "leak_agents.py"):
        (tmp_path / name).write_bytes((Path(spy.__file__).parent / name).read_bytes())

    assert found(tmp_path) == set()


def test_marks_are_found_by_grep_in_every_alignment() -> None:
    marks = [mark for _, mark, _ in encoded_marks()]

    for number in range(6):
        assert any(mark in base64.b64encode(b"x" * number + CANARY) for mark in marks)


@pytest.fixture
def shell_spy(require: Callable[[str], None]) -> str:
    """Return the text of the shell's spy."""
    require("busybox")
    return (Path(spy.__file__).parent / "spy.sh").read_text()


def test_shell_spy_is_read_by_a_plain_shell(shell_spy: str) -> None:
    done = subprocess.run(["busybox", "sh", "-n"], input=shell_spy, text=True, capture_output=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
