//! Is the reported time to first token true? Each request of the client is joined with the engine's log.

mod beside;
mod case;
mod joined;
mod text;

use anyhow::Context;
use clap::Args as ClapArgs;

use crate::accuracy::case::{CASES, Case, Row, measure};
use crate::peers::Peer;
use crate::quiet::Patience;
use crate::report::{Report, note};
use crate::table::figure;

/// What `accuracy` takes.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Only cases with one of these names, such as 1000x50
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    only: Vec<String>,
    /// Times that a case is tried when others used the cores meanwhile; the quietest try counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    tries: u32,
    /// Run the installed load testers that measure a time to first token too
    #[arg(long)]
    peers: bool,
}

/// Runs the cases one after the other.
pub(crate) fn run(args: &Args, patience: &mut Patience) -> anyhow::Result<Report> {
    let mut rows = Vec::new();
    let mut others = Vec::new();
    for case in CASES.iter().filter(|case| args.only.is_empty() || args.only.contains(&case.name())) {
        rows.push(quietest(args.tries, patience, case)?);
        for peer in Peer::ALL.into_iter().filter(|peer| args.peers && beside::applies(*peer, case)) {
            patience.wait()?;
            match beside::measure(peer, case) {
                Ok(row) => others.extend(row),
                Err(e) => note(&format!("{}: {}: left out: {e:#}", case.name(), peer.name())),
            }
        }
    }
    let text = format!("{}\n{}", text::of(&rows), beside::text(&others));
    Report::new("accuracy: reported − true time to first token, µs", text, &(rows, others))
}

/// The try during which others used the cores least.
fn quietest(tries: u32, patience: &mut Patience, case: &Case) -> anyhow::Result<Row> {
    let mut best: Option<Row> = None;
    for _ in 0..tries.max(1) {
        patience.wait()?;
        let row = measure(case)?;
        note(&format!(
            "{}: p99 {} µs, {}, others used {:.0} % of a core",
            row.name,
            figure(row.errors.ttft.p99, 0),
            row.verdict,
            row.noise.worst()
        ));
        if best.as_ref().is_none_or(|best| row.noise.worst() < best.noise.worst()) {
            best = Some(row);
        }
        if best.as_ref().is_some_and(|best| !best.noise.is_noisy()) {
            break;
        }
    }
    best.context("nothing was measured")
}
