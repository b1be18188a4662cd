//! Records in, every peer's figures of each stage out.

use serde::{Deserialize, Serialize};
use ttft_model::{Outcome, Record, Run};

use super::Convention;
use super::definition::Peer;
use super::measure::View;
use crate::{Samples, metrics};

/// The name of this form.
pub const ROSETTA_SCHEMA: &str = "ttft.rosetta/1";

/// Below this difference, relative to ours, a figure is called the same.
const SAME: f64 = 0.0005;

/// Numbers that each of the many sets keeps exactly (1 MiB).
const EXACT: usize = 1 << 17;

/// A run in the words of other tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rosetta {
    /// [`ROSETTA_SCHEMA`].
    pub schema: String,
    /// The run's name.
    pub run: String,
    /// One entry a stage.
    pub stages: Vec<RosettaStage>,
}

/// One stage: all its ok requests, ramp and tail included, warm-up apart, as most tools count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RosettaStage {
    /// Its name.
    pub name: String,
    /// Ok requests.
    pub requests: u64,
    /// Ours first, then each tool and its variants.
    pub rows: Vec<RosettaRow>,
}

/// The figures of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RosettaRow {
    /// The tool's short name; `ttft` for ours.
    pub tool: String,
    /// Its name in words.
    pub title: String,
    /// The version whose rules these are.
    pub version: String,
    /// Under which setting or server, where it depends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// How it takes percentiles.
    pub percentiles: Convention,
    /// Its time to first token.
    pub ttft_ms: Figures,
    /// Its median time to first token less ours.
    pub ttft_p50_less_ours_ms: Option<f64>,
    /// Its figures about tokens.
    pub tokens_ms: Vec<TokenFigure>,
    /// Whether its TTFT is ours on these records.
    pub ttft_same: bool,
    /// In one line, why its figures differ from ours.
    pub why: String,
    /// What the record cannot tell exactly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approximate: Vec<String>,
    /// Where the tool's source says so.
    pub source: String,
}

/// A figure about tokens, under the tool's name for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TokenFigure {
    /// `TPOT`, `ITL`, …
    pub name: String,
    /// How it is computed.
    pub formula: String,
    /// Its figures.
    pub ms: Figures,
}

/// Mean and percentiles by the tool's convention.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Figures {
    /// Number of samples.
    pub n: u64,
    /// Requests that give none.
    pub excluded: u64,
    /// Their mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// The largest sample.
    pub max: Option<f64>,
}

/// Folds records into [`Rosetta`].
#[derive(Debug)]
pub struct RosettaFold {
    run: String,
    stages: Vec<(u32, StageFold)>,
}

#[derive(Debug)]
struct StageFold {
    name: String,
    requests: u64,
    ours: Sums,
    peers: Vec<PeerFold>,
}

#[derive(Debug)]
struct PeerFold {
    variant: Option<String>,
    peer: Peer,
    sums: Sums,
    estimated: u64,
}

/// TTFT, and each figure about tokens.
#[derive(Debug)]
struct Sums {
    seen: u64,
    ttft: Samples,
    figures: Vec<Samples>,
    /// Requests that gave a figure nothing.
    without: Vec<u64>,
}

impl Sums {
    fn new(figures: usize) -> Self {
        Self {
            seen: 0,
            ttft: Samples::within(EXACT),
            figures: vec![Samples::within(EXACT); figures],
            without: vec![0; figures],
        }
    }

    fn push(&mut self, ttft: Option<f64>, figures: impl Iterator<Item = Vec<(f64, u64)>>) {
        self.seen += 1;
        self.ttft.extend(ttft);
        for ((samples, without), values) in self.figures.iter_mut().zip(&mut self.without).zip(figures) {
            *without += u64::from(values.iter().all(|(_, times)| *times == 0));
            for (ms, times) in values {
                samples.push_many(ms, times);
            }
        }
    }
}

impl RosettaFold {
    /// One fold for each stage that was begun.
    pub fn new(run: &Run, peers: &[Peer]) -> Self {
        let stages = run.stages.iter().filter_map(|window| {
            let stage = run.plan.stages.get(window.stage as usize)?;
            let peers = peers.iter().flat_map(Peer::readings).map(|(variant, peer)| PeerFold {
                variant,
                sums: Sums::new(peer.figures.len()),
                peer,
                estimated: 0,
            });
            let fold = StageFold {
                name: stage.name.clone(),
                requests: 0,
                ours: Sums::new(2),
                peers: peers.collect(),
            };
            Some((window.stage, fold))
        });
        Self { run: run.name.clone(), stages: stages.collect() }
    }

    /// Counts one record, if it is ok and no warm-up.
    pub fn push(&mut self, record: &Record) {
        if record.warmup || record.outcome() != Outcome::Ok {
            return;
        }
        if let Some((_, stage)) = self.stages.iter_mut().find(|(stage, _)| *stage == record.stage) {
            stage.push(record);
        }
    }

