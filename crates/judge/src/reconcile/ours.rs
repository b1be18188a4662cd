//! What the client saw of each part of TTFT, and what answers said of their own times: over all ok requests of a
//! stage, since that is what a server's counters cover.

use ttft_model::{Doubt, ErrorClass, Nanos, Outcome, Record};

use crate::{Samples, metrics};

/// The sums of one stage.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ours {
    /// `first_token − started`, of ok requests that have a first token; all others below are of the same requests.
    pub(crate) ttft: Samples,
    /// `connected − started`, 0 on a connection that was ready.
    pub(crate) connection: Samples,
    /// From a ready connection to the request's last byte: the client's own.
    pub(crate) client: Samples,
    /// The smallest round trip of the connection, where the kernel told it.
    pub(crate) rtt_min: Samples,
    /// The smoothed one.
    pub(crate) rtt: Samples,
    /// `last_token − first_token`.
    pub(crate) decode: Samples,
    /// Requests during which segments were sent again.
    pub(crate) retransmitted: u64,
    /// What the answers themselves told.
    pub(crate) told: Told,
    /// TTFT of requests with a part of their prompt in the server's cache, and of those without.
    pub(crate) cached: [Samples; 2],
    /// Prompt tokens that were cached, and all, of requests that told both.
    pub(crate) cached_tokens: [u64; 2],
    /// Requests whose prompts the server saw, whatever became of them.
    pub(crate) reached: u64,
    /// When requests that ended well started: first and last.
    ok: Option<(Nanos, Nanos)>,
    /// The same of requests that found the server gone.
    gone: Option<(Nanos, Nanos)>,
    gone_n: u64,
}

/// What answers told of their own times, in milliseconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Told {
    /// From the server's arrival of a request to its first token, as far back as it tells.
    pub(crate) ttft: Samples,
    /// Of these, how many begin when the request was scheduled and not when it arrived.
    pub(crate) from_scheduled: u64,
    /// The client's TTFT less the server's.
    pub(crate) difference: Samples,
    pub(crate) queue: Samples,
    pub(crate) prefill: Samples,
    pub(crate) decode: Samples,
    /// From a proxy's forwarding of the request to the upstream's response head.
    pub(crate) upstream_head: Samples,
    /// The client's time from `sent` to the response head less that: proxy and network.
    pub(crate) beyond_proxy: Samples,
}

impl Ours {
    /// Counts one request that is no warm-up.
    pub(crate) fn push(&mut self, r: &Record) {
        let started = r.phases.started;
        let span = |known: Option<(Nanos, Nanos)>| {
            Some(known.map_or((started, started), |(a, b)| (a.min(started), b.max(started))))
        };
        self.reached += u64::from(r.status.is_some_and(|status| status < 400));
        if r.outcome() != Outcome::Ok {
            if matches!(
                r.failure().map(|f| f.class),
                Some(ErrorClass::ConnectRefused | ErrorClass::Reset | ErrorClass::Truncated)
            ) {
                self.gone = span(self.gone);
                self.gone_n += 1;
            }
            return;
        }
        self.ok = span(self.ok);
        let Some(ttft) = metrics::ttft(r) else { return };
        self.ttft.push(ttft);
        let connected = r.phases.connected.filter(|_| !r.connection.reused).unwrap_or(started);
        self.connection.push((connected - started).as_millis_f64());
        if let Some(sent) = r.phases.sent {
            self.client.push((sent - connected).as_millis_f64());
        }
        self.rtt_min.extend(metrics::rtt_min(r));
        self.rtt.extend(metrics::rtt(r));
        self.decode.extend(metrics::e2e(r).map(|e2e| e2e - ttft));
        self.retransmitted += u64::from(r.doubt.has(Doubt::RETRANSMITTED));
        self.told.push(r, ttft);
        if let (Some(cached), Some(all)) = (r.answer.usage.cached, r.answer.usage.input) {
            self.cached[usize::from(cached == 0)].push(ttft);
            self.cached_tokens[0] += cached;
            self.cached_tokens[1] += all;
        }
    }

    /// Share of prompt tokens that answers said were cached; `None` where they said nothing.
    pub(crate) fn cached_share(&self) -> Option<f64> {
        let [cached, all] = self.cached_tokens;
        crate::stream::share(cached, all)
    }

    /// How many requests found the server gone, if others ended well before them and after.
    pub(crate) fn gone_and_back(&self) -> Option<u64> {
        let ((first_ok, last_ok), (first_gone, last_gone)) = (self.ok?, self.gone?);
        (first_ok < first_gone && last_ok > last_gone).then_some(self.gone_n)
    }
}

impl Told {
    fn push(&mut self, r: &Record, ttft: f64) {
        let timings = &r.answer.timings;
        let (prefill, queue) = (timings.prefill_ms, timings.queue_ms);
        let before = queue.unwrap_or(0.0) + timings.load_ms.unwrap_or(0.0);
        if let Some(server) = prefill.map(|prefill| prefill + before).or(timings.ttft_ms) {
            self.ttft.push(server);
            self.difference.push(ttft - server);
            self.from_scheduled += u64::from(queue.is_none() && prefill.is_some());
        }
        self.queue.extend(queue);
        self.prefill.extend(prefill);
        self.decode.extend(timings.decode_ms);
        if let (Some(upstream), Some(sent), Some(head)) =
            (r.upstream_head_ms, r.phases.sent, r.phases.headers)
        {
            self.upstream_head.push(upstream);
            self.beyond_proxy.push((head.at() - sent).as_millis_f64() - upstream);
        }
    }
}
