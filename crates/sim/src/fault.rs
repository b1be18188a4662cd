//! Misbehaviour on demand: the names, their values, and which request each one hits.

use std::str::FromStr;

use ttft_model::Nanos;

use crate::Error;
use crate::random::{mix, unit};

/// What an engine does wrong, each to a share of the requests.
///
/// Written `NAME`, `NAME=VALUE` or `NAME=VALUE@SHARE`, for example `cut=5@0.1`. Which requests are hit follows
/// from the seed and the order of arrival, so that a run can be repeated.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Faults(Vec<Chosen>);

#[derive(Debug, Clone, PartialEq)]
struct Chosen {
    fault: Fault,
    share: f64,
}

/// One way to misbehave. Times are milliseconds in their text form.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    RoleEarly,
    Reasoning(u32),
    Comments(Nanos),
    TokensPerEvent(u32),
    Coalesce(u32),
    Cut(u32),
    Reset(u32),
    ErrorEvent(u32),
    JsonError,
    Plain,
    Status(u16),
    SlowHeaders(Nanos),
    Stall(u32, Nanos),
    NoUsage,
    NoDone,
    NoFinish,
    Gzip,
    Crlf,
    Html,
    CloseIdle(Nanos),
    CloseAfter,
    EventSize(usize),
    NeverEnd,
    Utf8Split,
    HeadersWithFirstToken,
}

/// Every fault: how it is written, and what it does.
const FAULTS: [(&str, &str); 25] = [
    ("role-early", "the role chunk comes at once, long before the first token"),
    ("reasoning=K", "the first K tokens are reasoning_content"),
    ("comments=MS", "a keep-alive comment every MS milliseconds before the first token"),
    ("tokens-per-event=K", "K tokens in each event"),
    ("coalesce=K", "K events in each write"),
    ("cut=K", "closes after K tokens, without the last chunk"),
    ("reset=K", "resets the connection after K tokens"),
    ("error-event=K", "an error event after K tokens, then [DONE]"),
    ("json-error", "HTTP 200 with an error as JSON"),
    ("plain", "answers a stream request with one JSON document"),
    ("status=CODE", "refuses with 401, 404, 429, 500 or 503"),
    ("slow-headers=MS", "the response head comes MS milliseconds late"),
    ("stall=K:MS", "stands still for MS milliseconds after K tokens, then sends at once what came due"),
    ("no-usage", "no usage, though asked for"),
    ("no-done", "no [DONE]"),
    ("no-finish", "no finish_reason"),
    ("gzip", "a gzip-compressed stream"),
    ("crlf", "lines end in CR LF"),
    ("html", "HTTP 502 with an HTML page, as from a proxy"),
    ("close-idle=MS", "closes connections that were idle for MS milliseconds"),
    ("close-after", "closes after each answer without saying so"),
    ("event-size=BYTES", "the second token's event is padded to BYTES"),
    ("never-end", "sends every token, then neither end nor close"),
    ("utf8-split", "characters of several bytes, cut between writes"),
    ("headers-with-first-token", "the response head waits for the first token"),
];

/// Statuses that `status=` knows.
const STATUSES: [u16; 5] = [401, 404, 429, 500, 503];

impl Faults {
    /// How each fault is written, and what it does.
    pub const fn all() -> &'static [(&'static str, &'static str)] {
        &FAULTS
    }

    /// Reads one fault as on the command line and adds it.
    pub fn add(&mut self, text: &str) -> Result<(), Error> {
        self.0.push(text.parse()?);
        Ok(())
    }

    /// Reads faults as on the command line.
    pub fn parse<'a>(texts: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let mut faults = Self::default();
        for text in texts {
            faults.add(text)?;
        }
        Ok(faults)
    }

    /// What happens to that request.
    pub(crate) fn pick(&self, seed: u64, request: u64) -> Misdeeds {
        let mut misdeeds = Misdeeds::default();
        for (i, chosen) in self.0.iter().enumerate() {
            let draw = unit(mix(seed ^ mix(request ^ mix(i as u64 + 1))));
            if draw < chosen.share {
                misdeeds.set(chosen.fault);
            }
        }
        misdeeds
    }

    /// How long a connection may be idle.
    pub(crate) fn close_idle(&self) -> Option<Nanos> {
        self.0.iter().find_map(|chosen| match chosen.fault {
            Fault::CloseIdle(after) => Some(after),
            _ => None,
        })
    }
}

