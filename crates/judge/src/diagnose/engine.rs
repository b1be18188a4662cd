//! What load does inside the engine: queue, memory, prompts, decoding.

use super::{Claim, MATTERS, SMALL_MS, Seen, load};
use crate::say::ms;
use crate::{Cause, Confidence};

/// The KV cache is full from this share on.
const FULL: f64 = 0.9;

/// The engine reads prompts all the time when these, one after another, would take this share of it. Far more than all
/// of it cannot be: prompts are then read side by side, and the share says nothing.
const BUSY: std::ops::Range<f64> = 0.6..1.3;

/// TPOT that grew by this factor has slowed.
const SLOWED: f64 = 1.3;

/// A prefill that everybody notices.
const LONG_MS: f64 = 1000.0;

/// Most of a rise.
const MOST: f64 = 0.6;

/// Throughput that grew by less than this share of the load has come to its end.
const FLAT: f64 = 0.6;

/// The cause inside the engine of a stage without a lower load beside it. Only a queue can be told, since without load
/// there is none.
pub(super) fn alone(worst: &Seen) -> Option<Claim> {
    let queue = worst.parts().queue.ms?;
    (queue > SMALL_MS && queue > MOST * worst.parts().ttft_ms?)
        .then(|| memory(worst, queue).unwrap_or_else(|| slots(worst, queue, Confidence::High)))
}

/// The cause inside the engine, if it is there that TTFT has risen, with how busy its accelerators were.
pub(super) fn risen(base: &Seen, worst: &Seen) -> Option<Claim> {
    let mut claim = grew_inside(base, worst)?;
    if let Some(busy) = worst.view.highest("gpu_util_percent") {
        claim.because = format!("{}, accelerators {:.0} % busy", claim.because, busy.mean);
    }
    Some(claim)
}

fn grew_inside(base: &Seen, worst: &Seen) -> Option<Claim> {
    let grown = |part: fn(&Seen) -> Option<f64>| Some(part(worst)? - part(base).unwrap_or(0.0));
    let queue = grown(|s| s.parts().queue.ms);
    let told = worst.server().is_some();
    let whole = worst.parts().ttft_ms? - base.parts().ttft_ms?;
    let inside = match (base.server(), worst.server()) {
        (Some(from), Some(to)) => to - from,
        _ => worst.beyond_the_way()? - base.beyond_the_way()?,
    };
    if inside < SMALL_MS || inside < MATTERS * whole {
        return None;
    }
    if let Some(claim) = memory(worst, queue.unwrap_or(inside)) {
        return Some(Claim { ms: inside, ..claim });
    }
    let front_end = grown(|s| s.parts().engine.ms).filter(|_| worst.parts().prefill.ms.is_some());
    let prefill = grown(|s| s.parts().prefill.ms);
    if let Some(grew) = front_end
        && grew > queue.unwrap_or(0.0).max(prefill.unwrap_or(0.0))
        && grew > (1.0 - MOST) * inside
    {
        return Some(taking_over(worst, grew));
    }
    let busy = busy(base, worst);
    let slowed = slowed(base, worst);
    let confidence = if told { Confidence::High } else { Confidence::Medium };
    let queued = queue.is_some_and(|queue| queue > MOST * inside);
    if busy.is_some_and(|busy| BUSY.contains(&busy)) {
        return Some(prompts(
            base,
            worst,
            inside,
            busy,
            if queued { Confidence::Medium } else { confidence },
        ));
    }
    if queued {
        return Some(slots(worst, inside, Confidence::High));
    }
    if let Some(slowed) = slowed.filter(|factor| *factor > SLOWED)
        && prefill.is_none_or(|prefill| prefill > (1.0 - MOST) * inside)
    {
        return Some(interference(worst, inside, slowed, confidence));
    }
    if prefill.is_some_and(|prefill| prefill > MOST * inside) {
        return Some(prompts(base, worst, inside, busy, Confidence::Medium));
    }
    let confidence = if told || flat(base, worst) { Confidence::Medium } else { Confidence::Low };
    Some(slots(worst, inside, confidence))
}

/// Prompts that take long to read whatever the load: most of a TTFT that everybody notices.
pub(super) fn long_prompts(worst: &Seen) -> Option<Claim> {
    let (prefill, whole) = (worst.parts().prefill.ms?, worst.parts().ttft_ms?);
    if prefill < LONG_MS || prefill < MOST * whole {
        return None;
    }
    let tokens = worst.stage.tokens.input.per_request.mean;
    let speed =
        tokens.map(|tokens| format!(", {tokens:.0} tokens at {:.0} tokens/s", tokens / (prefill / 1e3)));
    Some(Claim {
        cause: Cause::Prefill,
        confidence: Confidence::High,
        ms: prefill,
        what: "reading the prompt takes most of TTFT".to_owned(),
        because: format!("prefill takes {}{}", ms(prefill), speed.unwrap_or_default()),
        remedy: "shorten prompts, let the prefix cache work, or give the engine more compute: this is no matter of load",
    })
}

