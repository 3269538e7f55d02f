"""Runs that are killed again and again, and what must be true of each of them in the end."""
