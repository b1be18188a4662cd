//! What can be wrong with what a user asks of the statistics.

/// An objective that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No `<`, `<=`, `>` or `>=` in it.
    #[error("objective `{0}` has no comparison; write it as `ttft_p95<2s` or `tpot<50ms`")]
    NoComparison(String),
    /// The metric is not one of ours.
    #[error("objective `{text}`: no metric is called `{name}`; did you mean `{nearest}`? known are {known}")]
    UnknownMetric {
        /// The whole objective.
        text: String,
        /// What stood for a metric.
        name: String,
        /// The known name that looks most like it.
        nearest: String,
        /// All known names.
        known: String,
    },
    /// The statistic behind the metric is not one of ours.
    #[error(
        "objective `{text}`: `{name}` is no statistic of `{metric}`; known are mean, min, max, p1, p5, p10, p25, p50, p75, p90, p95, p99, p99_9"
    )]
    UnknownStatistic {
        /// The whole objective.
        text: String,
        /// What stood for a statistic.
        name: String,
        /// The metric before it.
        metric: String,
    },
    /// The threshold has no unit, so that seconds and milliseconds could be confused.
    #[error("objective `{text}`: say the unit of `{value}`, as in `{value}ms` or `{value}s`")]
    NoUnit {
        /// The whole objective.
        text: String,
        /// The bare number.
        value: String,
    },
    /// The threshold is no length of time.
    #[error("objective `{text}`: {source}")]
    Threshold {
        /// The whole objective.
        text: String,
        /// What is wrong with the threshold.
        source: ttft_model::ParseUnitError,
    },
    /// The threshold is no number or share.
    #[error("objective `{text}`: `{value}` is no number; write it as `10` or `1%`")]
    Number {
        /// The whole objective.
        text: String,
        /// What stood for a number.
        value: String,
    },
    /// No search can be made for it.
    #[error("objective `{text}` {why}")]
    NotSearchable {
        /// The whole objective.
        text: String,
        /// Why not, and what to ask for instead.
        why: &'static str,
    },
    /// A search without an objective.
    #[error("there is nothing to look for: give an objective, as in `ttft_p95<2s`")]
    NothingToSearch,
    /// A search between levels that hold nothing.
    #[error(
        "cannot search a {axis} between {low} and {high}: the first must be above 0 and not above the second, and users are whole"
    )]
    Bounds {
        /// What is varied.
        axis: &'static str,
        /// The smallest level.
        low: String,
        /// The largest one.
        high: String,
    },
    /// A bound that nothing measured can keep.
    #[error("objective `{0}`: nothing can keep it")]
    Impossible(String),
    /// Two bounds that exclude each other.
    #[error("objectives `{first}` and `{second}`: no run can keep both")]
    Exclusive {
        /// The lower bound.
        first: String,
        /// The upper bound.
        second: String,
    },
    /// The metric has many values a request, so it needs a statistic.
    #[error(
        "objective `{text}`: `{metric}` has many values a request; ask for a statistic of it, as in `{metric}_p99`"
    )]
    GapsNeedStatistic {
        /// The whole objective.
        text: String,
        /// The metric.
        metric: String,
    },
}
