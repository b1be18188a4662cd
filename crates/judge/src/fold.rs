//! Records in, one stage's summary out, without keeping a record.

use std::collections::{BTreeMap, HashMap};

use ttft_model::{
    ErrorClass, Nanos, Outcome, Plan, Record, Run, Share, Stage, StageWindow, TokenSource, Workload,
};

use crate::arrivals::ArrivalFold;
use crate::client::{ClientFold, Context};
use crate::decompose::Decomposition;
use crate::distribution::Independence;
use crate::experience::{Deadlines, ExperienceFold};
use crate::goodput::GoodFold;
use crate::knee::Evidence;
use crate::metrics::{GAP_METRICS, METRICS};
use crate::reconcile::{Ours, Reconcile};
use crate::series::Series;
use crate::server::{Server, SourceStage, View};
use crate::stream::StreamFold;
use crate::summary::{
    FailureGroup, PartSummary, Requests, StageSummary, Summary, Throughput, TokenCounts, Tokens,
    WindowChoice, Windows,
};
use crate::turns::TurnsFold;
use crate::window::Flow;
use crate::{Distribution, Error, Samples, Slo, contamination, diagnose, knee, metrics, reconcile, repeats};

/// Different messages remembered for each class of error; more are counted but not told apart.
const MESSAGES: usize = 64;

/// Metrics that the window `whole` shows beside the steady ones.
const BESIDE: [&str; 3] = ["ttft", "tpot", "e2e"];

/// Folds the records of a whole run, in any order, into its summary.
#[derive(Debug)]
pub struct RunFold<'a> {
    run: &'a Run,
    stages: Vec<StageFold<'a>>,
}

impl<'a> RunFold<'a> {
    /// One fold for each stage that was begun. Fails if an objective of the plan cannot be understood.
    pub fn new(run: &'a Run) -> Result<Self, Error> {
        let stages = run.stages.iter().filter_map(|window| StageFold::new(&run.plan, window).transpose());
        Ok(Self { run, stages: stages.collect::<Result<_, _>>()? })
    }

    /// Counts one record; one of a stage that the run does not know is passed over.
    pub fn push(&mut self, record: &Record) {
        if let Some(stage) = self.stages.iter_mut().find(|s| s.window.stage == record.stage) {
            stage.push(record);
        }
    }

    /// The summary, with what the server's own pages told of each stage; none if nothing was scraped.
    pub fn finish(self, sources: &[SourceStage]) -> Summary {
        let numbers: Vec<u32> = self.stages.iter().map(|stage| stage.window.stage).collect();
        let (mut stages, evidence): (Vec<_>, Vec<_>) =
            self.stages.into_iter().map(StageFold::finish_with_evidence).unzip();
        let of = |number: u32| sources.iter().filter(move |source| source.stage == number);
        let views: Vec<View> = numbers.iter().map(|number| View::of(of(*number))).collect();
        for (i, stage) in stages.iter_mut().enumerate() {
            let (ours, view) = (&evidence[i].ours, &views[i]);
            stage.server = Server::of(of(numbers[i]));
            stage.reconcile = reconcile::put_together(ours, view);
            stage.decomposition = Decomposition::of(ours, stage.requests.sent, view, &stage.reconcile);
        }
        reconcile::judge(&mut stages, &evidence, &views);
        let mut summary = Summary::new(self.run, stages);
        summary.repeats = repeats::find(&summary.stages);
        summary.knee = knee::find(&summary.stages, &evidence);
        let (stages, governor) = (&summary.stages, self.run.governor.as_deref());
        summary.contamination = contamination::find(stages, &evidence, &views, governor);
        summary.diagnosis = diagnose::find(stages, &evidence, &views, &summary.contamination);
        summary
    }
}

