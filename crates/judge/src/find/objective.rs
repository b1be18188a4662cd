//! What a search asks of each request, so that an objective on a stage becomes a claim on a mean or on a share.

use ttft_model::{Outcome, Record};

use super::sequential::{Mean, Says, Share};
use crate::metrics::{self, Metric};
use crate::quantile::PERCENTILES;
use crate::series::design_effect;
use crate::slo::{Comparison, Slo, Subject};
use crate::{Error, Samples};

/// An objective as a claim on scores, one score a request.
#[derive(Debug, Clone)]
pub(super) struct Objective {
    /// As it was written.
    pub(super) text: String,
    score: Score,
    /// Of a share of misses: what is allowed. `None` where the mean of the scores must be below 0.
    pub(super) allowed: Option<f64>,
    comparison: Comparison,
    threshold: f64,
}

#[derive(Debug, Clone)]
enum Score {
    /// 1 if the value of the metric is on the wrong side.
    Beyond(&'static Metric),
    /// How far the value is on the wrong side.
    Excess(&'static Metric),
    /// Of all gaps of the request: those on the wrong side, less what is allowed of them.
    Gaps(&'static str, f64),
    /// How far its mean gap is on the wrong side, times its gaps.
    GapExcess(&'static str),
    /// 1 if any of these is missed, or the request failed.
    Good(Vec<(&'static Metric, Comparison, f64)>),
    /// 1 if the request failed.
    Failed,
}

/// What an objective says of the scores so far.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    pub(super) says: Says,
    /// The estimate is on the right side.
    pub(super) leans: bool,
    /// Share of misses, or mean excess.
    pub(super) value: f64,
    /// What is not ruled out of it.
    pub(super) interval: [f64; 2],
    pub(super) n: u64,
    /// How many requests in all would make it clear if they went on like this.
    pub(super) enough: Option<f64>,
}

impl Objective {
    /// The claims behind objectives; an error for one that no search can be made for.
    pub(super) fn all(slos: &[Slo]) -> Result<Vec<Self>, Error> {
        let single: Vec<_> = slos
            .iter()
            .filter_map(|slo| match slo.subject {
                Subject::Metric(metric, _) => Some((metric, slo.comparison, slo.threshold)),
                _ => None,
            })
            .collect();
        let good = slos.iter().any(|slo| matches!(slo.subject, Subject::Goodput));
        let mut all = Vec::new();
        for slo in slos {
            let no = |why: &'static str| Err(Error::NotSearchable { text: slo.text.clone(), why });
            let upper = matches!(slo.comparison, Comparison::Below | Comparison::AtMost);
            let (score, allowed) = match &slo.subject {
                Subject::Metric(_, None) if good => continue,
                Subject::Metric(_, None) => {
                    return no("asks it of every request, which no number of requests can show; \
                         ask for a percentile, as in `ttft_p99<2s`, or add `goodput>0.95`");
                }
                Subject::Metric(metric, Some(of)) if of.0 == "mean" => (Score::Excess(metric), None),
                Subject::Gaps(metric, of) if of.0 == "mean" => (Score::GapExcess(metric), None),
                Subject::Metric(metric, Some(of)) => match beyond(of.0, upper) {
                    Some(allowed) => (Score::Beyond(metric), Some(allowed)),
                    None => return no("is about the extreme of all requests; ask for a percentile"),
                },
                Subject::Gaps(metric, of) => match beyond(of.0, upper) {
                    Some(allowed) => (Score::Gaps(metric, allowed), None),
                    None => return no("is about the extreme of all gaps; ask for a percentile"),
                },
                Subject::Goodput if upper => return no("has no limit from above; write `goodput>0.95`"),
                Subject::Goodput if single.is_empty() => {
                    return no("needs an objective on requests beside it, such as `ttft<2s`");
                }
                Subject::Goodput => (Score::Good(single.clone()), Some(1.0 - slo.threshold)),
                Subject::ErrorRate if !upper => return no("has no limit from above; write `error_rate<1%`"),
                Subject::ErrorRate => (Score::Failed, Some(slo.threshold)),
                Subject::RequestRate | Subject::OutputRate => {
                    return no("is about throughput, which more load does not lower; ask for a latency");
                }
            };
            if allowed.is_some_and(|share| !(share > 0.0 && share < 1.0)) {
                return no("leaves no room for a single miss, or allows all of them");
            }
            let (comparison, threshold) = (slo.comparison, slo.threshold);
            all.push(Self { text: slo.text.clone(), score, allowed, comparison, threshold });
        }
        if all.is_empty() { Err(Error::NothingToSearch) } else { Ok(all) }
    }

    /// Whether it looks at anything behind the first token, which lasts longer than a start.
    pub(super) fn looks_at_decoding(&self) -> bool {
        let early = |metric: &Metric| {
            ["ttft", "ttfb", "header", "connect", "dns", "tcp", "tls", "send", "upload", "rtt"]
                .iter()
                .any(|name| metric.name.starts_with(name))
        };
        match &self.score {
            Score::Beyond(metric) | Score::Excess(metric) => !early(metric),
            Score::Good(of) => of.iter().any(|(metric, ..)| !early(metric)),
            Score::Gaps(..) | Score::GapExcess(_) => true,
            Score::Failed => false,
        }
    }

    /// The score of a request that ran to its end; `None` where it has nothing to say.
    pub(super) fn score(&self, r: &Record) -> Option<f64> {
        let ok = r.outcome() == Outcome::Ok;
        let miss = |missed: bool| Some(f64::from(u8::from(missed)));
        let holds = |value: f64| self.comparison.holds(value, self.threshold);
        let sign = if matches!(self.comparison, Comparison::Below | Comparison::AtMost) { 1.0 } else { -1.0 };
        match &self.score {
            Score::Failed => miss(!ok),
            Score::Beyond(_) if !ok => miss(true),
            Score::Beyond(metric) => miss(!holds((metric.of)(r)?)),
            Score::Good(all) => {
                let met = |(metric, comparison, threshold): &(&Metric, Comparison, f64)| {
                    (metric.of)(r).is_some_and(|value| comparison.holds(value, *threshold))
                };
                miss(!(ok && all.iter().all(met)))
            }
            _ if !ok => None,
            Score::Excess(metric) => Some(sign * ((metric.of)(r)? - self.threshold)),
            Score::Gaps(name, allowed) => {
                let gaps = gaps_of(r, name);
                let beyond = gaps.iter().filter(|gap| !holds(gap.0)).map(|gap| gap.1).sum::<f64>();
                (!gaps.is_empty()).then(|| beyond - allowed * gaps.iter().map(|gap| gap.1).sum::<f64>())
            }
            Score::GapExcess(name) => {
                let gaps = gaps_of(r, name);
                let excess = gaps.iter().map(|(ms, weight)| sign * (ms - self.threshold) * weight).sum();
                (!gaps.is_empty()).then_some(excess)
            }
        }
    }

    /// What scores in order of their requests' starts say, at an error of `alpha` over all looks; `most` is how many
    /// there may be at all. Scores that depend on their neighbours count for fewer.
    pub(super) fn judge(&self, scores: &[f64], alpha: f64, most: f64) -> Verdict {
        let n = scores.len() as u64;
        let effect = dependence(scores);
        let of = n as f64 / effect;
        let seen: Samples = scores.iter().copied().collect();
        let (mean, stddev) = (seen.mean().unwrap_or(0.0), seen.stddev().unwrap_or(0.0));
        if let Some(allowed) = self.allowed {
            let share = Share { misses: mean * of, of };
            let enough = share.enough(allowed, alpha, most / effect).map(|of| of * effect);
            let interval = share.interval(allowed, alpha);
            let says = share.says(allowed, alpha);
            return Verdict { says, leans: mean <= allowed, value: mean, interval, n, enough };
        }
        let seen = Mean { value: mean, stddev, of };
        let half = seen.half(alpha).unwrap_or(f64::INFINITY);
        let interval = [mean - half, mean + half];
        Verdict { says: seen.says(alpha), leans: mean <= 0.0, value: mean, interval, n, enough: None }
    }
}

/// How many times larger the variance of the scores' mean is than if each were independent of its neighbours: of batch
/// means, or of the first autocorrelations as long as pairs of them are positive (Geyer, *Practical Markov chain Monte
/// Carlo*, Statistical Science 7, 1992), which tells it of few scores as well. One slow step of an engine delays all
/// that run together, so misses come in crowds.
fn dependence(scores: &[f64]) -> f64 {
    let n = scores.len();
    let mean = scores.iter().sum::<f64>() / n.max(1) as f64;
    let covariance = |lag: usize| -> f64 {
        scores.iter().zip(scores.get(lag..).unwrap_or_default()).map(|(a, b)| (a - mean) * (b - mean)).sum()
    };
    let variance = covariance(0);
    if variance <= 0.0 {
        return 1.0;
    }
    let pairs = (0..n / 4).map(|m| (covariance(2 * m) + covariance(2 * m + 1)) / variance);
    let effect = 2.0 * pairs.take_while(|pair| *pair > 0.0).sum::<f64>() - 1.0;
    effect.max(design_effect(scores.iter().copied())).clamp(1.0, n as f64)
}

/// The share of values that a percentile allows on the wrong side of its threshold.
fn beyond(name: &str, upper: bool) -> Option<f64> {
    let (_, p) = PERCENTILES.iter().find(|(known, _)| *known == name)?;
    Some(if upper { 1.0 - p } else { *p })
}

/// The gaps of a request in that metric's words, with how often each counts.
fn gaps_of(r: &Record, name: &str) -> Vec<(f64, f64)> {
    let gaps = metrics::gaps(r).into_iter();
    if name == "itl" {
        gaps.filter_map(|gap| Some((gap.itl?, gap.weight as f64))).collect()
    } else {
        gaps.map(|gap| (gap.ms, 1.0)).collect()
    }
}
