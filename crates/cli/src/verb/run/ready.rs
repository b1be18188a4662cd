//! Everything that a plan asks for, made ready: endpoints reached, models chosen, prompts loaded.

use std::collections::BTreeMap;
use std::sync::Arc;

use ttft_drive::{Ask, RequestMaker, Route};
use ttft_kernel::cpu_count;
use ttft_model::{Endpoint, Plan};
use ttft_sim::Sim;

use super::{calibrate, context};
use crate::endpoint::{Reached, reach};
use crate::{model, simulator, usage};

/// What a plan needs to be played.
pub(super) struct Ready {
    /// One for each endpoint.
    pub routes: Vec<Route>,
    pub asks: Vec<Ask>,
    /// Engines of this process that stand in for endpoints.
    pub sims: Vec<Sim>,
    reached: Vec<Reached>,
}

impl Ready {
    /// Reaches every endpoint of the plan, and sets in the plan what was left to be found out: URLs, models, calibration,
    /// the longest answers.
    pub(super) fn of(plan: &mut Plan) -> anyhow::Result<Self> {
        let (mut sims, mut reached, mut bases) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..plan.endpoints.len() {
            let sim = simulator::start(&plan.endpoints[number].url, plan.seed)?;
            let base = sim.as_ref().map(|sim| format!("http://{}", sim.addr()));
            let is_named = !plan.stages.is_empty()
                && plan
                    .stages
                    .iter()
                    .all(|s| s.model.is_some() || plan.endpoint_number(s) as usize != number);
            let endpoint = &mut plan.endpoints[number];
            let one = reach(endpoint, &plan.timeouts, base.as_deref())?;
            if !is_named {
                model::choose(&one, endpoint)?;
            }
            bases.push(base.unwrap_or_else(|| endpoint.url.clone()));
            if sim.is_none() {
                endpoint.url.clone_from(&one.url);
            }
            reached.push(one);
            sims.extend(sim);
        }
        calibrate::calibrate(plan, &reached[0], !sims.is_empty())?;
        let asks = asks(plan, &reached, &bases)?;
        context::check(plan, &asks, &reached)?;
        let route = |one: &Reached| Route { dialect: one.dialect.clone(), connect: one.connect.clone() };
        Ok(Self { routes: reached.iter().map(route).collect(), asks, sims, reached })
    }

    /// Each endpoint, as it was reached.
    pub(super) fn reached(&self) -> &[Reached] {
        &self.reached
    }

    /// The keys that are sent.
    pub(super) fn keys(&self) -> impl Iterator<Item = &str> {
        self.reached.iter().filter_map(|one| one.key.as_deref())
    }

    /// Worker threads. A simulated engine needs a core of its own to be on time.
    pub(super) fn workers(&self, plan: &Plan) -> u32 {
        let cores = cpu_count().saturating_sub(self.sims.len()).max(1) as u32;
        plan.client.workers.unwrap_or(cores).max(1)
    }
}

/// One for each endpoint, model and workload that a stage names together. A plan whose stages are yet to be decided has
/// all workloads of the first endpoint's model.
fn asks(plan: &mut Plan, reached: &[Reached], bases: &[String]) -> anyhow::Result<Vec<Ask>> {
    let mut wanted: Vec<(u32, Option<String>, u32)> = Vec::new();
    let mut want = |one| {
        if !wanted.contains(&one) {
            wanted.push(one);
        }
    };
    for stage in &plan.stages {
        let (endpoint, model) = (plan.endpoint_number(stage), plan.model_of(stage));
        for (workload, _) in stage.mix.iter().filter_map(|share| plan.workload(&share.workload)) {
            want((endpoint, model.map(str::to_owned), workload));
        }
    }
    if plan.stages.is_empty() {
        (0..plan.workloads.len() as u32)
            .for_each(|workload| want((0, plan.endpoint().model.clone(), workload)));
    }
    let (warm, seed) = (u64::from(plan.warmup), plan.seed);
    // Prompts are loaded once for each workload, whoever is asked.
    let mut known: BTreeMap<u32, Arc<RequestMaker>> = BTreeMap::new();
    let mut asks = Vec::new();
    for (number, model, workload) in wanted {
        let at = number as usize;
        let endpoint = Endpoint { model: model.clone(), ..plan.endpoints[at].clone() };
        // The path may name the model.
        let one = reach(&endpoint, &plan.timeouts, Some(&bases[at]))?;
        let (asked, key) = (&plan.workloads[workload as usize], reached[at].key.as_deref());
        let maker = match known.get(&workload) {
            Some(maker) => maker.for_model(&one.dialect, &endpoint, asked, key).map_err(usage)?,
            None => reached[at].maker(&endpoint, asked, seed, warm)?,
        };
        // Only their files know how long the longest answers may be.
        plan.workloads[workload as usize].max_tokens = maker.max_tokens();
        let maker = Arc::new(maker);
        known.entry(workload).or_insert_with(|| maker.clone());
        asks.push(Ask { endpoint: number, model, workload, target: one.target, maker });
    }
    Ok(asks)
}
