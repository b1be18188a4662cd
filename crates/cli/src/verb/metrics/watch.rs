//! Pages each second, with what is new on them, until Ctrl-C.

use std::io::IsTerminal;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use anyhow::anyhow;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};
use ttft_kernel::mono_now;
use ttft_model::Nanos;
use ttft_sources::Catalogue;

use super::source::{Fetcher, Kind, Scrape, Source};
use super::{Args, Outcome, form, text};
use crate::exit::{self, Exit};
use crate::{output, usage};

/// Between two scrapes.
const EVERY: Nanos = Nanos::from_millis(1000);

/// Moves to the upper left corner, and clears from there.
const ANEW: &str = "\x1b[H\x1b[J";

/// Watches sources. A scrape that fails leaves a gap; the next one is compared with the last that did not.
pub(super) fn run(
    catalogue: &Catalogue,
    fetcher: &Fetcher,
    sources: &[Source],
    args: &Args,
) -> anyhow::Result<Exit> {
    if let Some(source) = sources.iter().find(|source| source.kind == Kind::Stdin) {
        return Err(usage(anyhow!("{} cannot be watched", source.name)));
    }
    let interrupted = interruptions();
    let terminal = std::io::stdout().is_terminal() && !args.json;
    let mut before: Vec<Option<Scrape>> = sources.iter().map(|_| None).collect();
    let mut answered = false;
    let mut next = mono_now();
    for scrape in 1_u64.. {
        let mut outcomes = Vec::new();
        for (source, before) in sources.iter().zip(&mut before) {
            let read = fetcher.page(source).map(|now| {
                let reading = match &*before {
                    Some(old) => {
                        catalogue.read_window(&old.page, &now.page, Some((now.at - old.at).as_secs_f64()))
                    }
                    None => catalogue.read(&now.page),
                };
                *before = Some(now);
                reading
            });
            answered |= read.is_ok();
            outcomes.push(Outcome { name: source.name.clone(), read });
        }
        show(&outcomes, args.json, terminal)?;
        if args.scrapes == Some(scrape) {
            break;
        }
        next = next + EVERY;
        // A server that is slower than a second is not asked twice at once.
        next = next.max(mono_now());
        match interrupted.recv_timeout((next - mono_now()).to_std()) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return Ok(Exit::Interrupted),
        }
    }
    Ok(if answered { Exit::Ok } else { Exit::NotMeasured })
}

/// One table on a terminal, one after another elsewhere, or one line of JSON a scrape.
fn show(outcomes: &[Outcome], json: bool, terminal: bool) -> anyhow::Result<()> {
    if json {
        for outcome in outcomes {
            let line = serde_json::to_string(&form(outcome))?;
            output::print(&format!("{}\n", output::harmless(&line)))?;
        }
        return Ok(());
    }
    let style = output::style(&std::io::stdout());
    let mut page = if terminal { ANEW.to_owned() } else { String::new() };
    for outcome in outcomes {
        match &outcome.read {
            Ok(reading) => page += &text::reading(&outcome.name, reading, style),
            Err(error) => {
                let words = ttft_show::escape(&exit::words(error)).into_owned();
                page.extend([&*ttft_show::escape(&outcome.name), ": no page: ", &words, "\n"]);
            }
        }
        page.push('\n');
    }
    output::print(&page)
}

/// Tells of Ctrl-C and of the request to terminate.
fn interruptions() -> Receiver<()> {
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
        runtime.block_on(async {
            let (Ok(mut interrupt), Ok(mut terminate)) =
                (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
            else {
                return;
            };
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        });
        // Whoever listened may be gone.
        let _ = tell.send(());
    });
    told
}