/// Folds the records of one stage, in any order. Memory grows by a few numbers a request up to a limit, and not
/// beyond it.
#[derive(Debug)]
pub struct StageFold<'a> {
    plan: &'a Plan,
    stage: &'a Stage,
    /// The first workload, and its number.
    number: u32,
    workload: &'a Workload,
    window: &'a StageWindow,
    slos: Vec<Slo>,
    deadlines: Deadlines,
    last: Nanos,
    warmup: u64,
    outcomes: BTreeMap<Outcome, u64>,
    failures: BTreeMap<ErrorClass, Failures>,
    steady: Flow,
    whole: Flow,
    good_steady: GoodFold,
    good_whole: GoodFold,
    /// Of ok requests that started in the steady window, and of all others.
    inside: Latencies,
    outside: Latencies,
    client: ClientFold,
    arrivals: ArrivalFold,
    ours: Ours,
    turns: TurnsFold,
    /// Where several workloads are mixed: each by itself.
    parts: Vec<StageFold<'a>>,
}

/// What ok requests of one kind measured.
#[derive(Debug, Default)]
struct Latencies {
    requests: u64,
    failed: u64,
    metrics: Vec<Samples>,
    gaps: [Samples; 2],
    without_gaps: [u64; 2],
    input: Count,
    cached: Count,
    output: Count,
    reasoning: Count,
    sources: BTreeMap<&'static str, u64>,
    stream: StreamFold,
    experience: ExperienceFold,
    series: Series,
}

/// Tokens of one kind.
#[derive(Debug, Default)]
struct Count {
    total: u64,
    per_request: Samples,
}

/// Failures of one class.
#[derive(Debug, Default)]
struct Failures {
    n: u64,
    messages: HashMap<(Option<u16>, String), u64>,
}

impl<'a> StageFold<'a> {
    /// A fold for the stage of that window; `None` if the plan has no such stage or workload. Fails if an objective
    /// of the plan cannot be understood.
    pub fn new(plan: &'a Plan, window: &'a StageWindow) -> Result<Option<Self>, Error> {
        let slos = plan.slo.iter().map(|text| text.parse()).collect::<Result<Vec<Slo>, Error>>()?;
        let Some(stage) = plan.stages.get(window.stage as usize) else { return Ok(None) };
        let workloads: Option<Vec<_>> =
            stage.mix.iter().map(|share| plan.workload(&share.workload)).collect();
        let Some(workloads) = workloads else { return Ok(None) };
        let of = |(number, workload)| Self::of(plan, stage, number, workload, window, slos.clone());
        let Some(mut fold) = workloads.first().copied().map(of) else { return Ok(None) };
        if workloads.len() > 1 {
            fold.parts = workloads.into_iter().map(of).collect();
        }
        Ok(Some(fold))
    }

    /// A fold without parts.
    fn of(
        plan: &'a Plan,
        stage: &'a Stage,
        number: u32,
        workload: &'a Workload,
        window: &'a StageWindow,
        slos: Vec<Slo>,
    ) -> Self {
        Self {
            plan,
            stage,
            number,
            workload,
            window,
            last: window.start,
            warmup: 0,
            outcomes: BTreeMap::new(),
            failures: BTreeMap::new(),
            steady: Flow::new(window.reached, window.dry),
            whole: Flow::new(window.start, window.end),
            good_steady: GoodFold::new(&slos),
            good_whole: GoodFold::new(&slos),
            inside: Latencies::default(),
            outside: Latencies::default(),
            client: ClientFold::default(),
            arrivals: ArrivalFold::default(),
            ours: Ours::default(),
            turns: TurnsFold::default(),
            deadlines: Deadlines::of(&slos),
            slos,
            parts: Vec::new(),
        }
    }

    /// Counts one record.
    pub fn push(&mut self, r: &Record) {
        if let Some(part) = self.parts.iter_mut().find(|part| part.number == r.workload) {
            part.push(r);
        }
        if r.warmup {
            self.warmup += 1;
            return;
        }
        let inside = self.steady.holds(r.phases.started);
        self.last = self.last.max(r.finished);
        *self.outcomes.entry(r.outcome()).or_default() += 1;
        self.steady.push(r);
        self.whole.push(r);
        self.good_steady.push(r, &self.slos, &self.steady);
        self.good_whole.push(r, &self.slos, &self.whole);
        self.client.push(r, inside);
        self.arrivals.push(&self.stage.load, r);
        self.ours.push(r);
        self.turns.push(r);
        if let Some(failure) = r.failure().filter(|_| r.outcome().is_failure()) {
            self.failures.entry(failure.class).or_default().push(r.status, &failure.message);
        }
        let latencies = if inside { &mut self.inside } else { &mut self.outside };
        match r.outcome() {
            Outcome::Ok => latencies.push(r, &self.deadlines),
            Outcome::Cancelled => {}
            _ => latencies.failed += 1,
        }
    }

