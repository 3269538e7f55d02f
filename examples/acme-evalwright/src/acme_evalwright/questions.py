"""The importer acme-csv: a CSV file with the columns question and answer."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from evalwright.errors import SourceMissing, UsageError
from evalwright.interfaces import Imported, ImportedCase, ImportedFile, ImportedSuite, Importer, Unsupported

__all__ = ["QuestionsImporter"]

COLUMNS = {"question", "answer"}


class QuestionsImporter(Importer[None]):
    """Makes one case of each line; the answer must be given exactly."""

    api = "importer/1.0"

    def read(self, source: Path | None) -> Iterator[Imported]:
        """Describe the suite."""
        if source is None or not source.is_file():
            raise SourceMissing(f"there is nothing to import at {source}", hint="give a CSV file with question and answer")
        reader = csv.DictReader(io.StringIO(_text(source), newline=""), strict=True)
        if not set(reader.fieldnames or ()) >= COLUMNS:
            raise UsageError(f"{source} lacks the columns question and answer", hint="name them in the first line")
        yield ImportedSuite(
            {
                "schema_version": 2,
                "name": "acme-questions",
                "runner": {"argv": ["true"]},
                "scorers": [{"use": "exact"}, {"use": "acme-wordcount", "required": False}],
            }
        )
        yield ImportedFile(PurePosixPath("fixtures/empty/README"), b"The questions need no files.\n")
        try:
            for number, row in enumerate(reader, start=1):
                yield _case(number, row)
        except csv.Error as error:
            raise UsageError(f"{source}, line {reader.line_num}: {error}", hint="correct the line") from error


def _text(source: Path) -> str:
    try:
        return source.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{source} is not UTF-8", hint="save it as UTF-8") from error


def _case(number: int, row: dict[str, str | None]) -> Imported:
    question, answer = row.get("question"), row.get("answer")
    if not question or answer is None:
        return Unsupported(f"row {number}", "it has no question or no answer")
    expect = {"exact": answer, "acme_words": {"max": max(1, len(answer.split()))}}
    return ImportedCase({"id": f"q{number:04}", "task": question, "workspace": "fixtures/empty", "expect": expect})
