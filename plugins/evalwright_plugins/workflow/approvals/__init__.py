"""Decisions of people, and how they hear that one is wanted."""
