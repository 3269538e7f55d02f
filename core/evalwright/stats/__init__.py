"""Statistics of experiments: pure functions of numbers, each with the source of its formula."""

from typing import TYPE_CHECKING

from evalwright.lazy import lazy

if TYPE_CHECKING:
    from evalwright.stats.bands import Band, Stability, band, flip_rate, flip_rates, intersection_at_k, stability, union_at_k
    from evalwright.stats.comparison import Answer, Comparison, compare
    from evalwright.stats.findings import FindingCounts, FindingScores, finding_scores, macro_scores, micro_scores
    from evalwright.stats.multiplicity import holm, look_alpha
    from evalwright.stats.outcomes import Interval, Outcomes
    from evalwright.stats.passk import SuitePassK, pass_at_k, pass_hat_k, suite_pass_at_k, suite_pass_hat_k
    from evalwright.stats.power import (
        VarianceComponents,
        minimum_detectable_effect,
        needed_cases,
        needed_repeats,
        variance_components,
    )
    from evalwright.stats.ranks import Rank, finding_ranks
    from evalwright.stats.raters import Agreement, McNemar, agreement, mcnemar
    from evalwright.stats.rates import Estimate, Rate, macro_mean, rate, wilson
    from evalwright.stats.resources import ResourceDifference, resource_difference
else:
    __getattr__ = lazy(
        __name__,
        {
            ".bands": "Band Stability band flip_rate flip_rates intersection_at_k stability union_at_k",
            ".comparison": "Answer Comparison compare",
            ".findings": "FindingCounts FindingScores finding_scores macro_scores micro_scores",
            ".multiplicity": "holm look_alpha",
            ".outcomes": "Interval Outcomes",
            ".passk": "SuitePassK pass_at_k pass_hat_k suite_pass_at_k suite_pass_hat_k",
            ".power": "VarianceComponents minimum_detectable_effect needed_cases needed_repeats variance_components",
            ".ranks": "Rank finding_ranks",
            ".raters": "Agreement McNemar agreement mcnemar",
            ".rates": "Estimate Rate macro_mean rate wilson",
            ".resources": "ResourceDifference resource_difference",
        },
    )

__all__ = [
    "Agreement",
    "Answer",
    "Band",
    "Comparison",
    "Estimate",
    "FindingCounts",
    "FindingScores",
    "Interval",
    "McNemar",
    "Outcomes",
    "Rank",
    "Rate",
    "ResourceDifference",
    "Stability",
    "SuitePassK",
    "VarianceComponents",
    "agreement",
    "band",
    "compare",
    "finding_ranks",
    "finding_scores",
    "flip_rate",
    "flip_rates",
    "holm",
    "intersection_at_k",
    "look_alpha",
    "macro_mean",
    "macro_scores",
    "mcnemar",
    "micro_scores",
    "minimum_detectable_effect",
    "needed_cases",
    "needed_repeats",
    "pass_at_k",
    "pass_hat_k",
    "rate",
    "resource_difference",
    "stability",
    "suite_pass_at_k",
    "suite_pass_hat_k",
    "union_at_k",
    "variance_components",
    "wilson",
]
