"""Suites: find, read, check and author them."""

from typing import TYPE_CHECKING

from evalwright.lazy import lazy

if TYPE_CHECKING:
    from evalwright.suite.author import add_case, add_cases, add_scorer, add_suite
    from evalwright.suite.importing import Description, describe, place_aside, settle, write_imported
    from evalwright.suite.load import CheckedSuite, load_scorers, load_suite
    from evalwright.suite.lookup import find_suite
    from evalwright.suite.sample import write_sample
else:
    __getattr__ = lazy(
        __name__,
        {
            ".author": "add_case add_cases add_scorer add_suite",
            ".importing": "Description describe place_aside settle write_imported",
            ".load": "CheckedSuite load_scorers load_suite",
            ".lookup": "find_suite",
            ".sample": "write_sample",
        },
    )

__all__ = [
    "CheckedSuite",
    "Description",
    "add_case",
    "add_cases",
    "add_scorer",
    "add_suite",
    "describe",
    "find_suite",
    "load_scorers",
    "load_suite",
    "place_aside",
    "settle",
    "write_imported",
    "write_sample",
]
