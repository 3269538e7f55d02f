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
from evalwright.audit.forms import UNPACKED_BYTES, encoded_marks
from evalwright.audit.leak_agents import _loaded
from evalwright.audit.spy import Spy

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


def dump(data: bytes, *, group: int) -> bytes:
    """Return a dump with addresses and text, as ``xxd`` (groups of two) and ``hexdump -C`` (of one) print it."""
    lines: list[str] = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        digits = " ".join(row[n : n + group].hex() for n in range(0, 16, group) if row[n:])
        lines.append(f"{at:08x}{':' if group == 2 else ' '} {digits:<50} |{row.decode()}|")
    return "\n".join(lines).encode()


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
    "hex with spaces": (CANARY.hex(" ").encode(), "hex"),
    "hex with colons": (CANARY.hex(":").upper().encode(), "hex"),
    "hex in pairs and lines": (CANARY.hex(" ", 2).replace(" 4", "\n4").encode(), "hex"),
    "hex escaped": ("".join(f"\\x{byte:02x}" for byte in CANARY).encode(), "hex"),
    "hex as an array": (", ".join(f"0x{byte:02X}" for byte in CANARY).encode(), "hex"),
    "hex across two chunks": (b" " * (spy.CHUNK_BYTES - 20) + CANARY.hex(" ").encode(), "hex"),
    "hex dump in pairs": (dump(b"xyz" + CANARY, group=2), "hex"),
    "hex dump in bytes": (dump(CANARY, group=1), "hex"),
    "utf-16": (("é" + CANARY.decode()).encode("utf-16"), "utf-16"),
    "utf-16, big end first": (CANARY.decode().encode("utf-16-be"), "utf-16"),
    "utf-16 across two chunks": (b" " * (spy.CHUNK_BYTES - 21) + CANARY.decode().encode("utf-16-le"), "utf-16"),
    "utf-32": (CANARY.decode().encode("utf-32"), "utf-32"),
    "utf-32, big end first": (CANARY.decode().encode("utf-32-be"), "utf-32"),
    "utf-16 in gzip": (gzip.compress(CANARY.decode().encode("utf-16")), "utf-16 in compressed"),
    "gzip in gzip": (gzip.compress(gzip.compress(CANARY)), "compressed"),
    "gzip in bzip2 in xz": (lzma.compress(bz2.compress(gzip.compress(CANARY))), "compressed"),
    "gzip in zip": (zipped(gzip.compress(CANARY) + b"tree" * 2000), "compressed in zip"),
    "gzip after a header": (b"a header of some kind\n" * 9 + gzip.compress(CANARY), "compressed"),
    "gzip after a false beginning": (b"\x1f\x8b\x08\0" * 3 + gzip.compress(CANARY) + b"\0" * 9, "compressed"),
    "second member of gzip": (gzip.compress(b"first") + gzip.compress(CANARY), "compressed"),
    "bzip2 after a header": (b"header" + bz2.compress(CANARY), "compressed"),
    "xz after a header": (b"header" + lzma.compress(b"tree" * 2000 + CANARY), "compressed"),
    "zlib after a header": (b"header" + zlib.compress(CANARY), "compressed"),
    "zip after a program": (b"#!/bin/sh\n" + zipped(CANARY), "zip"),
    "gzip that is cut off": (gzip.compress(b"x" * 99 + CANARY + os.urandom(5000))[:-2000], "compressed"),
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


def test_extended_attributes_of_files_and_directories_are_read(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "file").write_bytes(b"nothing")
    try:
        os.setxattr(tmp_path / "file", "user.note", base64.b64encode(CANARY))
        os.setxattr(tmp_path / "d", f"user.{CANARY.decode()}", b"")
    except OSError:
        pytest.skip("the file system keeps no attributes of users")

    assert {(how, Path(path).name) for _, _, how, path in found(tmp_path)} == {
        ("attribute", "d"),
        ("base64 in attribute", "file"),
    }


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else can make a directory that is closed to the one who searches")
@pytest.mark.parametrize(("mode", "left"), [(0o711, ["closed"]), (0o700, []), (0o755, [])])
def test_directory_that_can_be_entered_and_not_listed_makes_the_search_incomplete(mode: int, left: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "closed").mkdir(mode=mode)
        (place / "closed" / "file").write_bytes(CANARY)
        program = (
            f"{_loaded('forms', 'spy')}\none = module.Spy(60.0, 0.0, {{}})\none.tree({os.fsencode(name)!r})\nprint(one.cut)"
        )
        done = subprocess.run(
            ["/usr/bin/python3", "-I", "-"], input=program, user=65534, group=65534, text=True, capture_output=True, check=True
        )

    said = [line.split("\t") for line in done.stdout.splitlines()]
    assert [Path(words[2]).name for words in said if words[0] == "left"] == left
    assert said[-1] == [str(bool(left))]
    assert [words[0] for words in said if words[0] == "hit"] == ["hit"] * (mode == 0o755)


def test_layers_without_end_are_given_up(tmp_path: Path) -> None:
    content = CANARY
    for _ in range(30):
        content = gzip.compress(content)
    (tmp_path / "file").write_bytes(content)
    one = Spy(60.0, 0.0, {})

    one.tree(os.fsencode(tmp_path))

    assert (one.hits, one.cut) == (set(), True)


LARGE: dict[str, bytes] = {
    "grows": gzip.compress(bytes(UNPACKED_BYTES + 1), 1),
    "is large itself": gzip.compress(b"") + bytes(UNPACKED_BYTES),
    "large pack": pack(b"a") + bytes(UNPACKED_BYTES),
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
    for name in ("spy.py", "spy.sh", "forms.py", "canaries.py", "leak_agents.py"):
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


@pytest.mark.skipif(os.geteuid() != 0, reason="nobody else can make a directory that is closed to the one who searches")
def test_shell_spy_names_a_directory_that_can_be_entered_and_not_listed(shell_spy: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        (place / "closed").mkdir(mode=0o711)
        (place / "shut").mkdir(mode=0o700)
        script = f"seconds=0\nworkspace={place}\nexchange={place}\nencoded=\n{shell_spy}"
        done = subprocess.run(
            ["busybox", "sh", "-s"], input=script, user=65534, group=65534, text=True, capture_output=True, check=True
        )

    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert [words[2] for words in lines if words[0] == "left"] == [f"{place}/closed"]
    assert lines[-1][0::4] == ["done", "0"]
