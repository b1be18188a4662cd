//! Where the time of one request went, phase after phase.

use ttft_model::{Nanos, Outcome, Record, Stamp, StampSource};

/// One phase, in milliseconds since the request was begun.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// What happens in it.
    pub name: &'static str,
    /// When it begins.
    pub from_ms: f64,
    /// When it ends.
    pub to_ms: f64,
    /// Who stamped its end.
    pub stamped: StampSource,
    /// The first token ends it.
    pub to_first_token: bool,
}

/// The phases of a request, without a gap, from its start to its end. Each runs from the last known instant to the
/// next one; what did not happen is left out.
pub fn phases(r: &Record) -> Vec<Phase> {
    let own = |at: Option<Nanos>| at.map(Stamp::user);
    let sent = if r.connection.reused { "send (connection reused)" } else { "send" };
    let failed = r.outcome() != Outcome::Ok;
    let ended = r.answer.ended.filter(|_| !failed).unwrap_or(Stamp::user(r.finished));
    let end = if failed { "until it failed" } else { "to the end" };
    let marks = [
        ("dns", own(r.phases.dns_done)),
        ("tcp", own(r.phases.tcp_done)),
        ("tls", own(r.phases.tls_done)),
        (sent, own(r.phases.sent)),
        ("wait for head", r.phases.headers),
        ("head to first event", r.answer.first_event),
        ("to first token", r.answer.first_token),
        ("decode", r.answer.last_token),
        (end, Some(ended)),
    ];
    let mut from = r.phases.started;
    let mut all = Vec::new();
    for (name, mark) in marks {
        let Some(mark) = mark else { continue };
        // Stamps of two clocks may disagree by microseconds: a phase never runs backwards.
        let to = mark.at().max(from);
        let ms = |at: Nanos| (at - r.phases.started).as_millis_f64();
        all.push(Phase {
            name,
            from_ms: ms(from),
            to_ms: ms(to),
            stamped: mark.source(),
            to_first_token: name == "to first token",
        });
        from = to;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_leave_no_gap_and_never_run_backwards() {
        let mut r = Record::default();
        let at = |ms: i64| Nanos::from_millis(ms);
        r.phases.started = at(100);
        r.phases.tcp_done = Some(at(110));
        r.phases.sent = Some(at(112));
        r.phases.headers = Some(Stamp { kernel: Some(at(111)), user: at(130) });
        r.answer.first_token = Some(Stamp::user(at(150)));
        r.finished = at(160);
        let all = phases(&r);
        assert!(all.windows(2).all(|w| w[0].to_ms.to_bits() == w[1].from_ms.to_bits()));
        let spans: Vec<_> = all.iter().map(|p| (p.name, p.to_ms - p.from_ms)).collect();
        assert_eq!(
            spans,
            [
                ("tcp", 10.0),
                ("send", 2.0),
                ("wait for head", 0.0),
                ("to first token", 38.0),
                ("until it failed", 10.0)
            ]
        );
    }
}
