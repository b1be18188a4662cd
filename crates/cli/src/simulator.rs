//! The built-in engine as an endpoint: `sim:PROFILE` stands where a URL would.

use anyhow::Context;
use ttft_sim::{Profile, Sim, SimOptions};

/// What such an endpoint begins with.
const SCHEME: &str = "sim:";

/// A simulated engine of this process, if the endpoint names one.
pub(crate) fn start(endpoint: &str, seed: u64) -> anyhow::Result<Option<Sim>> {
    let Some(name) = endpoint.strip_prefix(SCHEME) else { return Ok(None) };
    let profile = Profile::load(name).map_err(crate::usage)?;
    let options = SimOptions { seed, ..SimOptions::new(profile) };
    Sim::start(options).map(Some).context("cannot start the simulated engine")
}
