"""Manifests as documents: the quick way gives the same bytes as the plain one, secrets or none."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evalwright.model import Entry, Manifest
from evalwright.redaction import Redactor
from evalwright.rundir import render_compact
from evalwright.worker.evidence import shown_record
from evalwright.worker.manifests import ManifestTexts

FIXTURE = Manifest(
    (
        Entry(path="caf\\xe9", kind="file", sha256="sha256:1", size=3, mode=0o644, path_b64="Y2Fm6Q=="),
        Entry(path="dir", kind="directory", mode=0o755),
        Entry(path='dir/"quoted", é', kind="file", sha256="sha256:2", size=0, mode=0o600),
        Entry(path="hunter2hunter2", kind="symlink", target="hunter2hunter2/x", sha256="sha256:3", broken=True),
    )
)
REDACTORS = {
    "none": Redactor(),
    "a value": Redactor(["hunter2hunter2"]),
    "a pattern": Redactor([], [r"caf.*"]),
    "every key": Redactor([], [r"entries"]),
    "everything": Redactor([], [r".+"]),
}


def plain(manifest: Manifest, redactor: Redactor) -> bytes:
    """Return the document, made at once and whole."""
    document = manifest.as_json()
    shown = [shown_record(record, redactor) for record in document["entries"]]
    return render_compact(document | {"entries": shown}).encode("utf-8", "replace")


@pytest.mark.parametrize("name", REDACTORS)
def test_documents_of_the_fixture_and_of_its_descendants_are_those_of_the_plain_way(name: str) -> None:
    redactor = REDACTORS[name]
    texts = ManifestTexts(FIXTURE, redactor)
    first, *others = FIXTURE.entries
    changed = Manifest((replace(first, sha256="sha256:9"), *others[1:], Entry(path="new", kind="other", subtype="fifo")))

    for manifest in (FIXTURE, changed, Manifest(), Manifest(FIXTURE.entries[:1])):
        assert texts.document(manifest) == plain(manifest, redactor)


def test_secret_in_a_name_is_not_kept_in_its_bytes_either_and_keys_are_never_redacted() -> None:
    document = json.loads(ManifestTexts(FIXTURE, Redactor([], [r".+"])).document(FIXTURE))

    assert {record["path"] for record in document["entries"]} == {"[REDACTED]"}
    assert not any("path_b64" in record for record in document["entries"])


def test_redactors_that_hide_the_same_are_equal() -> None:
    assert Redactor(["a" * 9], ["x"]) == Redactor(["a" * 9], ["x"])
    assert len({Redactor(["a" * 9]), Redactor(["a" * 9]), Redactor(["b" * 9]), Redactor()}) == 3
