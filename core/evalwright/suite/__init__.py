"""Suites: find, read, check and author them."""

from evalwright.suite.author import add_case, add_cases, add_scorer, add_suite
from evalwright.suite.importing import write_imported
from evalwright.suite.load import CheckedSuite, load_scorers, load_suite
from evalwright.suite.lookup import find_suite
from evalwright.suite.sample import write_sample

__all__ = [
    "CheckedSuite",
    "add_case",
    "add_cases",
    "add_scorer",
    "add_suite",
    "find_suite",
    "load_scorers",
    "load_suite",
    "write_imported",
    "write_sample",
]