impl FromStr for Chosen {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |problem: String| Error::BadFault { text: text.to_owned(), problem };
        let (named, share) = match text.split_once('@') {
            Some((named, share)) => {
                let share = share.parse().ok().filter(|s| (0.0..=1.0).contains(s));
                (named, share.ok_or_else(|| bad("the share after @ must be from 0 to 1".to_owned()))?)
            }
            None => (text, 1.0),
        };
        let (name, value) = match named.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (named, None),
        };
        let form = FAULTS.iter().map(|(form, _)| *form).find(|form| form.split('=').next() == Some(name));
        let Some(form) = form else {
            let known = FAULTS.iter().map(|(form, _)| *form).collect();
            return Err(Error::UnknownFault { name: name.to_owned(), known });
        };
        match read(name, value) {
            Some(fault) => Ok(Self { fault, share }),
            None => Err(bad(format!("write it as {form}"))),
        }
    }
}

/// The fault of a known name; `None` when its value does not fit.
fn read(name: &str, value: Option<&str>) -> Option<Fault> {
    let count = |text: &str| text.parse::<u32>().ok();
    let time = |text: &str| text.parse::<u32>().ok().map(|ms| Nanos::from_millis(i64::from(ms)));
    let at_least_one = |text: &str| count(text).filter(|k| *k > 0);
    let Some(value) = value else {
        return match name {
            "role-early" => Some(Fault::RoleEarly),
            "json-error" => Some(Fault::JsonError),
            "plain" => Some(Fault::Plain),
            "no-usage" => Some(Fault::NoUsage),
            "no-done" => Some(Fault::NoDone),
            "no-finish" => Some(Fault::NoFinish),
            "gzip" => Some(Fault::Gzip),
            "crlf" => Some(Fault::Crlf),
            "html" => Some(Fault::Html),
            "close-after" => Some(Fault::CloseAfter),
            "never-end" => Some(Fault::NeverEnd),
            "utf8-split" => Some(Fault::Utf8Split),
            "headers-with-first-token" => Some(Fault::HeadersWithFirstToken),
            _ => None,
        };
    };
    match name {
        "reasoning" => count(value).map(Fault::Reasoning),
        "comments" => time(value).filter(|t| t.0 > 0).map(Fault::Comments),
        "tokens-per-event" => at_least_one(value).map(Fault::TokensPerEvent),
        "coalesce" => at_least_one(value).map(Fault::Coalesce),
        "cut" => count(value).map(Fault::Cut),
        "reset" => count(value).map(Fault::Reset),
        "error-event" => count(value).map(Fault::ErrorEvent),
        "status" => value.parse().ok().filter(|code| STATUSES.contains(code)).map(Fault::Status),
        "slow-headers" => time(value).map(Fault::SlowHeaders),
        "stall" => {
            let (after, length) = value.split_once(':')?;
            Some(Fault::Stall(count(after)?, time(length)?))
        }
        "close-idle" => time(value).map(Fault::CloseIdle),
        // A chunk this large is held in memory whole.
        "event-size" => value.parse().ok().filter(|bytes| *bytes <= 1 << 30).map(Fault::EventSize),
        _ => None,
    }
}

/// What one request suffers.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Misdeeds {
    pub(crate) role_early: bool,
    pub(crate) reasoning: u32,
    pub(crate) comments: Option<Nanos>,
    pub(crate) tokens_per_event: Option<u32>,
    pub(crate) coalesce: Option<u32>,
    pub(crate) cut: Option<u32>,
    pub(crate) reset: Option<u32>,
    pub(crate) error_event: Option<u32>,
    pub(crate) json_error: bool,
    pub(crate) plain: bool,
    pub(crate) status: Option<u16>,
    pub(crate) slow_headers: Option<Nanos>,
    pub(crate) stall: Option<(u32, Nanos)>,
    pub(crate) no_usage: bool,
    pub(crate) no_done: bool,
    pub(crate) no_finish: bool,
    pub(crate) gzip: bool,
    pub(crate) crlf: bool,
    pub(crate) html: bool,
    pub(crate) close_after: bool,
    pub(crate) event_size: Option<usize>,
    pub(crate) never_end: bool,
    pub(crate) utf8_split: bool,
    pub(crate) headers_with_first_token: bool,
}