    /// The stage's summary.
    pub fn finish(self) -> StageSummary {
        self.finish_with_evidence().0
    }

    /// The stage's summary, and what a look at several stages needs beside it.
    pub(crate) fn finish_with_evidence(self) -> (StageSummary, Evidence) {
        let chosen = self.choose();
        self.finish_in(chosen)
    }

    fn finish_in(mut self, chosen: (WindowChoice, Option<&'static str>)) -> (StageSummary, Evidence) {
        let (window, reason) = chosen;
        let parts = std::mem::take(&mut self.parts);
        let parts: Vec<StageSummary> = parts.into_iter().map(|part| part.finish_in(chosen).0).collect();
        let start = self.window.start;
        let mut windows = Windows {
            steady: self.steady.figures(start, self.last),
            whole: self.whole.figures(start, self.last),
        };
        let requests = self.requests();
        windows.whole.latency_ms = self.outside.only_with(&self.inside, &BESIDE);
        let (mut latencies, figures, good) = match window {
            WindowChoice::Steady => (self.inside, &windows.steady, self.good_steady),
            WindowChoice::Whole => {
                let mut whole = self.outside;
                whole.merge(&self.inside);
                (whole, &windows.whole, self.good_whole)
            }
        };
        let latency_ms = latencies.all();
        let experience = latencies.experience.finish(&self.deadlines);
        let ttft = METRICS.iter().position(|metric| metric.name == "ttft");
        let ttft = ttft.and_then(|at| latencies.metrics.get(at)).cloned().unwrap_or_default();
        let evidence =
            Evidence { ttft, points: std::mem::take(&mut latencies.series).finish(), ours: self.ours };
        let median = |metric: &str| latency_ms.get(metric).and_then(|d| d.p50);
        let throughput = Throughput {
            requests_per_s: figures.requests_per_s,
            output_tokens_per_s: figures.output_tokens_per_s,
            input_tokens_per_s: figures.input_tokens_per_s,
            output_tokens_per_s_per_user: median("tpot").filter(|ms| *ms > 0.0).map(|ms| 1000.0 / ms),
        };
        let tokens = latencies.tokens();
        let stream = latencies.stream.finish();
        let client = self.client.finish(&Context {
            load: &self.stage.load,
            window: self.window,
            length_s: windows.whole.duration_s,
            steady_s: windows.steady.duration_s,
            ttft_p50: median("ttft"),
            itl_p50: median("itl"),
            stream: &stream,
        });
        let window_s = figures.duration_s;
        let mut summary = StageSummary {
            name: self.stage.name.clone(),
            load: self.stage.load.clone(),
            workload: match &parts[..] {
                [] => self.workload.name.clone(),
                several => several.iter().map(|part| part.workload.as_str()).collect::<Vec<_>>().join("+"),
            },
            cache: self.workload.cache,
            max_tokens: parts.iter().map(|part| part.max_tokens).max().unwrap_or(self.workload.max_tokens),
            endpoint: (self.plan.endpoints.len() > 1).then(|| self.plan.endpoint_of(self.stage).name.clone()),
            model: self.plan.model_of(self.stage).map(str::to_owned),
            requests,
            window,
            window_reason: reason.map(str::to_owned),
            ended_early: self.window.ended_early.clone(),
            parts: Vec::new(),
            latency_ms,
            throughput,
            tokens,
            goodput: crate::Goodput::default(),
            sessions: self.turns.finish(),
            experience,
            stream,
            arrivals: self.arrivals.finish(&self.stage.load),
            client,
            server: Server::default(),
            reconcile: Reconcile::default(),
            decomposition: Decomposition::default(),
            windows,
        };
        summary.goodput = good.finish(&self.slos, &summary, window_s);
        let weights: f64 = self.stage.mix.iter().map(|share| share.weight).sum();
        let sent = summary.requests.sent;
        let part =
            |(share, part): (&Share, StageSummary)| PartSummary::new(part, share.weight / weights, sent);
        summary.parts = self.stage.mix.iter().zip(parts).map(part).collect();
        (summary, evidence)
    }

    /// The steady window, unless too little happened in it.
    fn choose(&self) -> (WindowChoice, Option<&'static str>) {
        let users = match self.stage.load {
            ttft_model::Load::Closed { concurrency, .. } => u64::from(concurrency),
            ttft_model::Load::Open { .. } | ttft_model::Load::Trace { .. } => 1,
        };
        let is_changing = matches!(self.stage.load, ttft_model::Load::Open { rate_to: Some(_), .. });
        let reason = if is_changing {
            "its rate changes all the time: there is no steady state"
        } else if self.window.dry.is_some_and(|dry| dry <= self.window.reached) {
            "the asked load was never held: there is no steady window"
        } else if self.steady.ok() == 0 || self.inside.requests == 0 {
            "no request started and ended well in the steady window"
        } else if self.steady.ended() < users {
            "the steady window ended before each user had finished one request"
        } else {
            return (WindowChoice::Steady, None);
        };
        (WindowChoice::Whole, Some(reason))
    }

    fn requests(&self) -> Requests {
        let of = |wanted: fn(Outcome) -> bool| {
            self.outcomes.iter().filter(|(outcome, _)| wanted(**outcome)).map(|(_, n)| n).sum()
        };
        let mut failures: Vec<FailureGroup> =
            self.failures.iter().map(|(class, group)| group.finish(*class)).collect();
        failures.sort_by_key(|group| std::cmp::Reverse(group.n));
        Requests {
            sent: of(|_| true),
            ok: of(|outcome| outcome == Outcome::Ok),
            failed: of(Outcome::is_failure),
            unsent: self.window.unsent,
            warmup: self.warmup,
            outcomes: self.outcomes.iter().map(|(outcome, n)| (outcome.name().to_owned(), *n)).collect(),
            errors: self.failures.iter().map(|(class, group)| (class.name().to_owned(), group.n)).collect(),
            failures,
        }
    }
}

impl Latencies {
    fn push(&mut self, r: &Record, deadlines: &Deadlines) {
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

    fn merge(&mut self, other: &Self) {
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

    fn all(&self) -> BTreeMap<String, Distribution> {
        let gaps = GAP_METRICS.iter().enumerate().map(|(i, (name, _))| {
            let of = Distribution::new(&self.gaps[i], self.without_gaps[i], 0, Independence::Clustered);
            ((*name).to_owned(), of)
        });
        METRICS.iter().map(|m| m.name).filter_map(|name| self.metric(name)).chain(gaps).collect()
    }

    /// Some metrics of these requests and others together.
    fn only_with(&self, others: &Self, names: &[&str]) -> BTreeMap<String, Distribution> {
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

    fn tokens(&self) -> Tokens {
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
    fn push(&mut self, tokens: Option<u64>) {
        if let Some(tokens) = tokens {
            self.total = self.total.saturating_add(tokens);
            self.per_request.push(tokens as f64);
        }
    }

    fn finish(&self, requests: u64) -> TokenCounts {
        let n = self.per_request.len();
        TokenCounts {
            total: (n > 0).then_some(self.total),
            per_request: Distribution::new(&self.per_request, requests - n, 0, Independence::Clustered),
        }
    }
}

impl Failures {
    fn push(&mut self, status: Option<u16>, message: &str) {
        self.n += 1;
        let key = (status, message.to_owned());
        if self.messages.len() < MESSAGES || self.messages.contains_key(&key) {
            *self.messages.entry(key).or_default() += 1;
        }
    }

    fn finish(&self, class: ErrorClass) -> FailureGroup {
        // Ties by text, so that the same records give the same summary.
        let most = self.messages.iter().max_by(|a, b| a.1.cmp(b.1).then_with(|| b.0.cmp(a.0)));
        let ((status, message), message_n) =
            most.map_or(((None, String::new()), 0), |(key, n)| (key.clone(), *n));
        FailureGroup { class, n: self.n, status, message, message_n }
    }
}

#[cfg(test)]
pub(crate) mod tests;
