"""Find out whether a suite can tell a good agent from one that does nothing."""

from evalwright.audit.audit import audit_suite
from evalwright.audit.text import audit_text

__all__ = ["audit_suite", "audit_text"]
