//! Every metric of one request, each a pure function of its record. All durations are in milliseconds.
//!
//! Receive instants are the kernel's where it stamped them and this process's own otherwise ([`Stamp::at`]). Unknown
//! is `None`, never zero, and stays out of every sample.

use ttft_model::{Nanos, Outcome, Record, Stamp};

/// A metric that has one value for a request.
#[derive(Debug, Clone, Copy)]
pub struct Metric {
    /// Its key in files.
    pub name: &'static str,
    /// Its formula over the instants of a record.
    pub formula: &'static str,
    /// Its value in milliseconds.
    pub of: fn(&Record) -> Option<f64>,
}

/// All of them, in the order in which files list them.
pub const METRICS: &[Metric] = &[
    Metric { name: "ttft", formula: "first_token - started", of: ttft },
    Metric { name: "ttft_scheduled", formula: "first_token - scheduled", of: ttft_scheduled },
    Metric { name: "ttft_sent", formula: "first_token - sent", of: ttft_sent },
    Metric { name: "ttft_answer", formula: "first_answer - started", of: ttft_answer },
    Metric {
        name: "time_to_first_sentence",
        formula: "first_sentence - started",
        of: time_to_first_sentence,
    },
    Metric { name: "ttfb", formula: "first_byte - started", of: ttfb },
    Metric { name: "headers_time", formula: "headers - started", of: headers_time },
    Metric { name: "header_gap", formula: "first_token - headers", of: header_gap },
    Metric { name: "event_to_token", formula: "first_token - first_event", of: event_to_token },
    Metric { name: "tpot", formula: "(last_token - first_token) / (output_tokens - 1)", of: tpot },
    Metric { name: "e2e", formula: "last_token - started", of: e2e },
    Metric { name: "total", formula: "ended - started", of: total },
    Metric { name: "connect_time", formula: "connected - started", of: connect_time },
    Metric { name: "dns_time", formula: "dns_done - started", of: dns_time },
    Metric { name: "tcp_time", formula: "tcp_done - (dns_done or started)", of: tcp_time },
    Metric { name: "tls_time", formula: "tls_done - tcp_done", of: tls_time },
    Metric { name: "upload", formula: "acked - sent_first", of: upload },
    Metric { name: "rtt", formula: "TCP_INFO smoothed round trip", of: rtt },
    Metric { name: "rtt_min", formula: "TCP_INFO smallest round trip", of: rtt_min },
    Metric { name: "send_lag", formula: "started - scheduled", of: send_lag },
    Metric {
        name: "dispatch_lag",
        formula: "sent_first - started, on a reused connection",
        of: dispatch_lag,
    },
    Metric { name: "read_lag", formula: "user - kernel stamp of the first token", of: read_lag },
];

/// The metrics that have many values for a request: one for each gap, or for each token.
pub const GAP_METRICS: [(&str, &str); 2] = [
    ("itl", "each gap between arrivals of output, divided over the tokens that arrived"),
    ("event_gap", "each gap between arrivals of output"),
];

/// Time to first token: `first_token − started`.
pub fn ttft(r: &Record) -> Option<f64> {
    since(r.phases.started, r.answer.first_token)
}

/// Time to first token from when the load shape wanted the request: `first_token − scheduled`. Free of coordinated
/// omission.
pub fn ttft_scheduled(r: &Record) -> Option<f64> {
    since(r.phases.scheduled, r.answer.first_token)
}

/// Time to first token without the making of a connection: `first_token − sent`.
pub fn ttft_sent(r: &Record) -> Option<f64> {
    since(r.phases.sent?, r.answer.first_token)
}

/// Time to the first token that is not reasoning: `first_answer − started`.
pub fn ttft_answer(r: &Record) -> Option<f64> {
    since(r.phases.started, r.answer.first_answer)
}

/// Time to the event that completed the first sentence of the visible text: `first_sentence − started`. `None` of an
/// answer without a whole sentence.
pub fn time_to_first_sentence(r: &Record) -> Option<f64> {
    r.answer.first_sentence.map(|at| ms(at - r.phases.started))
}

/// Time to first byte of the body: `first_byte − started`.
pub fn ttfb(r: &Record) -> Option<f64> {
    since(r.phases.started, r.answer.first_byte)
}

