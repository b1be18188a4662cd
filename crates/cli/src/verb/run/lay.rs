//! What the flags of a run say, in the words of a plan file.

use std::collections::BTreeMap;

use ttft_plan::dataset::Format;
use ttft_plan::file::{Overlay, Part};

use super::args::{Args, BudgetArgs, LoadArgs};
use crate::endpoint::{Putter, given};
use crate::usage;

impl Args {
    /// What the flags say, to be laid over a plan file.
    pub(super) fn overlay(&self) -> anyhow::Result<Overlay> {
        let mut flags = Overlay::default();
        self.endpoint.lay(&mut flags)?;
        self.prompt.lay(&mut flags)?;
        self.timeouts.lay(&mut flags)?;
        self.load.lay(&mut flags)?;
        self.budget.lay(&mut flags)?;
        self.sources.lay(&mut flags)?;
        for workload in &self.workload {
            flags.workload(workload).map_err(usage)?;
        }
        let mut put = Putter { flags: &mut flags, part: Part::Workload };
        put.say("calibration", "--no-calibrate", self.no_calibrate.then_some("none"))?;
        put.part = Part::Run;
        put.say("slo", "--slo", given(&self.slo))?;
        put.say("name", "--name", self.name.as_ref())?;
        put.say("seed", "--seed", self.seed)?;
        Ok(flags)
    }
}

impl LoadArgs {
    fn lay(&self, flags: &mut Overlay) -> anyhow::Result<()> {
        let mut put = Putter { flags, part: Part::Stage };
        put.say("concurrency", "--concurrency", given(&self.concurrency))?;
        put.say("rate", "--rate", given(&self.rate))?;
        put.say("arrival", "--arrival", self.arrival)?;
        put.say("max_in_flight", "--max-in-flight", self.max_in_flight)?;
        put.say("trace", "--trace", self.trace.as_ref())?;
        put.say("trace_format", "--trace-format", self.trace_format.map(Format::name))?;
        put.say("speed", "--speed", given(&self.speed))?;
        put.say("smooth", "--smooth", self.smooth.then_some(true))?;
        put.say("requests", "--requests", self.requests)?;
        put.say("duration", "--duration", self.duration)?;
        put.say("ramp_up", "--ramp-up", self.ramp_up)?;
        put.say("think_time", "--think-time", self.think_time)?;
        let mix: BTreeMap<_, _> = self.mix.iter().map(|(name, weight)| (name, weight)).collect();
        put.say("mix", "--mix", Some(mix).filter(|mix| !mix.is_empty()))?;
        put.part = Part::Run;
        put.say("repeat", "--repeat", self.repeat)?;
        put.say("order", "--shuffle", self.shuffle.then_some("shuffled"))?;
        put.say("settle", "--settle", self.settle)?;
        put.say("precision", "--precision", self.precision)?;
        put.say("warmup", "--warmup", self.warmup)?;
        put.say("drain", "--drain", self.drain)?;
        put.say("client.workers", "--workers", self.workers)?;
        put.say("client.realtime", "--realtime", self.realtime.then_some(true))?;
        put.say("client.save_streams", "--save-streams", self.save_streams)?;
        put.part = Part::Endpoint;
        put.say("connections", "--connections", self.connections.as_ref())?;
        put.say("streams_per_connection", "--streams-per-connection", self.streams_per_connection)?;
        put.part = Part::Workload;
        put.say("cache", "--cache", self.cache.as_ref())
    }
}

impl BudgetArgs {
    fn lay(&self, flags: &mut Overlay) -> anyhow::Result<()> {
        let mut put = Putter { flags, part: Part::Run };
        put.say("budget.max_total_tokens", "--max-total-tokens", self.max_total_tokens)?;
        put.say("budget.price_in", "--price-in", self.price_in)?;
        put.say("budget.price_out", "--price-out", self.price_out)?;
        put.say("budget.max_cost", "--max-cost", self.max_cost)
    }
}
