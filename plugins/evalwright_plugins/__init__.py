"""Runners, sandboxes, queues and observers that come with Evalwright."""