/// Time to the response head: `headers − started`.
pub fn headers_time(r: &Record) -> Option<f64> {
    since(r.phases.started, r.phases.headers)
}

/// What a client that stops at the head would miss: `first_token − headers`.
pub fn header_gap(r: &Record) -> Option<f64> {
    since(r.phases.headers?.at(), r.answer.first_token)
}

/// What a client that stops at the first event would miss: `first_token − first_event`.
pub fn event_to_token(r: &Record) -> Option<f64> {
    since(r.answer.first_event?.at(), r.answer.first_token)
}

/// Time to the last token: `last_token − started`.
pub fn e2e(r: &Record) -> Option<f64> {
    since(r.phases.started, r.answer.last_token)
}

/// Time to the end of the stream: `ended − started`, where an end without a terminator is the clean end of the
/// exchange. `None` if no clean end came.
pub fn total(r: &Record) -> Option<f64> {
    let ended = match r.answer.ended {
        Some(ended) => ended.at(),
        None if r.outcome() == Outcome::Ok => r.finished,
        None => return None,
    };
    Some(ms(ended - r.phases.started))
}

/// Time per output token after the first: `(last_token − first_token) / (output_tokens − 1)`.
///
/// `None` when fewer than two tokens came, when nobody counted them, or when all output was one arrival. By
/// construction `e2e = ttft + tpot × (output_tokens − 1)`.
pub fn tpot(r: &Record) -> Option<f64> {
    let (first, last) = (r.answer.first_token?.at(), r.answer.last_token?.at());
    let after_first = r.answer.output_tokens()?.checked_sub(1).filter(|n| *n > 0)?;
    (!one_arrival(r)).then(|| ms(last - first) / after_first as f64)
}

/// Time to have a connection: `connected − started`; `None` when an open one was reused.
pub fn connect_time(r: &Record) -> Option<f64> {
    if r.connection.reused { None } else { Some(ms(r.phases.connected? - r.phases.started)) }
}

/// Resolving the name: `dns_done − started`.
pub fn dns_time(r: &Record) -> Option<f64> {
    Some(ms(r.phases.dns_done? - r.phases.started))
}

/// The TCP handshake: `tcp_done − dns_done`, or from `started` when no name was resolved.
pub fn tcp_time(r: &Record) -> Option<f64> {
    Some(ms(r.phases.tcp_done? - r.phases.dns_done.unwrap_or(r.phases.started)))
}

/// The TLS handshake: `tls_done − tcp_done`.
pub fn tls_time(r: &Record) -> Option<f64> {
    Some(ms(r.phases.tls_done? - r.phases.tcp_done?))
}

/// Until the peer's kernel had the whole request: `acked − sent_first`. Needs transmit stamps.
pub fn upload(r: &Record) -> Option<f64> {
    Some(ms(r.phases.acked? - r.phases.sent_first?))
}

/// The kernel's smoothed round trip, at the first token or else at the end.
pub fn rtt(r: &Record) -> Option<f64> {
    r.tcp_first.or(r.tcp_end).map(|tcp| f64::from(tcp.rtt_us) / 1e3)
}

/// The smallest round trip that the kernel saw on the connection.
pub fn rtt_min(r: &Record) -> Option<f64> {
    r.tcp_first.or(r.tcp_end).map(|tcp| f64::from(tcp.min_rtt_us) / 1e3)
}

/// How late the client was against its own schedule: `started − scheduled`.
pub fn send_lag(r: &Record) -> Option<f64> {
    Some(ms(r.phases.started - r.phases.scheduled))
}

/// The client's own time before the request went out: `sent_first − started` on a reused connection, where nothing
/// else happens in between. It lies inside `ttft`.
pub fn dispatch_lag(r: &Record) -> Option<f64> {
    if r.connection.reused && !r.connection.resent {
        Some(ms(r.phases.sent_first? - r.phases.started))
    } else {
        None
    }
}

/// How late the client read the first token: user − kernel stamp. Kernel stamps keep it out of `ttft`.
pub fn read_lag(r: &Record) -> Option<f64> {
    r.answer.first_token?.lag().map(ms)
}

/// Whether all output was one arrival, so that nothing between tokens can be measured.
pub fn one_arrival(r: &Record) -> bool {
    r.answer.facts.all_in_one_read
        || matches!((r.answer.first_token, r.answer.last_token), (Some(a), Some(b)) if b.at() <= a.at())
}

