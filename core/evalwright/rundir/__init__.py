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
        write_pieces,
        write_text,
    )
    from evalwright.rundir.identity import IDENTITY_CASES, identity_in_brief
    from evalwright.rundir.index import append_summary, read_summaries
    from evalwright.rundir.layout import OUR_FORMAT, Layout, RunDirectory, abandoned, check_id, find_run, is_experiment, runs_in
    from evalwright.rundir.rows import read_around, read_rows
    from evalwright.rundir.services import read_services, write_services
    from evalwright.rundir.shared import SharedFile
else:
    __getattr__ = lazy(
        __name__,
        {
            ".bundle": "DETERMINISTIC BundleWriter changed_artifacts sealed_digests",
            ".documents": "disk_errors read_document read_object render_compact write_document write_pieces write_text",
            ".identity": "IDENTITY_CASES identity_in_brief",
            ".index": "append_summary read_summaries",
            ".layout": "OUR_FORMAT Layout RunDirectory abandoned check_id find_run is_experiment runs_in",
            ".rows": "read_around read_rows",
            ".services": "read_services write_services",
            ".shared": "SharedFile",
        },
    )

__all__ = [
    "DETERMINISTIC",
    "IDENTITY_CASES",
    "OUR_FORMAT",
    "BundleWriter",
    "Layout",
    "RunDirectory",
    "SharedFile",
    "abandoned",
    "append_summary",
    "changed_artifacts",
    "check_id",
    "disk_errors",
    "find_run",
    "identity_in_brief",
    "is_experiment",
    "read_around",
    "read_document",
    "read_object",
    "read_rows",
    "read_services",
    "read_summaries",
    "render_compact",
    "runs_in",
    "sealed_digests",
    "write_document",
    "write_pieces",
    "write_services",
    "write_text",
]
