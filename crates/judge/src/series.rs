//! A stage's requests in the order of their starts, thinned evenly when there are very many.

use ttft_model::{Nanos, Record};

use crate::metrics;

/// So many are kept at most (about 2 MiB).
const LIMIT: usize = 1 << 16;

/// What is kept of one request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) seq: u64,
    pub(crate) started: Nanos,
    pub(crate) ttft_ms: f64,
    /// From start to end.
    pub(crate) total_ms: f64,
    /// Generated tokens, where somebody counted.
    pub(crate) output: Option<u64>,
}

/// Ok requests of a stage. Which are kept depends on their numbers alone, not on the order in which they come.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    points: Vec<Point>,
    /// Every so many are kept.
    stride: u64,
}

impl Default for Series {
    fn default() -> Self {
        Self { points: Vec::new(), stride: 1 }
    }
}

impl Series {
    /// Keeps a request, if it has a first token and its turn comes.
    pub(crate) fn push(&mut self, r: &Record) {
        if let Some(ttft_ms) = metrics::ttft(r)
            && r.seq.is_multiple_of(self.stride)
        {
            let total_ms = (r.finished - r.phases.started).as_millis_f64();
            let (seq, started, output) = (r.seq, r.phases.started, r.answer.output_tokens());
            self.points.push(Point { seq, started, ttft_ms, total_ms, output });
            self.thin();
        }
    }

    /// Adds another one.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.points.extend_from_slice(&other.points);
        self.stride = self.stride.max(other.stride);
        self.keep_in_turn();
        self.thin();
    }

    /// In the order of their starts.
    pub(crate) fn finish(mut self) -> Vec<Point> {
        self.points.sort_unstable_by_key(|p| (p.started, p.seq));
        self.points
    }

    fn thin(&mut self) {
        while self.points.len() > LIMIT {
            self.stride *= 2;
            self.keep_in_turn();
            if self.stride > u64::MAX / 4 {
                // Numbers that are all the same cannot be thinned by them.
                self.points.truncate(LIMIT);
            }
        }
    }

    fn keep_in_turn(&mut self) {
        let stride = self.stride;
        self.points.retain(|p| p.seq.is_multiple_of(stride));
    }
}

/// How many times larger the variance of a mean is than if the values were independent: batch means over twenty
/// batches in order (Law and Kelton, *Simulation Modeling and Analysis*, 9.5.3), never below one. Few values are
/// taken for independent.
pub(crate) fn design_effect(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    const BATCHES: usize = 20;
    const FEW: usize = 5 * BATCHES;
    let n = values.len();
    if n < FEW {
        return 1.0;
    }
    let size = n / BATCHES;
    let values: Vec<f64> = values.take(size * BATCHES).collect();
    let Some((_, within)) = moments(values.iter().copied()) else { return 1.0 };
    let batches = values.chunks(size).map(|batch| batch.iter().sum::<f64>() / size as f64);
    let Some((_, between)) = moments(batches) else { return 1.0 };
    if within > 0.0 { (size as f64 * between / within).clamp(1.0, size as f64) } else { 1.0 }
}

/// Mean and sample variance; `None` of fewer than two.
pub(crate) fn moments(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let samples: crate::Samples = values.collect();
    Some((samples.mean()?, samples.stddev()?.powi(2)))
}

/// The rank of each value among all, from ½/n to 1 − ½/n; equal values share their mean rank.
pub(crate) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut below = 0;
    for tied in order.chunk_by(|a, b| values[*a].total_cmp(&values[*b]).is_eq()) {
        let rank = (below as f64 + tied.len() as f64 / 2.0) / values.len() as f64;
        for i in tied {
            ranks[*i] = rank;
        }
        below += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(seq: u64) -> Record {
        let mut r = Record { seq, ..Record::default() };
        r.phases.started = Nanos(seq as i64);
        r.answer.first_token = Some(ttft_model::Stamp::user(Nanos(seq as i64 + 1_000_000)));
        r
    }

    #[test]
    fn very_many_are_thinned_evenly_whatever_their_order() {
        let n = 3 * LIMIT as u64;
        let (mut forth, mut back) = (Series::default(), Series::default());
        (0..n).for_each(|seq| forth.push(&record(seq)));
        (0..n).rev().for_each(|seq| back.push(&record(seq)));
        let forth = forth.finish();
        assert_eq!(forth, back.finish());
        assert_eq!((forth.len() as u64, forth[1].seq), (n / 4, 4));
    }

    #[test]
    fn what_depends_on_its_neighbours_counts_for_less() {
        let independent = (0..2000u64).map(|i| (i * 7_919 % 2003) as f64);
        assert!(design_effect(independent.collect::<Vec<_>>().into_iter()) < 2.0);
        let waves: Vec<f64> = (0..2000u64).map(|i| (i / 50 * 7_919 % 41) as f64).collect();
        assert!(design_effect(waves.into_iter()) > 10.0);
        assert_eq!(design_effect([1.0; 10].into_iter()).to_bits(), 1f64.to_bits());
    }

    #[test]
    fn ties_share_their_rank() {
        assert_eq!(ranks(&[5.0, 1.0, 5.0, 9.0]), [0.5, 0.125, 0.5, 0.875]);
    }
}
