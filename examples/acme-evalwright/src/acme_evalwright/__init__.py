"""Acme's plugins for Evalwright, each in a module of its own that is imported only when a suite names it."""