impl Misdeeds {
    /// Adds what the request asks for itself (header `x-sim-fault`, several separated by commas); the share
    /// is drawn as usual.
    pub(crate) fn add_asked(&mut self, text: &str, seed: u64, request: u64) -> Result<(), Error> {
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let chosen: Chosen = part.parse()?;
            if unit(mix(seed ^ mix(request))) < chosen.share {
                self.set(chosen.fault);
            }
        }
        Ok(())
    }

    fn set(&mut self, fault: Fault) {
        match fault {
            Fault::RoleEarly => self.role_early = true,
            Fault::Reasoning(tokens) => self.reasoning = tokens,
            Fault::Comments(every) => self.comments = Some(every),
            Fault::TokensPerEvent(tokens) => self.tokens_per_event = Some(tokens),
            Fault::Coalesce(events) => self.coalesce = Some(events),
            Fault::Cut(after) => self.cut = Some(after),
            Fault::Reset(after) => self.reset = Some(after),
            Fault::ErrorEvent(after) => self.error_event = Some(after),
            Fault::JsonError => self.json_error = true,
            Fault::Plain => self.plain = true,
            Fault::Status(code) => self.status = Some(code),
            Fault::SlowHeaders(by) => self.slow_headers = Some(by),
            Fault::Stall(after, length) => self.stall = Some((after, length)),
            Fault::NoUsage => self.no_usage = true,
            Fault::NoDone => self.no_done = true,
            Fault::NoFinish => self.no_finish = true,
            Fault::Gzip => self.gzip = true,
            Fault::Crlf => self.crlf = true,
            Fault::Html => self.html = true,
            Fault::CloseIdle(_) => {}
            Fault::CloseAfter => self.close_after = true,
            Fault::EventSize(bytes) => self.event_size = Some(bytes),
            Fault::NeverEnd => self.never_end = true,
            Fault::Utf8Split => self.utf8_split = true,
            Fault::HeadersWithFirstToken => self.headers_with_first_token = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_fault_reads_in_its_form() {
        for (form, _) in Faults::all() {
            let text =
                form.replace('K', "3").replace("MS", "40").replace("CODE", "503").replace("BYTES", "100");
            Faults::parse([text.as_str()]).unwrap_or_else(|e| panic!("{text}: {e}"));
            Faults::parse([format!("{text}@0.5").as_str()]).unwrap();
        }
    }

    #[test]
    fn wrong_faults_say_what_is_right() {
        let error = |text: &str| Faults::parse([text]).unwrap_err().to_string();
        assert!(error("slow").contains("stall=K:MS"), "{}", error("slow"));
        assert_eq!(error("cut"), "fault `cut`: write it as cut=K");
        assert_eq!(error("gzip=1"), "fault `gzip=1`: write it as gzip");
        assert_eq!(error("status=200"), "fault `status=200`: write it as status=CODE");
        assert!(error("cut=3@2").contains("from 0 to 1"));
        assert!(error("stall=3").contains("stall=K:MS"));
    }

    #[test]
    fn a_share_hits_about_that_many_requests_and_the_same_ones_again() {
        let faults = Faults::parse(["cut=5@0.25", "gzip@0.5"]).unwrap();
        let hits = |seed| (0..4000).map(|i| faults.pick(seed, i)).collect::<Vec<_>>();
        let one = hits(1);
        let share = |test: fn(&Misdeeds) -> bool| one.iter().filter(|m| test(m)).count();
        assert!((900..1100).contains(&share(|m| m.cut == Some(5))));
        assert!((1850..2150).contains(&share(|m| m.gzip)));
        assert!((400..600).contains(&share(|m| m.gzip && m.cut.is_some())), "the two are independent");
        assert_eq!(one, hits(1));
        assert_ne!(one, hits(2));
    }

    #[test]
    fn a_request_asks_for_several() {
        let mut misdeeds = Misdeeds::default();
        misdeeds.add_asked("cut=2, crlf", 0, 0).unwrap();
        assert!(misdeeds.crlf && misdeeds.cut == Some(2));
        assert!(misdeeds.add_asked("nope", 0, 0).is_err());
    }
}
