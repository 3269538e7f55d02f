"""What a run shows: verdicts recomputed from sealed artifacts, their hash, and the forms for people and tools."""

from typing import TYPE_CHECKING

from evalwright.lazy import lazy

if TYPE_CHECKING:
    from evalwright.report.experiment import ExperimentView, read_experiment, read_subject
    from evalwright.report.explain import explain_trial, explanation_text
    from evalwright.report.forms.junit import durations_of, junit_report
    from evalwright.report.forms.markdown import markdown_lines, markdown_report
    from evalwright.report.forms.text import case_lines, text_report
    from evalwright.report.projection import Projection, ReportedCase, project
    from evalwright.report.totals import rates, status_counts
    from evalwright.report.trials import RunRows, Trial, rows_of
    from evalwright.report.verify import verify_run
    from evalwright.report.view import StoredRun, report_document
else:
    __getattr__ = lazy(
        __name__,
        {
            ".experiment": "ExperimentView read_experiment read_subject",
            ".explain": "explain_trial explanation_text",
            ".forms.junit": "durations_of junit_report",
            ".forms.markdown": "markdown_lines markdown_report",
            ".forms.text": "case_lines text_report",
            ".projection": "Projection ReportedCase project",
            ".totals": "rates status_counts",
            ".trials": "RunRows Trial rows_of",
            ".verify": "verify_run",
            ".view": "StoredRun report_document",
        },
    )

__all__ = [
    "ExperimentView",
    "Projection",
    "ReportedCase",
    "RunRows",
    "StoredRun",
    "Trial",
    "case_lines",
    "durations_of",
    "explain_trial",
    "explanation_text",
    "junit_report",
    "markdown_lines",
    "markdown_report",
    "project",
    "rates",
    "read_experiment",
    "read_subject",
    "report_document",
    "rows_of",
    "status_counts",
    "text_report",
    "verify_run",
]
