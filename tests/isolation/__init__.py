"""Hostile programs against every sandbox: what they reach, as tests and as the table of ``docs/explanation/isolation.md``."""
