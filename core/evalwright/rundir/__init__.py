"""Runs and experiments on disk: the only code that knows their file names.

What needs the ledger, the experiment's record, is imported from ``evalwright.rundir.experiment``: workers do without.
"""

from typing import TYPE_CHECKING

from evalwright.lazy import lazy

if TYPE_CHECKING:
    from evalwright.rundir.bundle import DETERMINISTIC, BundleWriter, changed_artifacts, sealed_digests
    from evalwright.rundir.documents import (
        disk_errors,
        read_document,
        read_object,
        render_compact,
        write_document,
        write_text,
    )
    from evalwright.rundir.index import append_summary, read_summaries
    from evalwright.rundir.layout import OUR_FORMAT, Layout, RunDirectory, abandoned, check_id, find_run, is_experiment, runs_in
    from evalwright.rundir.services import read_services, write_services
else:
    __getattr__ = lazy(
        __name__,
        {
            ".bundle": "DETERMINISTIC BundleWriter changed_artifacts sealed_digests",
            ".documents": "disk_errors read_document read_object render_compact write_document write_text",
            ".index": "append_summary read_summaries",
            ".layout": "OUR_FORMAT Layout RunDirectory abandoned check_id find_run is_experiment runs_in",
            ".services": "read_services write_services",
        },
    )

__all__ = [
    "DETERMINISTIC",
    "OUR_FORMAT",
    "BundleWriter",
    "Layout",
    "RunDirectory",
    "abandoned",
    "append_summary",
    "changed_artifacts",
    "check_id",
    "disk_errors",
    "find_run",
    "is_experiment",
    "read_document",
    "read_object",
    "read_services",
    "read_summaries",
    "render_compact",
    "runs_in",
    "sealed_digests",
    "write_document",
    "write_services",
    "write_text",
]
