//! A knee cross-checked by Little's law: in flight by the client's integral, by its rate times its mean time, and by
//! the running and waiting gauges of the server, where they were scraped. Three ways to one number: where they differ,
//! the knee may be of something else than the server.

use serde::{Deserialize, Serialize};

use crate::server::LevelRange;
use crate::{StageSummary, WindowChoice};

/// The client's own two figures agree within this share in a steady window.
const CLIENT: f64 = 0.1;

/// The server's gauges are scraped now and then, over the whole stage: they agree within this share, or within one
/// request.
const SERVER: f64 = 0.25;

/// Fewer scrapes have no mean to speak of.
const SCRAPES: u64 = 3;

/// Requests in flight at a knee, by each that counts them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CrossCheck {
    /// Mean of the requests in flight, by the client's integral over time.
    pub client_in_flight: f64,
    /// By its rate times its mean time in flight.
    pub client_expected: f64,
    /// Mean of the sequences that the server said were running; null where it was not scraped.
    pub server_running: Option<f64>,
    /// And waiting.
    pub server_waiting: Option<f64>,
    /// Whether all that is known agrees.
    pub agrees: bool,
    /// That in words.
    pub says: String,
}

impl CrossCheck {
    /// Of the stage at a knee; `None` where the client's own figures are not known.
    pub(super) fn of(stage: &StageSummary) -> Option<Self> {
        let window = match stage.window {
            WindowChoice::Steady => &stage.windows.steady,
            WindowChoice::Whole => &stage.windows.whole,
        };
        let little = window.littles_law?;
        let (running, waiting) = (gauge(stage, "running"), gauge(stage, "waiting"));
        let mut check = Self {
            client_in_flight: little.in_flight,
            client_expected: little.expected,
            server_running: running,
            server_waiting: waiting,
            ..Self::default()
        };
        let steady = (little.ratio - 1.0).abs() <= CLIENT;
        let off = running.map(|running| running + waiting.unwrap_or(0.0) - little.in_flight);
        let same = off.is_none_or(|off| off.abs() <= (SERVER * little.in_flight).max(1.0));
        check.agrees = steady && same;
        check.says = check.words(steady, off.filter(|_| !same));
        Some(check)
    }

    fn words(&self, steady: bool, off: Option<f64>) -> String {
        let mut says = format!(
            "Little's law: {:.1} in flight, {:.1} by rate and time",
            self.client_in_flight, self.client_expected
        );
        if !steady {
            says.push_str(", which differ: the window is no steady state, and the knee doubtful");
        }
        let Some(running) = self.server_running else {
            return says + "; the server's gauges are not known";
        };
        let waiting =
            self.server_waiting.map(|waiting| format!(" and {waiting:.1} waiting")).unwrap_or_default();
        let says = format!("{says}; the server says {running:.1} running{waiting}");
        match off {
            Some(off) if off < 0.0 => {
                says + ": the others wait before it, at a gateway, on the network or in this client"
            }
            Some(_) => says + ": it has other traffic too",
            None => says,
        }
    }
}

/// The mean of a gauge over all engines that told it.
fn gauge(stage: &StageSummary, name: &str) -> Option<f64> {
    let of_engines = stage.server.sources.iter().filter(|source| source.role.as_deref() != Some("gateway"));
    let told: Vec<&LevelRange> = of_engines.filter_map(|source| source.levels.get(name)).collect();
    let enough = !told.is_empty() && told.iter().all(|range| range.n >= SCRAPES);
    enough.then(|| told.iter().map(|range| range.mean).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Server, ServerSource};
    use crate::window::{Little, WindowFigures};
    use crate::{knee, virtual_run};

    /// A stage with so many in flight, by the client and by the server.
    fn stage(in_flight: f64, expected: f64, server: Option<(f64, f64)>) -> StageSummary {
        let mut stage = knee::tests::stage("c".to_owned(), ttft_model::Load::closed(16));
        let ratio = in_flight / expected;
        stage.windows.steady = WindowFigures {
            littles_law: Some(Little { in_flight, rate: 1.0, mean_total_s: expected, expected, ratio }),
            ..WindowFigures::default()
        };
        let range = |mean: f64| LevelRange { n: 9, mean, max: mean };
        stage.server = Server {
            sources: server
                .map(|(running, waiting)| ServerSource {
                    levels: [("running", running), ("waiting", waiting)]
                        .map(|(name, mean)| (name.to_owned(), range(mean)))
                        .into(),
                    ..ServerSource::default()
                })
                .into_iter()
                .collect(),
        };
        stage
    }

    #[track_caller]
    fn check(stage: &StageSummary, agrees: bool, part: &str) {
        let check = CrossCheck::of(stage).unwrap();
        assert_eq!(check.agrees, agrees, "{check:?}");
        assert!(check.says.contains(part), "{}", check.says);
    }

    #[test]
    fn three_ways_to_one_number() {
        check(&stage(16.0, 16.1, None), true, "gauges are not known");
        check(&stage(16.0, 16.1, Some((12.0, 3.6))), true, "12.0 running and 3.6 waiting");
        check(&stage(16.0, 16.1, Some((6.0, 0.1))), false, "wait before it");
        check(&stage(16.0, 16.1, Some((16.0, 9.0))), false, "other traffic");
        check(&stage(16.0, 20.0, None), false, "no steady state");
    }

    /// The engine's own gauges in virtual time are what the client's integral says.
    #[test]
    fn the_engines_gauges_are_the_clients_integral() {
        let profile = virtual_run::sixteen_places();
        let mut engine = ttft_sim::VirtualEngine::new(&profile, 1);
        let shape = ttft_sim::Shape { prompt: 60, output: 12, sigma: 0.3 };
        let played = engine.closed(40, ttft_model::Nanos::ZERO, 2_000, shape);
        let plan = virtual_run::plan(&[ttft_model::Load::closed(40)], &[]);
        let (mut told, _) = virtual_run::fold(&plan, 0, &played);
        told.server = stage(1.0, 1.0, Some((played.running, played.waiting))).server;
        let found = CrossCheck::of(&told).unwrap();
        assert!(found.agrees, "{found:?}");
        let sum = found.server_running.unwrap() + found.server_waiting.unwrap();
        assert!((sum / found.client_in_flight - 1.0).abs() < 0.02, "{found:?}");
        assert!((found.server_running.unwrap() - 16.0).abs() < 0.5, "all places are taken: {found:?}");
    }
}
