//! The client judged by its own figures: whether this machine, and not the server, made the numbers.

use serde::{Deserialize, Serialize};
use ttft_model::{Doubt, ErrorClass, Load, Nanos, Record, StageWindow};

use crate::samples::Samples;
use crate::say::ms;
use crate::{Distribution, Stream, interval, metrics};

/// How far the client can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing speaks against the figures.
    #[default]
    Ok,
    /// The client was not at its best; the figures stand within what the reasons say.
    Suspect,
    /// The figures are the client's as much as the server's.
    Invalid,
}

impl Verdict {
    /// The name used in every file and report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Suspect => "suspect",
            Self::Invalid => "invalid",
        }
    }
}

/// The client during one stage.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Client {
    /// Who stamped the first tokens: `kernel`, `user`, `mixed`, or `none` when none came.
    pub clock: String,
    /// Share of first tokens with a kernel stamp.
    pub kernel_stamped_share: Option<f64>,
    /// How late first tokens were read: user − kernel. Kernel stamps keep it out of every duration.
    pub read_lag_ms: Distribution,
    /// The largest such lag over all reads.
    pub read_lag_max_ms: Option<f64>,
    /// How late requests were begun against their schedule.
    pub send_lag_ms: Distribution,
    /// From the start of a request to its first byte, on reused connections: the client's own time inside TTFT.
    pub dispatch_lag_ms: Distribution,
    /// CPU time of the busiest worker over the stage's length.
    pub cpu_percent: Option<f64>,
    /// Most requests in flight at once.
    pub max_in_flight: u32,
    /// Requests per second that were started in the steady window, of an open loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_per_s: Option<f64>,
    /// The opinion.
    pub verdict: Verdict,
    /// Why it is not ok, worst first, in sentences with figures.
    pub reasons: Vec<String>,
}

/// The sums behind [`Client`], over all requests but warm-up, failed ones included.
#[derive(Debug, Clone, Default)]
pub(crate) struct ClientFold {
    first_tokens: u64,
    kernel_stamped: u64,
    read_lag: Samples,
    read_lag_max: Option<Nanos>,
    send_lag: Samples,
    dispatch_lag: Samples,
    sent: u64,
    started_steady: u64,
    client_errors: u64,
    clock_steps: u64,
}

impl ClientFold {
    /// Counts one request that is no warm-up.
    pub(crate) fn push(&mut self, r: &Record, steady: bool) {
        self.sent += 1;
        self.started_steady += u64::from(steady);
        if let Some(first) = r.answer.first_token {
            self.first_tokens += 1;
            self.kernel_stamped += u64::from(first.kernel.is_some());
        }
        for (value, samples) in [
            (metrics::read_lag(r), &mut self.read_lag),
            (metrics::send_lag(r), &mut self.send_lag),
            (metrics::dispatch_lag(r), &mut self.dispatch_lag),
        ] {
            samples.extend(value);
        }
        self.read_lag_max = self.read_lag_max.max(r.read_lag_max);
        self.client_errors += u64::from(r.failure().is_some_and(|f| f.class == ErrorClass::Client));
        self.clock_steps += u64::from(r.doubt.has(Doubt::CLOCK_STEP));
    }

    /// The figures with the opinion on them.
    pub(crate) fn finish(self, stage: &Context) -> Client {
        let kernel_stamped_share = crate::stream::share(self.kernel_stamped, self.first_tokens);
        let clock = match kernel_stamped_share {
            None => "none",
            Some(share) if share >= 1.0 => "kernel",
            Some(share) if share <= 0.0 => "user",
            Some(_) => "mixed",
        };
        let busiest = stage.window.worker_cpu_ns.iter().max().filter(|_| stage.length_s > 0.0);
        let mut client = Client {
            clock: clock.to_owned(),
            kernel_stamped_share,
            read_lag_ms: Distribution::of(&self.read_lag),
            read_lag_max_ms: self.read_lag_max.map(Nanos::as_millis_f64),
            send_lag_ms: Distribution::of(&self.send_lag),
            dispatch_lag_ms: Distribution::of(&self.dispatch_lag),
            cpu_percent: busiest.map(|ns| *ns as f64 / 1e7 / stage.length_s),
            max_in_flight: stage.window.max_in_flight,
            started_per_s: (matches!(stage.load, Load::Open { .. } | Load::Trace { .. })
                && stage.steady_s > 0.0)
                .then(|| self.started_steady as f64 / stage.steady_s),
            verdict: Verdict::Ok,
            reasons: Vec::new(),
        };
        let mut reasons: Vec<(Verdict, String)> = [
            first_tokens_coalesced(&client, stage),
            stamps(&client, stage),
            read_lag(&client, stage),
            dispatch(&client, stage),
            schedule(&client, stage),
            rate(&client, stage, self.started_steady),
            users(&client, stage, self.sent),
            cpu(&client),
            errors(self.client_errors, self.sent),
            steps(self.clock_steps),
        ]
        .into_iter()
        .flatten()
        .collect();
        reasons.sort_by_key(|(verdict, _)| std::cmp::Reverse(*verdict));
        client.verdict = reasons.first().map_or(Verdict::Ok, |(verdict, _)| *verdict);
        client.reasons = reasons.into_iter().map(|(_, reason)| reason).collect();
        client
    }
}

