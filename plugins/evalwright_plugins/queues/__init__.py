"""Queues that come with Evalwright."""
