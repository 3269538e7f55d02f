"""What a step left behind: failures that are recognised again, and passed evidence that need not be made twice."""

from evalwright_plugins.workflow.evidence.failure import both_ends, failure_fingerprint, same_failure
from evalwright_plugins.workflow.evidence.index import EvidenceIndex
from evalwright_plugins.workflow.evidence.normal import normalised
from evalwright_plugins.workflow.evidence.reuse import reuse_key

__all__ = ["EvidenceIndex", "both_ends", "failure_fingerprint", "normalised", "reuse_key", "same_failure"]
