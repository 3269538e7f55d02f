"""Evalwright measures agents: suites of cases, isolated trials, sealed evidence, honest statistics."""

__version__ = "0.1.0"

__all__ = ["__version__"]
