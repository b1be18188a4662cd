//! Plays a search: each level is a stage of the run, and what is learnt from it decides the next.

use ttft_drive::Rest;
use ttft_judge::Axis;
use ttft_judge::find::{Action, Answer, LevelReport, Says, Search, Watch};
use ttft_kernel::mono_now;
use ttft_model::{Arrival, Load, Nanos, Plan, Record, Share, Span, Stage, StageWindow, Stop};

use super::Args;
use crate::output;
use crate::verb::run::guide::{Cut, Guide};

/// After so many more requests it is looked whether a level is clear already.
const LOOK_EVERY: u64 = 25;

/// Guides a run through a search.
pub(super) struct Seeker {
    search: Search,
    watch: Watch,
    /// The level under way.
    level: Option<f64>,
    /// Requests of it at the last look.
    looked: u64,
    workload: String,
    axis: Axis,
    arrival: Arrival,
    /// Stages so far.
    played: u32,
    until: Option<(Nanos, Span)>,
    answer: Option<Answer>,
}

impl Seeker {
    pub(super) fn new(search: Search, plan: &Plan, axis: Axis, args: &Args) -> Self {
        Self {
            watch: search.watch(),
            search,
            level: None,
            looked: 0,
            workload: plan.workloads[0].name.clone(),
            axis,
            arrival: args.arrival,
            played: 0,
            until: args.max_time.map(|time| (mono_now() + time.0, time)),
            answer: None,
        }
    }

    /// What was found; if the run ended before the search did, as far as it is known.
    pub(super) fn answer(self) -> Answer {
        self.answer.unwrap_or_else(|| self.search.stopped("the run ended before the search did"))
    }

    fn out_of_time(&self) -> Option<String> {
        let (_, time) = self.until.filter(|(until, _)| mono_now() >= *until)?;
        Some(format!("--max-time {time} is over"))
    }

    fn stage(&mut self, level: f64, requests: u64) -> Stage {
        self.played += 1;
        let (letter, load) = match self.axis {
            Axis::Concurrency => ('c', Load::closed(level as u32)),
            Axis::Rate => ('r', Load::open(level, self.arrival)),
        };
        Stage {
            name: format!("{}·{letter}{level}", self.played),
            mix: Share::whole(&self.workload),
            load,
            stop: Stop { requests: Some(requests), duration: None },
            ..Stage::default()
        }
    }
}

impl Guide for Seeker {
    fn adds_stages(&self) -> bool {
        true
    }

    fn records(&mut self, records: &[Record]) -> Option<Cut> {
        for record in records {
            self.watch.push(record);
        }
        let level = self.level?;
        if let Some(why) = self.out_of_time() {
            return Some(Cut { rest: Rest::Cancel, why });
        }
        let (ended, _) = self.watch.counts();
        if ended < self.looked + LOOK_EVERY {
            return None;
        }
        self.looked = ended;
        // The quick answers come first, so what is seen by now is rather too good: a miss is a miss.
        let missed = self.search.misses_already(level, &self.watch);
        missed.then(|| Cut { rest: Rest::Cancel, why: "an objective is missed for sure".to_owned() })
    }

    fn next(&mut self, ended: Option<&StageWindow>) -> Option<Stage> {
        let watch = std::mem::replace(&mut self.watch, self.search.watch());
        if let (Some(_), Some(level)) = (ended, self.level.take()) {
            self.search.observe(level, watch);
            if let Some(learnt) = self.search.learnt(level) {
                output::note(&line(&learnt, self.axis));
            }
        }
        self.looked = 0;
        if let Some(why) = self.out_of_time() {
            self.answer = Some(self.search.stopped(&why));
            return None;
        }
        match self.search.next() {
            Action::Measure { level, requests } => {
                self.level = Some(level);
                Some(self.stage(level, requests))
            }
            Action::Done(answer) => {
                self.answer = Some(answer);
                None
            }
        }
    }
}

/// What is known of a level now, in a line.
fn line(level: &LevelReport, axis: Axis) -> String {
    let says = match level.says {
        Says::Meets => "meets the objectives",
        Says::Misses => "misses",
        Says::Unclear => "not sure yet",
    };
    // The objective that decides, or comes closest to it.
    let worst = level.objectives.iter().max_by(|a, b| closeness(a).total_cmp(&closeness(b)));
    let of = worst.map_or_else(String::new, |of| match (of.misses, of.allowed) {
        (Some(misses), Some(allowed)) => format!(
            ": {:.1} % of {} requests beyond {}, {:.1} % are allowed",
            misses * 100.0,
            of.n,
            of.slo,
            allowed * 100.0
        ),
        _ => format!(": {} over {} requests", of.slo, of.n),
    });
    let unit = match axis {
        Axis::Concurrency if level.level < 2.0 => "user",
        Axis::Concurrency => "users",
        Axis::Rate => "requests/s",
    };
    ttft_show::escape(&format!("  {} {unit}: {says}{of}", level.level)).into_owned()
}

fn closeness(of: &ttft_judge::find::ObjectiveReport) -> f64 {
    let sure = f64::from(u8::from(of.says == Says::Misses)) * 1e9;
    of.misses.zip(of.allowed).map_or(0.0, |(misses, allowed)| misses / allowed) + sure
}
