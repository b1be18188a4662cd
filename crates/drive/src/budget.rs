//! What the run may still use up. A request that could exceed it is not sent, and ends the run in order.
//!
//! Until a request has ended, the most that it can use counts as used: its prompt by the worst ratio of tokens to bytes
//! seen so far, its answer by the tokens asked for. Then it counts by what the server says; if that says nothing, what
//! was reserved stays, and is called estimated.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use ttft_model::{Budget, Record};

/// Tokens of a byte of a request's body, until the server has said more. Languages written with few bytes a token are
/// near this; English is at half of it.
const TOKENS_PER_BYTE: f64 = 0.4;

/// Money is counted in billionths of its unit: exact enough, and whole.
const UNITS: f64 = 1e9;

/// The run's account, shared by all workers: a few atomic additions a request, and none without a budget.
#[derive(Debug)]
pub(crate) struct Account {
    budget: Budget,
    tokens: AtomicU64,
    /// In billionths.
    cost: AtomicU64,
    /// Bits of the ratio of tokens to bytes, once the server has told some.
    ratio: AtomicU64,
    told: AtomicU64,
    estimated: AtomicU64,
    refused: OnceLock<()>,
}

/// What a request under way may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reserve {
    input: u64,
    output: u64,
}

impl Account {
    /// The account of a plan; nothing if it sets no limit.
    pub(crate) fn of(budget: &Budget) -> Option<Self> {
        let is_limited = budget.max_total_tokens.is_some() || budget.max_cost.is_some();
        is_limited.then(|| Self {
            budget: *budget,
            tokens: AtomicU64::new(0),
            cost: AtomicU64::new(0),
            ratio: AtomicU64::new(0f64.to_bits()),
            told: AtomicU64::new(0),
            estimated: AtomicU64::new(0),
            refused: OnceLock::new(),
        })
    }

    /// Sets aside what a request may use; nothing if that is more than there is.
    pub(crate) fn reserve(&self, body_bytes: u64, max_tokens: u32) -> Option<Reserve> {
        let told = f64::from_bits(self.ratio.load(Ordering::Relaxed));
        let ratio = if told > 0.0 { told } else { TOKENS_PER_BYTE };
        let reserve =
            Reserve { input: (body_bytes as f64 * ratio).ceil() as u64, output: u64::from(max_tokens) };
        let (tokens, cost) = (reserve.input + reserve.output, self.cost_of(reserve.input, reserve.output));
        let of_tokens = self.tokens.fetch_add(tokens, Ordering::Relaxed) + tokens;
        let of_cost = self.cost.fetch_add(cost, Ordering::Relaxed) + cost;
        let fits = self.budget.max_total_tokens.is_none_or(|most| of_tokens <= most)
            && self.budget.max_cost.is_none_or(|most| of_cost as f64 <= most * UNITS);
        if !fits {
            self.tokens.fetch_sub(tokens, Ordering::Relaxed);
            self.cost.fetch_sub(cost, Ordering::Relaxed);
        }
        fits.then_some(reserve)
    }

    /// Books what a request has used.
    pub(crate) fn book(&self, reserve: Reserve, record: &Record) {
        let usage = record.answer.usage;
        // What was refused or never reached costs nothing; a stream that began does, however it ended.
        let is_free =
            usage.output.is_none() && record.answer.first_token.is_none() && record.status != Some(200);
        if let Some(input) = usage.input {
            self.learn(input as f64 / record.request_bytes.max(1) as f64);
        }
        let (input, output) = if is_free {
            (0, 0)
        } else {
            let is_told = usage.input.is_some() && usage.output.is_some();
            if is_told { &self.told } else { &self.estimated }.fetch_add(1, Ordering::Relaxed);
            (usage.input.unwrap_or(reserve.input), usage.output.unwrap_or(reserve.output))
        };
        // In one step: what is booked and still reserved would keep others out.
        let settle = |counter: &AtomicU64, reserved: u64, used: u64| match used.checked_sub(reserved) {
            Some(more) => counter.fetch_add(more, Ordering::Relaxed),
            None => counter.fetch_sub(reserved - used, Ordering::Relaxed),
        };
        settle(&self.tokens, reserve.input + reserve.output, input + output);
        settle(&self.cost, self.cost_of(reserve.input, reserve.output), self.cost_of(input, output));
    }

