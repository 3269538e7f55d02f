#!/usr/bin/env python3
"""The agent that builds: the repair agent of the QuixBugs example, with so little patience that it gives up."""

from repairing import commit, repaired

commit("Repair bucketsort", repaired(budget=40))
