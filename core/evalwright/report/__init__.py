"""What a run shows: verdicts recomputed from sealed artifacts, their hash, and the forms for people and tools."""

from evalwright.report.explain import explain_trial, explanation_text
from evalwright.report.junit import durations_of, junit_report
from evalwright.report.markdown import markdown_report
from evalwright.report.projection import Projection, ReportedCase, project
from evalwright.report.text import case_lines, text_report
from evalwright.report.totals import rates, status_counts
from evalwright.report.verify import verify_run
from evalwright.report.view import StoredRun, report_document

__all__ = [
    "Projection",
    "ReportedCase",
    "StoredRun",
    "case_lines",
    "durations_of",
    "explain_trial",
    "explanation_text",
    "junit_report",
    "markdown_report",
    "project",
    "rates",
    "report_document",
    "status_counts",
    "text_report",
    "verify_run",
]