/// What the opinion needs to know of the stage beside the client's own sums.
pub(crate) struct Context<'a> {
    pub(crate) load: &'a Load,
    pub(crate) window: &'a StageWindow,
    pub(crate) length_s: f64,
    pub(crate) steady_s: f64,
    pub(crate) ttft_p50: Option<f64>,
    pub(crate) itl_p50: Option<f64>,
    pub(crate) stream: &'a Stream,
}

type Opinion = Option<(Verdict, String)>;

/// `limit` or `share` of the median TTFT, whichever is larger.
fn at_least(limit_ms: f64, share: f64, stage: &Context) -> f64 {
    limit_ms.max(share * stage.ttft_p50.unwrap_or(0.0))
}

/// The read lag that first tokens had, when enough of them have kernel stamps to tell.
fn prompt_reads(client: &Client, stage: &Context) -> Option<f64> {
    let p99 = client.read_lag_ms.p99?;
    (client.kernel_stamped_share? >= 0.5 && p99 <= at_least(1.0, 0.01, stage)).then_some(p99)
}

/// A first token that shared its read with later output arrived at that read or before it. If the client read
/// promptly, the sender put both together, and that is when the user had them; if it did not, nobody can tell.
fn first_tokens_coalesced(client: &Client, stage: &Context) -> Opinion {
    let streams = stage.stream;
    let n = streams.first_token_coalesced.saturating_sub(streams.all_in_one_read);
    let of = streams.requests;
    let share = n as f64 / of.max(1) as f64;
    if share <= 0.001 {
        return None;
    }
    let what = format!("{n} of {of} ({:.1} %) first tokens shared a read with later output", share * 100.0);
    if let Some(lag) = prompt_reads(client, stage) {
        let why = match stage.itl_p50 {
            Some(itl) if itl < 0.5 => format!(
                "unavoidable at {} between tokens; TTFT of these is an upper bound, too high by a few such gaps at most",
                ms(itl)
            ),
            _ => format!(
                "the client read within {} (p99), so the sender put them together: TTFT is when the user had them",
                ms(lag)
            ),
        };
        return Some((Verdict::Suspect, format!("{what}; {why}")));
    }
    // One of a few is no sign of a client that cannot keep up.
    let many = interval::wilson(n, of).is_some_and(|[low, _]| low > 0.01);
    let verdict = if many { Verdict::Invalid } else { Verdict::Suspect };
    Some((
        verdict,
        format!(
            "{what} and the client was late to read: TTFT of these is an upper bound, and no accuracy is claimed"
        ),
    ))
}

/// Without kernel stamps the client's lag is inside every duration.
fn stamps(client: &Client, stage: &Context) -> Opinion {
    let share = client.kernel_stamped_share?;
    if share >= 0.999 {
        return None;
    }
    let what = if share <= 0.0 {
        "no first token has a kernel stamp".to_owned()
    } else {
        format!("{} have no kernel stamp", of_first_tokens(1.0 - share))
    };
    let known = client.read_lag_ms.p99.or(client.read_lag_max_ms);
    if let (Some(lag), Some(ttft)) = (known, stage.ttft_p50)
        && share < 0.5
        && lag > 0.05 * ttft
        && lag > 1.0
    {
        let text = format!(
            "{what}, and where the client's lag is known it is {} against a median TTFT of {}: it is inside the figures",
            ms(lag),
            ms(ttft)
        );
        return Some((Verdict::Invalid, text));
    }
    Some((
        Verdict::Suspect,
        format!("{what}: their TTFT holds the client's own delay, which cannot be told apart"),
    ))
}

/// A worker that used less of its core was not late by its own work.
const IDLE_PERCENT: f64 = 50.0;

