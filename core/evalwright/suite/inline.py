"""Texts of a suite that lie in files of their own: a rubric as ``file://rubric.md``."""

from __future__ import annotations

from pathlib import Path

from evalwright.suite.paths import path_objection

__all__ = ["FILE_MARK", "file_text"]

FILE_MARK = "file://"
MAX_BYTES = 1 << 20


def file_text(directory: Path, value: str) -> str:
    """Return the content of the suite's file that ``file://PATH`` names. Raises ``ValueError`` saying what is wrong with it."""
    path = value.removeprefix(FILE_MARK)
    if why := path_objection(directory, path, "file"):
        raise ValueError(why)
    with (directory / path).open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"{path} is longer than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8") from error