/// How the tokens of each event are known, which decides what an inter-token latency is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventTokens {
    /// Running usage told them event by event.
    Told,
    /// As many tokens as events, give or take the end-of-text token that has no text: one each.
    OneEach,
    /// Only the sum is known, and it differs: every event is taken to carry the mean.
    Mean,
    /// Nobody counted.
    Unknown,
}

/// How the tokens of each event of this record are known.
pub fn event_tokens(r: &Record) -> EventTokens {
    let events = r.answer.events.len() as u64;
    match r.answer.output_tokens() {
        _ if r.answer.events.tokens.iter().any(|n| *n > 0) => EventTokens::Told,
        Some(tokens) if tokens > 0 && (tokens == events || tokens == events + 1) => EventTokens::OneEach,
        Some(tokens) if tokens > 0 => EventTokens::Mean,
        _ => EventTokens::Unknown,
    }
}

/// One gap between two arrivals of output.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gap {
    /// Its length in milliseconds: one value of `event_gap`.
    pub ms: f64,
    /// The inter-token latency over it in milliseconds; `None` when the tokens that arrived are not known.
    pub itl: Option<f64>,
    /// How many values of `itl` it gives: one for each token of the event that ended it.
    pub weight: u64,
}

/// The gaps of a record, from the first arrival of output to the last.
///
/// An arrival is a read. A gap runs from one arrival to the next and is divided over the tokens that the next one
/// brought. Events that share the read of the event before them ([`ttft_model::EventLog::COALESCED`]) have no gap of
/// their own: they give no value, and their tokens only take part in the division. Where all output was one arrival
/// there is no gap at all. With [`EventTokens::Told`] a gap gives a value for each token of its event, and events
/// whose count was not told give none; otherwise one value a gap.
pub fn gaps(r: &Record) -> Vec<Gap> {
    let events = &r.answer.events;
    if events.len() < 2 || one_arrival(r) {
        return Vec::new();
    }
    let known = event_tokens(r);
    let mean = r.answer.output_tokens().unwrap_or(0) as f64 / events.len() as f64;
    let mut gaps = Vec::with_capacity(events.len() - 1);
    let mut at = 1;
    while at < events.len() {
        let own = at;
        at += 1;
        if events.is_coalesced(own) {
            continue;
        }
        while at < events.len() && events.is_coalesced(at) {
            at += 1;
        }
        let length = ms(events.at[own] - events.at[own - 1]);
        let (arrived, weight) = match known {
            EventTokens::Told => {
                let told: u64 = events.tokens[own..at].iter().map(|n| u64::from(*n)).sum();
                (told as f64, u64::from(events.tokens[own]))
            }
            EventTokens::OneEach => ((at - own) as f64, 1),
            EventTokens::Mean => ((at - own) as f64 * mean, 1),
            EventTokens::Unknown => (0.0, 0),
        };
        let itl = (weight > 0).then(|| length / arrived);
        gaps.push(Gap { ms: length, itl, weight });
    }
    gaps
}

fn since(from: Nanos, to: Option<Stamp>) -> Option<f64> {
    Some(ms(to?.at() - from))
}