fn read_lag(client: &Client, stage: &Context) -> Opinion {
    let p99 = client.read_lag_ms.p99?;
    if client.kernel_stamped_share? < 0.5 || p99 <= at_least(1.0, 0.01, stage) {
        return None;
    }
    let what = match client.cpu_percent {
        Some(cpu) if cpu < IDLE_PERCENT => {
            format!("the client was held up by others (its busiest worker used {cpu:.0} % of a core)")
        }
        _ => "the client is overloaded".to_owned(),
    };
    let text = format!(
        "{what}: it read first tokens {} late (p99); kernel stamps keep this out of the figures; \
         a core of its own or --realtime would help",
        ms(p99)
    );
    Some((Verdict::Suspect, text))
}

fn dispatch(client: &Client, stage: &Context) -> Opinion {
    let (p50, p99) = (client.dispatch_lag_ms.p50?, client.dispatch_lag_ms.p99?);
    if p50 > at_least(0.5, 0.05, stage) {
        let text = format!(
            "the client took {} (median) from start to first byte on ready connections: that is inside TTFT",
            ms(p50)
        );
        return Some((Verdict::Invalid, text));
    }
    (p99 > at_least(0.5, 0.005, stage)).then(|| {
        let text = format!(
            "the client took {} (p99) from start to first byte on ready connections: that is inside TTFT",
            ms(p99)
        );
        (Verdict::Suspect, text)
    })
}

fn schedule(client: &Client, stage: &Context) -> Opinion {
    let (Load::Open { max_in_flight, .. } | Load::Trace { max_in_flight, .. }) = stage.load else {
        return None;
    };
    let p99 = client.send_lag_ms.p99.filter(|p99| *p99 > at_least(1.0, 0.01, stage))?;
    if let Some(limit) = max_in_flight
        && client.max_in_flight >= *limit
    {
        let text = format!(
            "requests waited up to {} (p99) for a place among the {limit} allowed in flight: read ttft_scheduled",
            ms(p99)
        );
        return Some((Verdict::Suspect, text));
    }
    let verdict = if p99 > at_least(1.0, 0.1, stage) { Verdict::Invalid } else { Verdict::Suspect };
    Some((verdict, format!("the client began requests {} after they were due (p99)", ms(p99))))
}

fn rate(client: &Client, stage: &Context, started: u64) -> Opinion {
    let Load::Open { rate, .. } = stage.load else { return None };
    let got = client.started_per_s?;
    // Random arrivals scatter by 1/√n; three times that, and 2 % for the ends, is no shortfall.
    let least = rate * (1.0 - 0.02 - 3.0 / (started.max(1) as f64).sqrt());
    (got < least).then(|| {
        (Verdict::Suspect, format!("the client started {got:.3} requests a second where {rate} were asked"))
    })
}

fn users(client: &Client, stage: &Context, sent: u64) -> Opinion {
    // Users that think are not all waiting for an answer at once.
    let Load::Closed { concurrency, think_time: None, .. } = stage.load else { return None };
    let most = client.max_in_flight;
    if most == 0 || most >= *concurrency {
        return None;
    }
    let text = if sent < u64::from(*concurrency) {
        format!(
            "the stage sent {sent} requests, fewer than its {concurrency} users: its load was never reached"
        )
    } else {
        format!("never more than {most} requests were in flight where {concurrency} users were asked")
    };
    Some((Verdict::Suspect, text))
}

fn cpu(client: &Client) -> Opinion {
    let percent = client.cpu_percent.filter(|percent| *percent > 85.0)?;
    let verdict = if percent > 97.0 { Verdict::Invalid } else { Verdict::Suspect };
    Some((
        verdict,
        format!(
            "the client's busiest worker used {percent:.0} % of its core; give it more cores or less load"
        ),
    ))
}

fn errors(n: u64, sent: u64) -> Opinion {
    let share = crate::stream::share(n, sent).filter(|share| *share > 0.0)?;
    let verdict = if share > 0.01 { Verdict::Invalid } else { Verdict::Suspect };
    Some((verdict, format!("{n} requests failed for want of this client's own ports, files or memory")))
}

fn steps(n: u64) -> Opinion {
    let text = format!("the wall clock stepped during {n} requests; their stamps are this process's own");
    (n > 0).then_some((Verdict::Suspect, text))
}

fn of_first_tokens(share: f64) -> String {
    if share >= 1.0 {
        "all first tokens".to_owned()
    } else {
        format!("{:.1} % of first tokens", share * 100.0)
    }
}
