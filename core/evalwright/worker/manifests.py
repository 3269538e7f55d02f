"""Manifests as documents: what a fixture's entries look like is worked out once, however many trials it has."""

from __future__ import annotations

from evalwright.model import Entry, Manifest
from evalwright.redaction import Redactor
from evalwright.rundir import render_compact
from evalwright.worker.evidence import shown_record

__all__ = ["ManifestTexts"]

START, END = '{"entries": [', '], "root": "."}\n'


class ManifestTexts:
    """Renders the document of a fixture's manifest, and of those that share its entries, on one line and without secrets."""

    def __init__(self, fixture: Manifest, redactor: Redactor) -> None:
        self._fixture = fixture
        self._redactor = redactor
        self._texts = {id(entry): self._text(entry) for entry in fixture.entries}
        self._whole = self._joined(fixture)

    def document(self, manifest: Manifest) -> bytes:
        """Return the document of a manifest."""
        return self._whole if manifest is self._fixture else self._joined(manifest)

    def _joined(self, manifest: Manifest) -> bytes:
        known = self._texts
        texts = [known.get(id(entry)) or self._text(entry) for entry in manifest.entries]
        return f"{START}{', '.join(texts)}{END}".encode("utf-8", "replace")

    def _text(self, entry: Entry) -> str:
        return render_compact(shown_record(entry.as_json(), self._redactor))[:-1]
