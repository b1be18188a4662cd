//! The simulated engine, on the server's core.

use std::path::Path;

use ttft_sim::{Profile, Sim, SimOptions};

use crate::SERVER_CPU;

/// Tokens at fixed times, with the truth written to the file.
pub(crate) fn fixed(ttft_ms: f64, itl_ms: f64, truth: Option<&Path>) -> anyhow::Result<Sim> {
    let profile = Profile::load("fixed")?.with_times(Some(ttft_ms), Some(itl_ms))?;
    start(profile, truth)
}

/// Tokens as fast as the socket takes them.
pub(crate) fn instant() -> anyhow::Result<Sim> {
    start(Profile::load("instant")?, None)
}

fn start(profile: Profile, truth: Option<&Path>) -> anyhow::Result<Sim> {
    let options =
        SimOptions { cpu: Some(SERVER_CPU), truth: truth.map(Path::to_owned), ..SimOptions::new(profile) };
    Ok(Sim::start(options)?)
}
