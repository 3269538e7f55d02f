"""What a run shows: verdicts recomputed from sealed artifacts, their hash, and the forms for people and tools."""

from evalwright.report.experiment import ExperimentView, read_experiment, read_subject
from evalwright.report.explain import explain_trial, explanation_text
from evalwright.report.junit import junit_report
from evalwright.report.markdown import markdown_report
from evalwright.report.projection import Projection, ReportedCase, project
from evalwright.report.text import case_lines, text_report
from evalwright.report.totals import rates, status_counts
from evalwright.report.trials import RunRows, Trial, rows_of
from evalwright.report.verify import verify_run

__all__ = [
    "ExperimentView",
    "Projection",
    "ReportedCase",
    "RunRows",
    "Trial",
    "case_lines",
    "explain_trial",
    "explanation_text",
    "junit_report",
    "markdown_report",
    "project",
    "rates",
    "read_experiment",
    "read_subject",
    "rows_of",
    "status_counts",
    "text_report",
    "verify_run",
]
