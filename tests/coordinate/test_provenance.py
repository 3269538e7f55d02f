"""What made a run, on its record."""

from __future__ import annotations

import platform

from evalwright.coordinate import provenance_of


def test_platform_and_python_are_named_as_the_standard_library_names_them() -> None:
    record = provenance_of(["evalwright", "run"], [])

    assert record["platform"] == platform.platform()
    assert record["python"] == platform.python_version()
