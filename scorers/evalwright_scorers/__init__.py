"""Scorers that come with Evalwright, one file per family."""
