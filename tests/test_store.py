"""The content store: what goes in comes out, wrong bytes never get in, and many writers do not disturb each other."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from evalwright.canonical import digest_bytes
from evalwright.errors import StoreError
from evalwright.store import DirectoryStore
from evalwright.testing import in_threads


@pytest.fixture
def store(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def test_bytes_come_back_and_are_stored_once(store: DirectoryStore) -> None:
    digest = store.put_bytes(b"content")

    assert digest == digest_bytes(b"content")
    assert store.put_bytes(b"content") == digest
    with store.open(digest) as file:
        assert file.read() == b"content"
    assert store.missing([digest, digest_bytes(b"other")]) == {digest_bytes(b"other")}


def test_bytes_with_another_digest_never_get_in(store: DirectoryStore) -> None:
    digest = digest_bytes(b"right")

    with pytest.raises(StoreError, match="another digest"):
        store.put(digest, io.BytesIO(b"wrong"))

    assert store.missing([digest]) == {digest}
    assert list((store.root / "incoming").iterdir()) == []


@pytest.mark.parametrize(
    "digest", ["", "sha256:", "sha256:../../etc/passwd", "sha256:" + "g" * 64, "md5:" + "a" * 64, "a" * 64]
)
def test_what_is_no_digest_names_no_path(store: DirectoryStore, digest: str) -> None:
    with pytest.raises(StoreError, match="is not a digest"):
        store.path(digest)


def test_absent_blob_is_an_error_that_says_what_to_do(store: DirectoryStore) -> None:
    with pytest.raises(StoreError, match="lacks sha256") as caught:
        store.open(digest_bytes(b"x"))

    assert caught.value.hint


def test_blob_that_was_changed_on_disk_is_not_handed_out_as_the_original(store: DirectoryStore, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "f").write_text("original")
    digest = store.put_tree(tmp_path / "w")
    blob = store.path(digest_bytes(b"original"))
    blob.chmod(0o644)
    blob.write_text("tampered")
    (tmp_path / "target").mkdir()

    store.put_tree(tmp_path / "w")
    try:
        store.restore(digest, tmp_path / "target")
    except StoreError:
        return
    assert (tmp_path / "target" / "f").read_text() == "original"


def test_many_writers_of_the_same_blob_all_succeed(store: DirectoryStore) -> None:
    content = b"x" * 200_000

    def put(number: int) -> str:
        return store.put_bytes(content)

    digests = in_threads(put)

    assert set(digests) == {digest_bytes(content)}
    with store.open(digests[0]) as file:
        assert file.read() == content
    assert list((store.root / "incoming").iterdir()) == []


def test_digest_of_a_tree_depends_on_content_names_modes_and_links(store: DirectoryStore, tmp_path: Path) -> None:
    def tree(name: str, content: str = "x", mode: int = 0o644, link: str = "f") -> str:
        directory = tmp_path / name
        directory.mkdir()
        (directory / "f").write_text(content)
        (directory / "f").chmod(mode)
        (directory / "l").symlink_to(link)
        return store.put_tree(directory)

    assert tree("a") == tree("b")
    assert len({tree("c"), tree("d", content="y"), tree("e", mode=0o755), tree("g", link="h")}) == 4
