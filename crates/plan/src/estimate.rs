//! What a plan will use, before anything is sent: requests, tokens, money, time.

use std::ops::Add;

use serde::Serialize;
use ttft_model::{Calibration, Load, Plan, Prompt, Stage, Workload};

use crate::Prompts;

/// Prompts of a workload that are looked at.
const LOOKS: u64 = 200;

/// Tokens of a byte of text that nobody has counted: English has 0.25, languages with few bytes a token up to 0.4.
const TOKENS_PER_BYTE: (f64, f64) = (0.25, 0.4);

/// From the least to the most; no most where that depends on how fast the server is.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Bounds {
    /// The least.
    pub least: f64,
    /// The most, if the plan says.
    pub most: Option<f64>,
}

impl Bounds {
    fn exactly(value: f64) -> Self {
        Self { least: value, most: Some(value) }
    }

    fn times(self, each: Self) -> Self {
        let most = self.most.zip(each.most).map(|(a, b)| a * b);
        Self { least: self.least * each.least, most }
    }

    fn scaled(self, factor: f64) -> Self {
        self.times(Self::exactly(factor))
    }
}

impl Add for Bounds {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let most = self.most.zip(other.most).map(|(a, b)| a + b);
        Self { least: self.least + other.least, most }
    }
}

/// What is used.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Use {
    /// Requests.
    pub requests: Bounds,
    /// Tokens of prompts.
    pub input_tokens: Bounds,
    /// Tokens of answers.
    pub output_tokens: Bounds,
    /// In the currency of the prices; `None` without them.
    pub cost: Option<Bounds>,
}

/// What a plan will use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The warm-up.
    pub warmup: Use,
    /// Each stage.
    pub stages: Vec<StageUse>,
    /// All together, what a budget leaves of it.
    pub total: Use,
    /// Seconds; time for answers that are under way at a stage's end not counted.
    pub seconds: Bounds,
    /// Tokens of a single request, the smallest that the plan can send.
    #[serde(skip)]
    pub least_request: (f64, f64),
}

/// What a stage will use.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageUse {
    /// Its name.
    pub name: String,
    /// What it uses.
    #[serde(flatten)]
    pub uses: Use,
    /// Seconds.
    pub seconds: Bounds,
}

/// Tokens of a request.
#[derive(Debug, Clone, Copy)]
struct Each {
    input: Bounds,
    output: Bounds,
}

impl Estimate {
    /// Of a plan whose workloads have these prompts.
    pub fn of(plan: &Plan, prompts: &[&Prompts]) -> Self {
        let each: Vec<Each> = plan
            .workloads
            .iter()
            .zip(prompts)
            .map(|(workload, prompts)| Each::of(workload, prompts))
            .collect();
        let uses = |stage: &Stage, requests: Bounds| {
            let each = mixed(plan, stage, &each);
            let (input_tokens, output_tokens) = (requests.times(each.input), requests.times(each.output));
            Use { requests, input_tokens, output_tokens, cost: cost(plan, input_tokens, output_tokens) }
        };
        let mut stages = Vec::new();
        for stage in &plan.stages {
            let trace =
                plan.workload(&stage.mix[0].workload).and_then(|(at, _)| prompts.get(at as usize)?.trace());
            let offsets = trace.map(|trace| {
                trace.requests.iter().map(|request| request.offset.as_secs_f64()).collect::<Vec<f64>>()
            });
            let (requests, seconds) = extent(plan, stage, &offsets.unwrap_or_default());
            stages.push(StageUse { name: stage.name.clone(), uses: uses(stage, requests), seconds });
        }
        let warmup = plan.stages.first().map(|first| uses(first, Bounds::exactly(plan.warmup.into())));
        let warmup = warmup.unwrap_or_default();
        let sum = |part: fn(&Use) -> Bounds| {
            stages.iter().map(|stage| part(&stage.uses)).fold(part(&warmup), Bounds::add)
        };
        let input_tokens = sum(|uses| uses.input_tokens);
        let output_tokens = sum(|uses| uses.output_tokens);
        let total = Use {
            requests: sum(|uses| uses.requests),
            input_tokens,
            output_tokens,
            cost: cost(plan, input_tokens, output_tokens),
        };
        let silences = plan.stages.len().saturating_sub(1) as f64 * plan.settle.0.as_secs_f64();
        let seconds = stages.iter().map(|stage| stage.seconds).fold(Bounds::exactly(silences), Bounds::add);
        let of_one = |one: &Each| (one.input.least, one.output.most.unwrap_or(one.output.least));
        let least_request =
            each.iter().map(of_one).min_by(|a, b| (a.0 + a.1).total_cmp(&(b.0 + b.1))).unwrap_or_default();
        Self { warmup, stages, total, seconds, least_request }
    }

