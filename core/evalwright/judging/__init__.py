"""The core's side of judging: cache, limits, retries and the reading of verdicts. A judge plugin only carries questions."""

from evalwright.judging.cache import ReplyCache
from evalwright.judging.limits import Limits
from evalwright.judging.patient import PatientJudge
from evalwright.judging.reading import read_verdict
from evalwright.judging.tables import Judging, judge_secrets, judge_variables
from evalwright.judging.tally import Tally, spent_on

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
