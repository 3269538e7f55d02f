"""Whether a run meets a policy, in three values: what nobody verified never passes."""

from evalwright_plugins.workflow.policies.evaluation import Result, Verdict, evaluate
from evalwright_plugins.workflow.policies.facts import Facts

__all__ = ["Facts", "Result", "Verdict", "evaluate"]
