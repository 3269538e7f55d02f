"""Find out whether a suite can tell a good agent from one that does nothing, and whether its gold is out of reach."""

from evalwright.audit.audit import audit_suite
from evalwright.audit.leak import DEFAULT_SECONDS, leak_test
from evalwright.audit.text import audit_text, leak_text

__all__ = ["DEFAULT_SECONDS", "audit_suite", "audit_text", "leak_test", "leak_text"]
