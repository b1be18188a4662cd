//! What the ok requests of a stage measured, and what its failures said.

use std::collections::{BTreeMap, HashMap};

use ttft_model::{ErrorClass, Record, TokenSource};

use crate::distribution::Independence;
use crate::experience::{Deadlines, ExperienceFold};
use crate::metrics::{GAP_METRICS, METRICS};
use crate::series::Series;
use crate::stream::StreamFold;
use crate::summary::{FailureGroup, TokenCounts, Tokens};
use crate::{Distribution, Samples, metrics};

/// Different messages remembered for each class of error; more are counted but not told apart.
const MESSAGES: usize = 64;

/// What ok requests of one kind measured.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    pub(super) requests: u64,
    pub(super) failed: u64,
    pub(super) metrics: Vec<Samples>,
    pub(super) gaps: [Samples; 2],
    pub(super) without_gaps: [u64; 2],
    pub(super) input: Count,
    pub(super) cached: Count,
    pub(super) output: Count,
    pub(super) reasoning: Count,
    pub(super) sources: BTreeMap<&'static str, u64>,
    pub(super) stream: StreamFold,
    pub(super) experience: ExperienceFold,
    pub(super) series: Series,
}

/// Tokens of one kind.
#[derive(Debug, Default)]
pub(super) struct Count {
    pub(super) total: u64,
    pub(super) per_request: Samples,
}

/// Failures of one class.
#[derive(Debug, Default)]
pub(super) struct Failures {
    pub(super) n: u64,
    pub(super) messages: HashMap<(Option<u16>, String), u64>,
}

impl Latencies {
    pub(super) fn push(&mut self, r: &Record, deadlines: &Deadlines) {
        self.requests += 1;
        self.metrics.resize_with(METRICS.len(), Samples::default);
        for (metric, samples) in METRICS.iter().zip(&mut self.metrics) {
            samples.extend((metric.of)(r));
        }
        let before = [self.gaps[0].len(), self.gaps[1].len()];
        for gap in metrics::gaps(r) {
            if let Some(itl) = gap.itl {
                self.gaps[0].push_many(itl, gap.weight);
            }
            self.gaps[1].push(gap.ms);
        }
        for ((samples, before), without) in self.gaps.iter().zip(before).zip(&mut self.without_gaps) {
            *without += u64::from(samples.len() == before);
        }
        let usage = r.answer.usage;
        self.input.push(usage.input);
        self.cached.push(usage.cached);
        self.output.push(r.answer.output_tokens());
        self.reasoning.push(usage.reasoning);
        *self.sources.entry(r.token_source.name()).or_default() += 1;
        self.stream.push(r);
        self.experience.push(r, deadlines);
        self.series.push(r);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.requests += other.requests;
        self.failed += other.failed;
        self.metrics.resize_with(METRICS.len(), Samples::default);
        for (ours, theirs) in self.metrics.iter_mut().zip(&other.metrics) {
            ours.merge(theirs);
        }
        for i in 0..2 {
            self.gaps[i].merge(&other.gaps[i]);
            self.without_gaps[i] += other.without_gaps[i];
        }
        for (ours, theirs) in [
            (&mut self.input, &other.input),
            (&mut self.cached, &other.cached),
            (&mut self.output, &other.output),
            (&mut self.reasoning, &other.reasoning),
        ] {
            ours.total += theirs.total;
            ours.per_request.merge(&theirs.per_request);
        }
        for (source, n) in &other.sources {
            *self.sources.entry(source).or_default() += n;
        }
        self.stream.merge(&other.stream);
        self.experience.merge(&other.experience);
        self.series.merge(&other.series);
    }

    pub(super) fn all(&self) -> BTreeMap<String, Distribution> {
        let gaps = GAP_METRICS.iter().enumerate().map(|(i, (name, _))| {
            let of = Distribution::new(&self.gaps[i], self.without_gaps[i], 0, Independence::Clustered);
            ((*name).to_owned(), of)
        });
        METRICS.iter().map(|m| m.name).filter_map(|name| self.metric(name)).chain(gaps).collect()
    }

    /// Some metrics of these requests and others together.
    pub(super) fn only_with(&self, others: &Self, names: &[&str]) -> BTreeMap<String, Distribution> {
        let of = |name: &&str| {
            let at = METRICS.iter().position(|metric| metric.name == *name)?;
            let mut samples = self.metrics.get(at).cloned().unwrap_or_default();
            samples.merge(others.metrics.get(at).unwrap_or(&Samples::default()));
            let excluded = self.requests + others.requests - samples.len();
            let failed = self.failed + others.failed;
            let of = Distribution::new(&samples, excluded, failed, Independence::Independent);
            Some(((*name).to_owned(), of))
        };
        names.iter().filter_map(of).collect()
    }

    fn metric(&self, name: &str) -> Option<(String, Distribution)> {
        let none = Samples::default();
        let at = METRICS.iter().position(|metric| metric.name == name)?;
        let samples = self.metrics.get(at).unwrap_or(&none);
        let excluded = self.requests - samples.len();
        let of = Distribution::new(samples, excluded, self.failed, Independence::Independent);
        Some((name.to_owned(), of))
    }

    pub(super) fn tokens(&self) -> Tokens {
        let mut sources = self.sources.keys();
        let source = match (sources.next(), sources.next()) {
            (Some(_), Some(_)) => "mixed",
            (Some(source), None) => source,
            (None, _) => TokenSource::None.name(),
        };
        let of = |count: &Count| count.finish(self.requests);
        Tokens {
            input: of(&self.input),
            cached: of(&self.cached),
            output: of(&self.output),
            reasoning: of(&self.reasoning),
            source: source.to_owned(),
        }
    }
}

impl Count {
    pub(super) fn push(&mut self, tokens: Option<u64>) {
        if let Some(tokens) = tokens {
            self.total = self.total.saturating_add(tokens);
            self.per_request.push(tokens as f64);
        }
    }

    pub(super) fn finish(&self, requests: u64) -> TokenCounts {
        let n = self.per_request.len();
        TokenCounts {
            total: (n > 0).then_some(self.total),
            per_request: Distribution::new(&self.per_request, requests - n, 0, Independence::Clustered),
        }
    }
}

impl Failures {
    pub(super) fn push(&mut self, status: Option<u16>, message: &str) {
        self.n += 1;
        let key = (status, message.to_owned());
        if self.messages.len() < MESSAGES || self.messages.contains_key(&key) {
            *self.messages.entry(key).or_default() += 1;
        }
    }

    pub(super) fn finish(&self, class: ErrorClass) -> FailureGroup {
        // Ties by text, so that the same records give the same summary.
        let most = self.messages.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.cmp(a.0)));
        let ((status, message), message_n) =
            most.map_or(((None, String::new()), 0), |(key, n)| (key.clone(), *n));
        FailureGroup { class, n: self.n, status, message, message_n }
    }
}
