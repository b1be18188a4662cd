//! The simulated engine, on the server's core.

use std::path::Path;

use ttft_sim::{Faults, Profile, Sim, SimOptions};

use crate::SERVER_CPU;

/// Tokens at fixed times, with the truth written to the file.
pub(crate) fn fixed(ttft_ms: f64, itl_ms: f64, truth: Option<&Path>) -> anyhow::Result<Sim> {
    let profile = Profile::load("fixed")?.with_times(Some(ttft_ms), Some(itl_ms))?;
    start(profile, Faults::default(), truth)
}

/// Tokens as fast as the socket takes them, so many events in each write.
pub(crate) fn instant(events_per_write: u32) -> anyhow::Result<Sim> {
    let fault = format!("coalesce={events_per_write}");
    let wanted = (events_per_write > 1).then_some(fault.as_str());
    start(Profile::load("instant")?, Faults::parse(wanted)?, None)
}

fn start(profile: Profile, faults: Faults, truth: Option<&Path>) -> anyhow::Result<Sim> {
    let options = SimOptions {
        cpu: Some(SERVER_CPU),
        faults,
        truth: truth.map(Path::to_owned),
        ..SimOptions::new(profile)
    };
    Ok(Sim::start(options)?)
}
