"""Sandboxes that come with Evalwright."""