fn ms(duration: Nanos) -> f64 {
    duration.as_millis_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ttft_model::Channel;

    /// A record with events at these milliseconds carrying these tokens; a negative time marks a coalesced event.
    fn record(events: &[(i64, u32)], output: Option<u64>) -> Record {
        let mut r = Record::default();
        for (at, tokens) in events {
            r.answer.events.push(Nanos::from_millis(at.abs()), *tokens, Channel::Text, *at < 0);
        }
        let stamp = |at: Option<&(i64, u32)>| at.map(|(at, _)| Stamp::user(Nanos::from_millis(at.abs())));
        r.answer.first_token = stamp(events.first());
        r.answer.last_token = stamp(events.last());
        r.answer.usage.output = output;
        r
    }

    fn itls(r: &Record) -> Vec<f64> {
        gaps(r).iter().flat_map(|g| vec![g.itl.unwrap_or(f64::NAN); g.weight as usize]).collect()
    }

    #[test]
    fn several_tokens_in_an_event() {
        let r = record(&[(100, 1), (130, 4), (160, 4), (190, 3)], Some(12));
        let itl = itls(&r);
        assert_eq!(itl, [vec![7.5; 8], vec![10.0; 3]].concat());
        let mean = itl.iter().sum::<f64>() / itl.len() as f64;
        assert!((mean - tpot(&r).unwrap()).abs() < 1e-12);
        assert!(gaps(&r).iter().all(|g| g.ms.to_bits() == 30f64.to_bits()));
    }

    #[test]
    fn coalesced_events_are_one_arrival() {
        let r = record(&[(0, 1), (20, 1), (60, 1), (-60, 1), (80, 1)], Some(5));
        assert_eq!(itls(&r), [20.0, 20.0, 20.0]);
        assert_eq!(gaps(&r).iter().map(|g| g.ms).collect::<Vec<_>>(), [20.0, 40.0, 20.0]);
        let first = record(&[(0, 0), (0, 0), (-50, 0), (70, 0)], Some(4));
        assert_eq!(gaps(&first).len(), 2);
    }

    #[test]
    fn one_arrival_measures_nothing() {
        let mut r = record(&[(500, 1), (-500, 1), (-500, 1)], Some(3));
        assert_eq!((tpot(&r), gaps(&r).len()), (None, 0));
        assert_eq!(e2e(&r), Some(500.0));
        r = record(&[(500, 1), (510, 1)], Some(2));
        r.answer.facts.all_in_one_read = true;
        assert_eq!((tpot(&r), gaps(&r).len()), (None, 0));
    }

    #[test]
    fn tokens_not_told() {
        assert_eq!(itls(&record(&[(0, 0), (10, 0), (30, 0)], Some(3))), [10.0, 20.0]);
        assert_eq!(itls(&record(&[(0, 0), (10, 0), (30, 0)], Some(4))), [10.0, 20.0], "end of text");
        assert_eq!(itls(&record(&[(0, 0), (10, 0), (30, 0)], Some(6))), [5.0, 10.0], "two each on average");
        assert_eq!(itls(&record(&[(0, 0), (10, 0), (30, 0)], None)), [] as [f64; 0]);
        assert_eq!(gaps(&record(&[(0, 0), (10, 0), (30, 0)], None)).len(), 2);
        assert_eq!(itls(&record(&[(0, 1), (10, 0), (30, 2)], Some(3))), [10.0, 10.0], "one not told");
    }

    #[test]
    fn unknown_is_none() {
        let r = Record::default();
        for metric in METRICS.iter().filter(|m| m.name != "send_lag") {
            assert_eq!((metric.of)(&r), None, "{}", metric.name);
        }
    }

    #[test]
    fn total_needs_a_clean_end() {
        let mut r = record(&[(5, 0)], None);
        r.finished = Nanos::from_millis(9);
        assert_eq!(total(&r), None);
        r.answer.outcome = Some(Outcome::Ok);
        assert_eq!(total(&r), Some(9.0));
        r.answer.ended = Some(Stamp::user(Nanos::from_millis(7)));
        assert_eq!(total(&r), Some(7.0));
    }

    #[test]
    fn connecting_is_not_measured_on_a_reused_connection() {
        let mut r = Record::default();
        r.phases.connected = Some(Nanos(10));
        r.phases.sent_first = Some(Nanos(2_000_000));
        assert_eq!((connect_time(&r), dispatch_lag(&r)), (Some(1e-5), None));
        r.connection.reused = true;
        assert_eq!((connect_time(&r), dispatch_lag(&r)), (None, Some(2.0)));
    }

    proptest! {
        #[test]
        fn e2e_is_ttft_and_tpot(started in 0i64..1i64 << 60, first in 0i64..1i64 << 45, decode in 1i64..1i64 << 45, n in 2u64..100_000) {
            let mut r = Record::default();
            r.phases.started = Nanos(started);
            r.answer.first_token = Some(Stamp::user(Nanos(started + first)));
            r.answer.last_token = Some(Stamp { kernel: Some(Nanos(started + first + decode)), user: Nanos(i64::MAX) });
            r.answer.usage.output = Some(n);
            let sum = ttft(&r).unwrap() + tpot(&r).unwrap() * (n - 1) as f64;
            let e2e = e2e(&r).unwrap();
            prop_assert!((sum - e2e).abs() <= 4.0 * f64::EPSILON * e2e);
        }
    }
}