    /// Why the plan's budget would not let a single request go, if that is so.
    pub fn allows_nothing(&self, plan: &Plan) -> Option<String> {
        let (input, output) = self.least_request;
        let budget = &plan.budget;
        let tokens = input + output;
        if let Some(most) = budget.max_total_tokens.filter(|most| (*most as f64) < tokens) {
            return Some(format!(
                "`budget.max_total_tokens` {most} allows not one request: the smallest has about {input:.0} tokens and \
                 may be answered by {output:.0}"
            ));
        }
        let price =
            input * budget.price_in.unwrap_or(0.0) / 1e6 + output * budget.price_out.unwrap_or(0.0) / 1e6;
        let most = budget.max_cost.filter(|most| *most < price)?;
        Some(format!("`budget.max_cost` {most} allows not one request: the smallest may cost {price:.6}"))
    }
}

impl Each {
    fn of(workload: &Workload, prompts: &Prompts) -> Self {
        let is_made_up =
            matches!(workload.prompt, Prompt::Tokens(_) | Prompt::Lengths(_) | Prompt::Trace { .. });
        let (mut input, mut output, mut text) = ((0.0, 0.0), 0.0, String::new());
        let stride = prompts.trace().map_or(1, |trace| (trace.requests.len() as u64 / LOOKS).max(1));
        for number in (0..LOOKS).map(|look| look * stride) {
            let conversation = prompts.write(number, None, &mut text);
            if let Some(conversation) = conversation {
                text = conversation.to_string();
            }
            let (least, most) =
                match (prompts.counter().and_then(|counter| counter.count(&text).ok()), is_made_up) {
                    (Some(tokens), _) => (f64::from(tokens), f64::from(tokens)),
                    (None, true) => {
                        let tokens = of_words(text.split_whitespace().count() as f64, workload.calibration);
                        (tokens, tokens)
                    }
                    (None, false) => {
                        (text.len() as f64 * TOKENS_PER_BYTE.0, text.len() as f64 * TOKENS_PER_BYTE.1)
                    }
                };
            input = (input.0 + least, input.1 + most);
            output += f64::from(prompts.output_tokens(number, 0).unwrap_or(workload.max_tokens));
        }
        let mean = |sum: f64| sum / LOOKS as f64;
        let most = mean(output);
        Self {
            input: Bounds { least: mean(input.0), most: Some(mean(input.1)) },
            output: Bounds {
                least: if workload.ignore_eos { most } else { most.min(1.0) },
                most: Some(most),
            },
        }
    }
}

fn of_words(words: f64, calibration: Calibration) -> f64 {
    match calibration {
        Calibration::Measured { tokens_per_word, overhead } => overhead + tokens_per_word * words,
        Calibration::None | Calibration::Measure => words,
    }
}

/// Tokens of a stage's request, on the average of its mix.
fn mixed(plan: &Plan, stage: &Stage, each: &[Each]) -> Each {
    let all: f64 = stage.mix.iter().map(|share| share.weight).sum();
    let zero = Each { input: Bounds::exactly(0.0), output: Bounds::exactly(0.0) };
    stage.mix.iter().fold(zero, |sum, share| {
        let one = plan.workload(&share.workload).and_then(|(at, _)| each.get(at as usize));
        one.map_or(sum, |one| Each {
            input: sum.input + one.input.scaled(share.weight / all),
            output: sum.output + one.output.scaled(share.weight / all),
        })
    })
}

fn cost(plan: &Plan, input: Bounds, output: Bounds) -> Option<Bounds> {
    let (price_in, price_out) = plan.budget.price_in.zip(plan.budget.price_out)?;
    Some(input.scaled(price_in / 1e6) + output.scaled(price_out / 1e6))
}

