"""The verb ``work``, one module for each group of its actions."""
