"""The core's side of judging: cache, limits, retries and the reading of verdicts. A judge plugin only carries questions."""

from typing import TYPE_CHECKING

from evalwright.lazy import lazy

if TYPE_CHECKING:
    from evalwright.judging.cache import ReplyCache
    from evalwright.judging.limits import Limits
    from evalwright.judging.patient import PatientJudge
    from evalwright.judging.reading import read_verdict
    from evalwright.judging.tables import Judging, judge_secrets, judge_variables
    from evalwright.judging.tally import Tally, spent_on
else:
    __getattr__ = lazy(
        __name__,
        {
            ".cache": "ReplyCache",
            ".limits": "Limits",
            ".patient": "PatientJudge",
            ".reading": "read_verdict",
            ".tables": "Judging judge_secrets judge_variables",
            ".tally": "Tally spent_on",
        },
    )

__all__ = [
    "Judging",
    "Limits",
    "PatientJudge",
    "ReplyCache",
    "Tally",
    "judge_secrets",
    "judge_variables",
    "read_verdict",
    "spent_on",
]
