//! How values of one kind are spread: mean and percentiles.

use serde::Serialize;

/// A distribution in a few figures. Percentiles are linear between neighbours (Hyndman and Fan, type 7).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Spread {
    pub n: u64,
    pub mean: f64,
    pub min: f64,
    pub p1: f64,
    pub p5: f64,
    pub p25: f64,
    pub p50: f64,
    pub p75: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

impl Spread {
    /// Of these values; `None` of none.
    pub fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        let (min, max) = (*values.first()?, *values.last()?);
        let quantile = |p: f64| {
            let at = (values.len() - 1) as f64 * p;
            let below = at.floor() as usize;
            let next = values[(below + 1).min(values.len() - 1)];
            values[below] + (next - values[below]) * at.fract()
        };
        Some(Self {
            n: values.len() as u64,
            mean: values.iter().sum::<f64>() / values.len() as f64,
            min,
            p1: quantile(0.01),
            p5: quantile(0.05),
            p25: quantile(0.25),
            p50: quantile(0.5),
            p75: quantile(0.75),
            p90: quantile(0.9),
            p95: quantile(0.95),
            p99: quantile(0.99),
            max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_between_neighbours() {
        assert_eq!(Spread::of(Vec::new()), None);
        let one = Spread::of(vec![7.0]).unwrap();
        assert_eq!((one.min, one.p50, one.p99, one.max, one.mean), (7.0, 7.0, 7.0, 7.0, 7.0));
        let few = Spread::of(vec![4.0, 1.0, 2.0]).unwrap();
        assert_eq!((few.p25, few.p50, few.p75, few.n), (1.5, 2.0, 3.0, 3));
    }
}
