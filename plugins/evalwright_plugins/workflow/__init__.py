"""Workflows: several agents in turn work on one change in a git repository, with checks, budgets and human gates between.

Rooms: ``model`` (the files that users write), ``record`` (the ledger's events and the state that they add up to),
``workspace`` (git), ``findings``, ``evidence`` and ``policies`` (pure judgement), ``approvals`` (decisions of people),
``drive`` (one step after another), ``commands`` (the verb ``work``), ``runner`` (a workflow as an agent of a suite).
"""
