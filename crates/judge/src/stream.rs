//! What the answers' streams were like: how tokens were packed into events and events into reads, and what lacked.

use serde::{Deserialize, Serialize};
use ttft_model::Record;

use crate::metrics::{self, EventTokens};

/// Counts over the ok requests of a stage, warm-up left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Stream {
    /// Ok requests looked at.
    pub requests: u64,
    /// Events with output.
    pub output_events: u64,
    /// Output tokens over output events, of requests whose tokens are known.
    pub tokens_per_event: Option<f64>,
    /// Output events over reads that brought some.
    pub events_per_read: Option<f64>,
    /// Share of reads with output that brought more than one event of it.
    pub coalesced_reads_share: Option<f64>,
    /// Gaps that could not be measured because both events came in one read.
    pub coalesced_gaps: u64,
    /// Requests whose first token shared its read with later output.
    pub first_token_coalesced: u64,
    /// Those over all requests.
    pub first_token_coalesced_share: Option<f64>,
    /// Requests of more than one output event that all came in one read.
    pub all_in_one_read: u64,
    /// Mean length of the first event, in bytes.
    pub first_event_bytes: Option<f64>,
    /// Requests whose events carry several tokens each: the server bundles.
    pub bundled_by_server: u64,
    /// Requests with several events in one segment, read in time: the server's writes, a proxy or TCP bundle.
    pub bundled_by_path: u64,
    /// Requests with several events in one read that came late: the kernel has merged what waited for this client.
    pub bundled_by_client: u64,
    /// Requests whose tokens per event were told by running usage.
    pub itl_told: u64,
    /// Requests with as many tokens as events.
    pub itl_one_each: u64,
    /// Requests for which every event is taken to carry the mean number of tokens.
    pub itl_mean: u64,
    /// Requests whose tokens nobody counted, so that they have no inter-token latency.
    pub itl_unknown: u64,
    /// Events that were not valid for the dialect.
    pub malformed_events: u64,
    /// Requests whose stream had no terminator.
    pub without_terminator: u64,
    /// Requests without a finish reason.
    pub without_finish: u64,
    /// Requests without the server's count of output tokens.
    pub without_usage: u64,
    /// Requests answered by one document instead of a stream.
    pub not_streamed: u64,
    /// Requests whose answer came compressed.
    pub compressed: u64,
    /// Requests sent once more because a kept connection had been closed.
    pub resent: u64,
    /// Requests on a connection that had carried one before.
    pub reused: u64,
    /// Those over all requests.
    pub reused_share: Option<f64>,
}

/// The sums behind [`Stream`].
#[derive(Debug, Clone, Default)]
pub(crate) struct StreamFold {
    counts: Stream,
    reads_with_output: u64,
    coalesced_reads: u64,
    tokens: u64,
    events_of_known: u64,
    first_event_bytes: u64,
}

/// From so many tokens an event on a server is said to bundle: below, special tokens and held-back characters do it.
const BUNDLE: f64 = 1.5;

/// A read this late may have found more than was sent at once.
const LATE_MS: f64 = 1.0;

impl StreamFold {
    /// Counts one ok request.
    pub(crate) fn push(&mut self, r: &Record) {
        let (facts, events, n) = (&r.answer.facts, &r.answer.events, r.answer.events.len() as u64);
        let coalesced = (0..events.len()).filter(|i| events.is_coalesced(*i)).count() as u64;
        let all = &mut self.counts;
        all.requests += 1;
        all.output_events += n;
        all.coalesced_gaps += coalesced;
        all.first_token_coalesced += u64::from(facts.first_token_coalesced);
        all.all_in_one_read += u64::from(n > 1 && metrics::one_arrival(r));
        all.malformed_events += u64::from(facts.malformed_events);
        all.without_terminator += u64::from(facts.streamed && !facts.terminator);
        all.without_finish += u64::from(!facts.finish);
        all.without_usage += u64::from(r.answer.usage.output.is_none());
        all.not_streamed += u64::from(!facts.streamed);
        all.compressed += u64::from(facts.compressed);
        all.resent += u64::from(r.connection.resent);
        all.reused += u64::from(r.connection.reused);
        let mean_tokens = r.answer.output_tokens().map(|tokens| tokens as f64 / n.max(1) as f64);
        all.bundled_by_server += u64::from(n > 0 && mean_tokens.is_some_and(|tokens| tokens >= BUNDLE));
        if coalesced > 0 {
            let late = r.read_lag_max.is_some_and(|lag| lag.as_millis_f64() > LATE_MS);
            *(if late { &mut all.bundled_by_client } else { &mut all.bundled_by_path }) += 1;
        }
        self.first_event_bytes += u64::from(facts.first_event_bytes);
        match metrics::event_tokens(r) {
            EventTokens::Told => all.itl_told += 1,
            EventTokens::OneEach => all.itl_one_each += 1,
            EventTokens::Mean => all.itl_mean += 1,
            EventTokens::Unknown => all.itl_unknown += 1,
        }
        self.reads_with_output += n - coalesced;
        self.coalesced_reads += u64::from(facts.coalesced_reads);
        if let Some(tokens) = r.answer.output_tokens() {
            self.tokens += tokens;
            self.events_of_known += n;
        }
    }

    /// Adds the counts of another fold.
    pub(crate) fn merge(&mut self, other: &Self) {
        let (all, more) = (&mut self.counts, &other.counts);
        for (ours, theirs) in [
            (&mut all.requests, more.requests),
            (&mut all.output_events, more.output_events),
            (&mut all.coalesced_gaps, more.coalesced_gaps),
            (&mut all.first_token_coalesced, more.first_token_coalesced),
            (&mut all.all_in_one_read, more.all_in_one_read),
            (&mut all.bundled_by_server, more.bundled_by_server),
            (&mut all.bundled_by_path, more.bundled_by_path),
            (&mut all.bundled_by_client, more.bundled_by_client),
            (&mut all.itl_told, more.itl_told),
            (&mut all.itl_one_each, more.itl_one_each),
            (&mut all.itl_mean, more.itl_mean),
            (&mut all.itl_unknown, more.itl_unknown),
            (&mut all.malformed_events, more.malformed_events),
            (&mut all.without_terminator, more.without_terminator),
            (&mut all.without_finish, more.without_finish),
            (&mut all.without_usage, more.without_usage),
            (&mut all.not_streamed, more.not_streamed),
            (&mut all.compressed, more.compressed),
            (&mut all.resent, more.resent),
            (&mut all.reused, more.reused),
            (&mut self.reads_with_output, other.reads_with_output),
            (&mut self.coalesced_reads, other.coalesced_reads),
            (&mut self.tokens, other.tokens),
            (&mut self.events_of_known, other.events_of_known),
            (&mut self.first_event_bytes, other.first_event_bytes),
        ] {
            *ours += theirs;
        }
    }

    /// The counts with their shares.
    pub(crate) fn finish(self) -> Stream {
        let mut all = self.counts;
        all.first_event_bytes = share(self.first_event_bytes, all.requests);
        all.tokens_per_event = share(self.tokens, self.events_of_known);
        all.events_per_read = share(all.output_events, self.reads_with_output);
        all.coalesced_reads_share = share(self.coalesced_reads, self.reads_with_output);
        all.first_token_coalesced_share = share(all.first_token_coalesced, all.requests);
        all.reused_share = share(all.reused, all.requests);
        all
    }
}

/// One count over another; `None` of nothing.
pub(crate) fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}
