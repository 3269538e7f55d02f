"""Adapters that come with Evalwright, one module or package per foreign format."""