    /// The figures.
    pub fn finish(self) -> Rosetta {
        let stages = self.stages.into_iter().map(|(_, stage)| stage.finish()).collect();
        Rosetta { schema: ROSETTA_SCHEMA.to_owned(), run: self.run, stages }
    }
}

impl StageFold {
    fn push(&mut self, record: &Record) {
        self.requests += 1;
        let itl = metrics::gaps(record).into_iter().filter_map(|gap| Some((gap.itl?, gap.weight)));
        let tpot = metrics::tpot(record).map(|ms| (ms, 1)).into_iter().collect();
        self.ours.push(metrics::ttft(record), [tpot, itl.collect()].into_iter());
        for fold in &mut self.peers {
            let view = View::new(record, &fold.peer);
            if view.dropped() {
                fold.sums.push(None, fold.peer.figures.iter().map(|_| Vec::new()));
                continue;
            }
            fold.estimated += u64::from(view.is_estimated());
            fold.sums.push(view.ttft(), fold.peer.figures.iter().map(|figure| view.figure(figure)));
        }
    }

    fn finish(self) -> RosettaStage {
        let convention = Convention::Linear;
        let mut tokens = self.ours.tokens(convention).into_iter();
        let names = [
            ("TPOT", "(last_token - first_token) / (output_tokens - 1)"),
            ("ITL", "each gap between arrivals, over the tokens that arrived"),
        ];
        let ours = RosettaRow {
            tool: "ttft".to_owned(),
            title: "ttft".to_owned(),
            version: "this one".to_owned(),
            variant: None,
            percentiles: convention,
            ttft_ms: self.ours.ttft(convention),
            ttft_p50_less_ours_ms: Some(0.0),
            tokens_ms: names
                .iter()
                .map(|(name, formula)| TokenFigure {
                    name: (*name).to_owned(),
                    formula: (*formula).to_owned(),
                    ms: tokens.next().unwrap_or_default(),
                })
                .collect(),
            ttft_same: true,
            why: "from the start of the request to the first output in any channel".to_owned(),
            approximate: Vec::new(),
            source: "docs/metrics.md".to_owned(),
        };
        let peers: Vec<RosettaRow> = self.peers.into_iter().map(|fold| fold.finish(&ours.ttft_ms)).collect();
        // A variant that says the same as the row above it says nothing.
        let mut rows: Vec<RosettaRow> = vec![ours];
        for row in peers {
            let base = rows.iter().rfind(|base| base.tool == row.tool && base.variant.is_none());
            let news = base.is_none_or(|b| (&b.ttft_ms, &b.tokens_ms) != (&row.ttft_ms, &row.tokens_ms));
            if news {
                rows.push(row);
            }
        }
        RosettaStage { name: self.name, requests: self.requests, rows }
    }
}

impl PeerFold {
    fn finish(self, ours: &Figures) -> RosettaRow {
        let convention = self.peer.percentiles;
        let ttft_ms = self.sums.ttft(convention);
        let tokens = self.peer.figures.iter().zip(self.sums.tokens(convention));
        let tokens_ms = tokens
            .map(|(figure, ms)| TokenFigure {
                name: figure.name.clone(),
                formula: figure.rule.formula().to_owned(),
                ms,
            })
            .collect();
        let mut approximate = self.peer.approximate;
        if self.estimated > 0 {
            approximate.push(format!(
                "of {} requests the tokens that count are estimated from the share of events",
                self.estimated
            ));
        }
        RosettaRow {
            tool: self.peer.name,
            title: self.peer.title,
            version: self.peer.version,
            variant: self.variant,
            percentiles: convention,
            ttft_p50_less_ours_ms: ttft_ms.p50.zip(ours.p50).map(|(theirs, ours)| theirs - ours),
            ttft_same: ttft_ms.same(ours),
            ttft_ms,
            tokens_ms,
            why: self.peer.why,
            approximate,
            source: self.peer.source,
        }
    }
}

impl Sums {
    fn ttft(&self, convention: Convention) -> Figures {
        Figures::new(&self.ttft, self.seen - self.ttft.len(), convention)
    }

    fn tokens(&self, convention: Convention) -> Vec<Figures> {
        let all = self.figures.iter().zip(&self.without);
        all.map(|(samples, without)| Figures::new(samples, *without, convention)).collect()
    }
}

impl Figures {
    pub(super) fn new(samples: &Samples, excluded: u64, convention: Convention) -> Self {
        let sorted = samples.sorted();
        let at = |percent| convention.of_nth(samples.len(), percent, |k| sorted.nth(k));
        Self {
            n: samples.len(),
            excluded,
            mean: samples.mean(),
            p50: at(50),
            p90: at(90),
            p95: at(95),
            p99: at(99),
            max: samples.max(),
        }
    }

    /// Whether every figure is as good as equal.
    fn same(&self, other: &Self) -> bool {
        let of = |f: &Self| [f.mean, f.p50, f.p95, f.p99];
        of(self).into_iter().zip(of(other)).all(|pair| match pair {
            (Some(a), Some(b)) => (a - b).abs() <= SAME * b.abs(),
            (a, b) => a.is_none() && b.is_none(),
        })
    }
}
