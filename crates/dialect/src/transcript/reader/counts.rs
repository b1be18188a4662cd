//! Counts of tokens and the server's own times.

use super::{Output, Reader};
use crate::json::{Hit, Kind, number, whole};
use crate::rules::{Meaning, Rule};

/// What is more is no count of tokens, and would spoil the sums of a run.
const MOST: u64 = u32::MAX as u64;

/// Counts that came from a rule that is no fallback.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Told {
    input: bool,
    cached: bool,
    output: bool,
    reasoning: bool,
}

/// Counts of which a server tells only the parts.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Apart {
    output: Option<u64>,
    beside: Option<u64>,
    total: Option<u64>,
}

impl Reader {
    /// Takes a count or a time.
    pub(super) fn number(&mut self, rule: &Rule, hit: &Hit, json: &[u8], output: &mut Output) {
        if hit.kind != Kind::Number {
            return;
        }
        let count = whole(hit.raw(json)).filter(|count| *count <= MOST);
        let Some(count) = count else { return self.timing(rule, hit, json) };
        let apart = match rule.meaning {
            Meaning::UsageOutput => Some(&mut self.apart.output),
            Meaning::UsageReasoning if rule.beside => Some(&mut self.apart.beside),
            Meaning::UsageTotal => Some(&mut self.apart.total),
            _ => None,
        };
        if let Some(place) = apart {
            *place = Some(count);
            output.apart |= rule.meaning != Meaning::UsageOutput || self.apart.beside.is_some();
        }
        let (usage, told) = (&mut self.answer.usage, &mut self.told);
        let (place, told) = match rule.meaning {
            Meaning::UsageInput => (&mut usage.input, &mut told.input),
            Meaning::UsageCached => (&mut usage.cached, &mut told.cached),
            Meaning::UsageOutput => (&mut usage.output, &mut told.output),
            Meaning::UsageReasoning => (&mut usage.reasoning, &mut told.reasoning),
            _ => return self.timing(rule, hit, json),
        };
        if rule.fallback && *told {
            return;
        }
        *told |= !rule.fallback;
        *place = Some(count);
        if rule.meaning == Meaning::UsageOutput {
            output.tokens = Some(count);
        }
        self.answer.usage_at = Some(self.stamp);
    }

    fn timing(&mut self, rule: &Rule, hit: &Hit, json: &[u8]) {
        let timings = &mut self.answer.timings;
        let place = match rule.meaning {
            Meaning::TimingQueue => &mut timings.queue_ms,
            Meaning::TimingLoad => &mut timings.load_ms,
            Meaning::TimingPrefill => &mut timings.prefill_ms,
            Meaning::TimingTtft => &mut timings.ttft_ms,
            Meaning::TimingDecode => &mut timings.decode_ms,
            Meaning::TimingTotal => &mut timings.total_ms,
            _ => return,
        };
        if let Some(value) = number(hit.raw(json)) {
            *place = Some(value * rule.unit_ms).filter(|ms| ms.is_finite());
        }
    }

    /// The output's count from its parts: told with what lies beside it, or what the total leaves.
    pub(super) fn join_counts(&mut self, output: &mut Output) {
        let (apart, usage) = (self.apart, &mut self.answer.usage);
        let joined = match (apart.output, apart.total, usage.input) {
            (Some(count), _, _) => Some(count.saturating_add(apart.beside.unwrap_or(0))),
            (None, Some(total), Some(input)) => total.checked_sub(input).filter(|rest| *rest > 0),
            _ => None,
        };
        if joined.is_some() {
            (usage.output, output.tokens) = (joined, joined);
        }
    }

    /// What can only be counted once all has come.
    pub(in super::super) fn settle(&mut self) {
        let choices = self.choices.count_ones().max(self.finished.count_ones());
        if let Some(sum) = self.running.sum(choices, self.answer.events.len()) {
            self.answer.usage.output = Some(sum);
        }
    }
}
