"""Judges of a test are closed at its end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.judging.asking import MADE, SECONDS

from evalwright.interfaces import Deadline


@pytest.fixture(autouse=True)
def close_judges() -> Iterator[None]:
    yield
    while MADE:
        MADE.pop().close(Deadline.after(SECONDS))
