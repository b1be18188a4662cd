//! Is the reported time to first token true? Each request of the client is joined with the engine's log.

mod case;
mod joined;
mod text;

use clap::Args as ClapArgs;

use crate::accuracy::case::{CASES, measure};
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
}

/// Runs the cases one after the other.
pub(crate) fn run(args: &Args, patience: &mut Patience) -> anyhow::Result<Report> {
    let mut rows = Vec::new();
    for case in CASES.iter().filter(|case| args.only.is_empty() || args.only.contains(&case.name())) {
        let mut best = None;
        for _ in 0..args.tries.max(1) {
            patience.wait()?;
            let row = measure(case)?;
            let noisy = row.noise.is_noisy();
            note(&format!(
                "{}: p99 {} µs, {}, others used {:.0} % of a core",
                row.name,
                figure(row.errors.ttft.p99, 0),
                row.verdict,
                row.noise.worst()
            ));
            if best.as_ref().is_none_or(|best: &case::Row| row.noise.worst() < best.noise.worst()) {
                best = Some(row);
            }
            if !noisy {
                break;
            }
        }
        rows.extend(best);
    }
    Report::new("accuracy: reported − true time to first token, µs", text::of(&rows), &rows)
}
