//! The sources of one stage as one server: what diagnosis asks, whatever the number of engines behind an endpoint.

use ttft_sources::{Distribution, Measured, Quantile, Reading, Role, Shape};

use super::{LevelRange, SourceStage};

/// What grew and what stood, over one stage.
#[derive(Debug, Clone, Default)]
pub(crate) struct View<'a> {
    sources: Vec<(&'a SourceStage, Vec<&'a Reading>)>,
}

/// A distribution of times of one or several engines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Times<'a> {
    /// How many.
    pub(crate) count: f64,
    /// Exact, in milliseconds.
    pub(crate) mean_ms: Option<f64>,
    /// What the buckets say, where there is one engine: quantiles of several cannot be put together.
    pub(crate) one: Option<&'a Distribution>,
}

impl Times<'_> {
    /// The median or the 95th percentile, in seconds as the page has it.
    pub(crate) fn quantile(&self, name: &str) -> Option<Quantile> {
        let at = ttft_sources::PROBABILITIES.iter().position(|(_, known)| *known == name)?;
        self.one?.quantiles[at]
    }
}

/// Whether a total fell from scrape to scrape: the edges alone do not show a restart after which more came than before.
fn falls(source: &SourceStage, end: Option<&Reading>) -> bool {
    let totals = ttft_sources::names().filter(|(_, shape)| *shape == Shape::Total);
    totals.into_iter().any(|(name, _)| {
        let between = source.levels.iter().filter_map(|scrape| scrape.values.get(name).copied());
        let last = end.and_then(|reading| reading.values.get(name)?.number());
        let values: Vec<f64> = between.chain(last).collect();
        values.windows(2).any(|pair| pair[1] < pair[0])
    })
}

impl<'a> View<'a> {
    pub(crate) fn of(sources: impl Iterator<Item = &'a SourceStage>) -> Self {
        let readings = |source: &'a SourceStage| -> Vec<&'a Reading> {
            source.reading.iter().flat_map(|reading| std::iter::once(reading).chain(&reading.also)).collect()
        };
        Self { sources: sources.map(|source| (source, readings(source))).collect() }
    }

    /// Pages in that role whose window can be used.
    fn readings(&self, role: Role) -> impl Iterator<Item = &'a Reading> {
        let all = self.sources.iter().flat_map(|(_, readings)| readings.iter().copied());
        all.filter(move |reading| reading.role == Some(role) && reading.window.is_some())
    }

    /// The first engine, by its name for people.
    pub(crate) fn engine(&self) -> Option<&'a Reading> {
        self.readings(Role::Engine).next()
    }

    /// The first gateway.
    pub(crate) fn gateway(&self) -> Option<&'a Reading> {
        self.readings(Role::Gateway).next()
    }

    /// A source that an edge is missing of.
    pub(crate) fn lost_edge(&self) -> Option<&'a str> {
        self.sources.iter().find(|(source, _)| source.reading.is_none()).map(|(s, _)| s.source.as_str())
    }

    /// Where counters began anew, or another process answered.
    pub(crate) fn reset(&self) -> Option<&'a str> {
        let began_anew = |reading: &&Reading| {
            reading.window.as_ref().is_some_and(|window| window.reset_detected || window.other_process)
        };
        let found = self.sources.iter().find(|(source, readings)| {
            readings.iter().any(began_anew) || falls(source, readings.first().copied())
        });
        found.map(|(source, _)| source.source.as_str())
    }

    /// A distribution of times over the window, all pages of that role together. A page with no sample counts as one
    /// with no sample, not as unknown.
    pub(crate) fn times(&self, role: Role, name: &str) -> Option<Times<'a>> {
        let found: Vec<&Distribution> = self
            .readings(role)
            .filter_map(|reading| reading.window.as_ref()?.values.get(name)?.distribution())
            .collect();
        let count: f64 = found.iter().map(|d| d.count).sum();
        let used = found.iter().filter(|d| d.count > 0.0);
        let sum = used.map(|d| d.mean.map(|mean| mean * d.count)).sum::<Option<f64>>();
        let mean_ms = sum.filter(|_| count > 0.0).map(|sum| sum / count * 1e3);
        let one = if let [one] = found.as_slice() { Some(*one) } else { None };
        (!found.is_empty()).then_some(Times { count, mean_ms, one })
    }

    /// The mean of such times of all engines, in milliseconds.
    pub(crate) fn mean(&self, name: &str) -> Option<f64> {
        self.times(Role::Engine, name)?.mean_ms
    }

    /// Growth of a total over the window, all engines together.
    pub(crate) fn total(&self, name: &str) -> Option<f64> {
        let values: Vec<f64> = self.windows(name).collect();
        (!values.is_empty()).then(|| values.iter().sum())
    }

    /// A ratio over the window, the mean of all engines.
    pub(crate) fn ratio(&self, name: &str) -> Option<f64> {
        LevelRange::of(self.windows(name)).map(|range| range.mean)
    }

    fn windows(&self, name: &str) -> impl Iterator<Item = f64> {
        self.readings(Role::Engine)
            .filter_map(move |reading| reading.window.as_ref()?.values.get(name).and_then(Measured::number))
    }

    /// A level between the edges, added up over all sources that tell it.
    pub(crate) fn level(&self, name: &str) -> Option<LevelRange> {
        let ranges = self.ranges(name);
        (!ranges.is_empty()).then(|| LevelRange {
            n: ranges.iter().map(|r| r.n).min().unwrap_or(0),
            mean: ranges.iter().map(|r| r.mean).sum(),
            max: ranges.iter().map(|r| r.max).sum(),
        })
    }

    /// The level of the source that has it highest.
    pub(crate) fn highest(&self, name: &str) -> Option<LevelRange> {
        self.ranges(name).into_iter().max_by(|a, b| a.max.total_cmp(&b.max))
    }

    fn ranges(&self, name: &str) -> Vec<LevelRange> {
        let of = |source: &SourceStage| {
            LevelRange::of(source.levels.iter().filter_map(|scrape| scrape.values.get(name).copied()))
        };
        self.sources.iter().filter_map(|(source, _)| of(source)).collect()
    }
}