/// Requests and seconds of a stage. `offsets` are the seconds at which its trace has requests.
fn extent(plan: &Plan, stage: &Stage, offsets: &[f64]) -> (Bounds, Bounds) {
    let most = stage.stop.requests.map(|requests| requests as f64);
    let time = stage.stop.duration.map(|duration| duration.0.as_secs_f64());
    let up_to = |seconds: Option<f64>| Bounds { least: 0.0, most: seconds };
    let (mut requests, seconds) = match &stage.load {
        Load::Closed { concurrency, .. } => {
            let users = f64::from(*concurrency);
            // A time may cut it short, and what comes in it depends on the server.
            let least = if time.is_some() { most.unwrap_or(users).min(users) } else { most.unwrap_or(users) };
            let seconds =
                if most.is_none() { time.map_or(up_to(None), Bounds::exactly) } else { up_to(time) };
            (Bounds { least, most }, seconds)
        }
        Load::Open { rate, rate_to, .. } => {
            let mean = f64::midpoint(*rate, rate_to.unwrap_or(*rate));
            let due = time.map(|time| time * mean);
            let requests = [most, due].into_iter().flatten().reduce(f64::min);
            let seconds = [time, most.map(|most| most / mean)].into_iter().flatten().reduce(f64::min);
            (requests.map_or(up_to(None), Bounds::exactly), seconds.map_or(up_to(None), Bounds::exactly))
        }
        Load::Trace { speed, .. } => {
            let in_time =
                offsets.iter().take_while(|at| time.is_none_or(|time| **at / speed <= time)).count();
            let count = most.unwrap_or(f64::INFINITY).min(in_time as f64);
            let last = (count as usize).checked_sub(1).and_then(|last| offsets.get(last));
            (Bounds::exactly(count), last.map_or(up_to(time), |at| Bounds::exactly(at / speed)))
        }
    };
    if plan.precision.is_some() {
        // It may be precise enough long before.
        requests.least = requests.least.min(1.0);
        return (requests, up_to(seconds.most));
    }
    (requests, seconds)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::Draft;

    fn estimate(text: &str) -> (Plan, Estimate) {
        let plan = Draft::read(text, "ttft.toml").unwrap().plan(&|_| None).unwrap();
        let prompts: Vec<Prompts> =
            plan.workloads.iter().map(|w| Prompts::load(w, plan.seed).unwrap()).collect();
        let estimate = Estimate::of(&plan, &prompts.iter().collect::<Vec<_>>());
        (plan, estimate)
    }

    #[test]
    fn tokens_and_cost_are_of_the_requests() {
        let (_, told) = estimate(
            "warmup = 10\nsettle = \"5s\"\n[budget]\nprice_in = 2\nprice_out = 10\n[[workloads]]\nprompt_tokens = 100\n\
             max_tokens = 20\n[[stages]]\nconcurrency = [1, 8]\nrequests = 95\n",
        );
        let total = &told.total;
        assert_eq!(total.requests, Bounds::exactly(200.0));
        assert_eq!(total.input_tokens, Bounds::exactly(20_000.0));
        assert_eq!(total.output_tokens, Bounds { least: 200.0, most: Some(4_000.0) });
        let cost = total.cost.unwrap();
        assert!((cost.least - 0.042).abs() < 1e-9 && (cost.most.unwrap() - 0.08).abs() < 1e-9, "{cost:?}");
        assert_eq!(told.stages[1].uses.requests, Bounds::exactly(95.0));
        assert_eq!(told.seconds, Bounds { least: 5.0, most: None }, "how long they take, the server says");
    }

    #[test]
    fn a_mix_is_weighed_and_rates_are_times_time() {
        let (_, told) = estimate(
            "warmup = 0\n[[workloads]]\nname = \"short\"\nprompt_tokens = 100\nmax_tokens = 10\nignore_eos = true\n\
             [[workloads]]\nname = \"long\"\nprompt_tokens = 1000\nmax_tokens = 10\nignore_eos = true\n\
             [[stages]]\nrate = [2, \"1..3\"]\nduration = 60\nmix = { short = 9, long = 1 }\n",
        );
        for stage in &told.stages {
            assert_eq!(stage.uses.requests, Bounds::exactly(120.0));
            let tokens = stage.uses.input_tokens;
            assert!((tokens.least - 120.0 * 190.0).abs() < 1e-6, "{tokens:?}");
            assert!((stage.uses.output_tokens.least - 1200.0).abs() < 1e-6);
        }
        assert_eq!((told.seconds, told.total.cost), (Bounds::exactly(120.0), None));
    }

    #[test]
    fn what_the_server_decides_has_no_most() {
        let (_, told) = estimate("[[stages]]\nconcurrency = 8\n");
        assert_eq!(told.stages[0].uses.requests, Bounds { least: 8.0, most: None });
        assert_eq!(told.stages[0].seconds, Bounds::exactly(10.0));
        assert_eq!(told.total.input_tokens.most, None);
        let (_, precise) = estimate("precision = 0.1\n[[stages]]\nconcurrency = 8\nrequests = 500\n");
        assert_eq!(precise.stages[0].uses.requests, Bounds { least: 1.0, most: Some(500.0) });
    }

    #[test]
    fn a_budget_below_one_request_allows_nothing() {
        let plan = |budget: &str| {
            let text = format!("[budget]\n{budget}\n[[workloads]]\nprompt_tokens = 400\nmax_tokens = 100\n");
            let (plan, told) = estimate(&text);
            told.allows_nothing(&plan)
        };
        assert!(plan("max_total_tokens = 499").unwrap().contains("about 400 tokens"));
        assert_eq!(plan("max_total_tokens = 500"), None);
        assert!(
            plan("price_in = 10\nprice_out = 10\nmax_cost = 0.0049").unwrap().contains("may cost 0.005000")
        );
        assert_eq!(plan("price_in = 10\nprice_out = 10\nmax_cost = 0.0051"), None);
    }
}