/// The share of the engine's time that prompts would take, each read as alone at the lowest load.
fn busy(base: &Seen, worst: &Seen) -> Option<f64> {
    let alone = base.parts().prefill.ms.or_else(|| base.beyond_the_way())?;
    Some(worst.stage.throughput.requests_per_s? * alone / 1e3)
}

fn slowed(base: &Seen, worst: &Seen) -> Option<f64> {
    base.median("tpot").zip(worst.median("tpot")).filter(|(from, _)| *from > 0.0).map(|(from, to)| to / from)
}

fn flat(base: &Seen, worst: &Seen) -> bool {
    let rate = |s: &Seen| s.stage.throughput.requests_per_s;
    let factor = load(worst.stage) / load(base.stage).max(f64::MIN_POSITIVE);
    rate(base).zip(rate(worst)).is_some_and(|(from, to)| to / from < FLAT * factor)
}

fn memory(worst: &Seen, queue: f64) -> Option<Claim> {
    let preempted = worst.view.total("preemptions").filter(|n| *n > 0.0);
    let usage = worst.view.highest("kv_cache_usage_ratio").map(|range| range.max);
    let full = usage.filter(|usage| *usage >= FULL);
    let waiting = worst.view.level("waiting").is_some_and(|range| range.max >= 1.0);
    let mut because = Vec::new();
    because.extend(preempted.map(|n| format!("{n:.0} preemptions")));
    because.extend(usage.map(|usage| format!("KV cache up to {:.0} % full", usage * 100.0)));
    let confidence = match (preempted, full) {
        (Some(_), _) => Confidence::High,
        (None, Some(_)) if waiting => Confidence::Medium,
        _ => return None,
    };
    Some(Claim {
        cause: Cause::KvCache,
        confidence,
        ms: queue,
        what: "the KV cache is full: requests wait for memory, or are thrown out and computed again"
            .to_owned(),
        because: because.join(", "),
        remedy: "give the cache more memory (--gpu-memory-utilization, a quantised KV cache), shorten contexts, or allow fewer sequences at once",
    })
}

fn slots(worst: &Seen, queue: f64, confidence: Confidence) -> Claim {
    let level = |name: &str| worst.view.level(name);
    let mut because = Vec::new();
    because.extend(
        worst.parts().queue.ms.map(|queue| format!("requests wait {} before they are scheduled", ms(queue))),
    );
    if let (Some(waiting), Some(running)) = (level("waiting"), level("running")) {
        because.push(format!("{:.1} waiting and {:.1} running on average", waiting.mean, running.mean));
    }
    if because.is_empty() {
        because.push(
            "TTFT grows while tokens, once they come, come as fast as before; no server told its queue"
                .to_owned(),
        );
    }
    Claim {
        cause: Cause::Queue,
        confidence,
        ms: queue,
        what: "requests wait in the engine's queue for a place in the batch".to_owned(),
        because: because.join(", "),
        remedy: "allow more sequences at once (--max-num-seqs), add replicas, or offer less load",
    }
}

fn prompts(base: &Seen, worst: &Seen, by: f64, busy: Option<f64>, confidence: Confidence) -> Claim {
    let mut because = Vec::new();
    if let (Some(from), Some(to)) = (base.parts().prefill.ms, worst.parts().prefill.ms) {
        because.push(format!("prefill takes {} where it took {} at {}", ms(to), ms(from), base.stage.name));
    }
    because.extend(busy.filter(|busy| BUSY.contains(busy)).map(|busy| {
        format!(
            "at this rate prompts alone, one after another, would take {:.0} % of the engine's time",
            busy * 100.0
        )
    }));
    Claim {
        cause: Cause::Prefill,
        confidence,
        ms: by,
        what: "the engine is busy reading prompts".to_owned(),
        because: because.join(", "),
        remedy: "shorten prompts, let the prefix cache work, raise --max-num-batched-tokens, or move prefill to engines of its own",
    }
}

fn taking_over(worst: &Seen, by: f64) -> Claim {
    let parts = worst.parts();
    let (queue, prefill) = (parts.queue.ms.unwrap_or(0.0), parts.prefill.ms.unwrap_or(0.0));
    Claim {
        cause: Cause::FrontEnd,
        confidence: Confidence::High,
        ms: by,
        what: "the server's front end is busy: HTTP, tokenizing, handing over to the engine and back"
            .to_owned(),
        because: format!(
            "{} of the server's own TTFT are neither queue ({}) nor prefill ({})",
            ms(parts.engine.ms.unwrap_or(0.0)),
            ms(queue),
            ms(prefill)
        ),
        remedy: "give the server's API process cores of its own, or run several of them (--api-server-count)",
    }
}

fn interference(worst: &Seen, by: f64, slowed: f64, confidence: Confidence) -> Claim {
    let prefill = worst.parts().prefill.ms.map(|prefill| format!(", prefill takes {}", ms(prefill)));
    Claim {
        cause: Cause::DecodeInterference,
        confidence,
        ms: by,
        what: "prompts and decoding slow each other down".to_owned(),
        because: format!("TPOT is {slowed:.1} times that of the lowest load{}", prefill.unwrap_or_default()),
        remedy: "smaller prefill chunks, fewer sequences at once, or prefill and decoding on engines of their own",
    }
}
