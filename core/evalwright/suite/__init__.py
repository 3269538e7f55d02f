"""Suites: find, read, check and author them."""

from evalwright.suite.author import add_case, add_cases, add_scorer, add_suite
from evalwright.suite.importing import Description, describe, place_aside, settle, write_imported
from evalwright.suite.load import CheckedSuite, load_scorers, load_suite
from evalwright.suite.lookup import find_suite
from evalwright.suite.sample import write_sample

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
