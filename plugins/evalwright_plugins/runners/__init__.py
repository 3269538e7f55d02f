"""Runners that come with Evalwright."""