    /// Called for each request that did not fit: why the run ends, for the first of them.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.refused.set(()).ok()?;
        let mut limits = Vec::new();
        limits.extend(self.budget.max_total_tokens.map(|most| format!("{most} tokens")));
        limits.extend(self.budget.max_cost.map(|most| format!("a cost of {most}")));
        let tokens = self.tokens.load(Ordering::Relaxed);
        let cost = self.budget.max_cost.map(|_| self.cost.load(Ordering::Relaxed) as f64 / UNITS);
        let cost = cost.map(|cost| format!(", which cost {cost:.6}")).unwrap_or_default();
        let limits = limits.join(" and ");
        let mut why = format!(
            "the budget of {limits} holds no further request: {tokens} tokens are used or set aside for requests under \
             way{cost}"
        );
        let (told, estimated) = (self.told.load(Ordering::Relaxed), self.estimated.load(Ordering::Relaxed));
        if estimated > 0 {
            let all = told + estimated;
            why += "; the server told no usage for ";
            why += &[estimated, all].map(|n| n.to_string()).join(" of ");
            why += " requests, which count by what they asked for";
        }
        Some(why)
    }

    /// In billionths.
    fn cost_of(&self, input: u64, output: u64) -> u64 {
        let of = |tokens: u64, price: Option<f64>| tokens as f64 * price.unwrap_or(0.0) / 1e6;
        ((of(input, self.budget.price_in) + of(output, self.budget.price_out)) * UNITS).ceil() as u64
    }

    fn learn(&self, ratio: f64) {
        // The order of bits is that of positive numbers.
        self.ratio.fetch_max(ratio.to_bits(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use ttft_model::{Outcome, Stamp, Usage};

    use super::*;

    fn ended(input: Option<u64>, output: Option<u64>, bytes: u64) -> Record {
        let mut record = Record { status: Some(200), request_bytes: bytes, ..Record::default() };
        record.answer.usage = Usage { input, output, ..Usage::default() };
        record.answer.first_token = Some(Stamp::user(ttft_model::Nanos(1)));
        record.answer.outcome = Some(Outcome::Ok);
        record
    }

    #[test]
    fn what_is_under_way_counts_and_what_was_not_used_comes_back() {
        let account = Account::of(&Budget { max_total_tokens: Some(300), ..Budget::default() }).unwrap();
        let first = account.reserve(100, 100).unwrap();
        let second = account.reserve(100, 100).unwrap();
        assert!(account.reserve(100, 100).is_none(), "three times 140");
        account.book(first, &ended(Some(20), Some(10), 100));
        // The server counts half as many tokens as were thought.
        let third = account.reserve(100, 100).unwrap();
        account.book(second, &ended(Some(20), Some(100), 100));
        account.book(third, &ended(None, None, 100));
        assert_eq!(account.tokens.load(Ordering::Relaxed), 30 + 120 + 120);
        assert!(account.reserve(100, 100).is_none());
        let why = account.refusal().unwrap();
        assert!(why.contains("300 tokens") && why.contains("270 tokens"), "{why}");
        assert!(why.contains("no usage for 1 of 3 requests"), "{why}");
        assert!(account.refusal().is_none(), "told once");
    }

    #[test]
    fn prices_are_of_a_million_tokens() {
        let budget =
            Budget { price_in: Some(2.0), price_out: Some(10.0), max_cost: Some(0.01), ..Budget::default() };
        let account = Account::of(&budget).unwrap();
        // 400 input tokens cost 0.0008, 500 output tokens 0.005.
        let reserve = account.reserve(1_000, 500).unwrap();
        assert!(account.reserve(1_000, 500).is_none());
        account.book(reserve, &ended(Some(400), Some(100), 1_000));
        assert_eq!(account.cost.load(Ordering::Relaxed), 1_800_000);
        assert!(account.reserve(1_000, 500).is_some());
    }

    #[test]
    fn what_never_reached_a_model_is_free() {
        let account = Account::of(&Budget { max_total_tokens: Some(300), ..Budget::default() }).unwrap();
        let reserve = account.reserve(100, 100).unwrap();
        account.book(reserve, &Record { status: Some(429), ..Record::default() });
        assert_eq!(account.tokens.load(Ordering::Relaxed), 0);
        assert!(Account::of(&Budget { price_in: Some(1.0), ..Budget::default() }).is_none());
    }
}
