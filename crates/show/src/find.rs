//! What a search found, with the levels that it rests on.

use ttft_judge::Axis;
use ttft_judge::find::{Answer, LevelReport, ObjectiveReport, Outcome, Says};

use crate::escape;
use crate::number::{count, figures, percent, plural};
use crate::style::{Ink, Style, wrap};
use crate::table::{Align, Cell, Table};

/// The answer of a search.
pub fn find_text(answer: &Answer, style: &Style) -> String {
    let style = *style;
    let (headline, ink) = headline(answer);
    let mut out = style.paint(ink, &headline) + "\n";
    let why = answer
        .stopped
        .as_deref()
        .map_or_else(String::new, |why| format!("; it ended early: {}", escape(why)));
    let cost = format!(
        "{} requests at {} {}; the chance that any of these is judged wrongly is at most {}{why}",
        count(answer.requests),
        answer.levels.len(),
        plural(answer.levels.len() as u64, "level", "levels"),
        percent(answer.error),
    );
    out.push_str(&wrap("", &cost, style.width));
    out.push('\n');
    out.push_str(&levels(answer).text(style));
    out
}

/// The answer in a sentence.
fn headline(answer: &Answer) -> (String, Ink) {
    let unit = unit(answer.axis);
    let [low, high] = answer.bounds.map(level);
    match (answer.outcome, answer.met, answer.missed) {
        (Outcome::BelowSmallest, ..) => {
            (format!("below the smallest level: {low} {unit} miss the objectives already"), Ink::Bad)
        }
        (Outcome::NotReached, Some(met), _) => (
            format!("not reached: {} {unit}, the largest level, still meet the objectives", level(met)),
            Ink::Good,
        ),
        (_, Some(met), Some(missed)) => {
            (format!("{} {unit} meet the objectives; {} miss them", level(met), level(missed)), Ink::Good)
        }
        (_, Some(met), None) => (
            format!("{} {unit} meet the objectives; no level up to {high} misses them for sure", level(met)),
            Ink::Doubtful,
        ),
        (_, None, Some(missed)) => (
            format!(
                "no level from {low} {unit} on meets the objectives for sure; {} miss them",
                level(missed)
            ),
            Ink::Doubtful,
        ),
        (_, None, None) => {
            let remedy = "allow more requests or time (--requests-per-level, --max-requests, --max-time)";
            (format!("no level from {low} to {high} {unit} is clear; {remedy}"), Ink::Doubtful)
        }
    }
}

fn levels(answer: &Answer) -> Table {
    let mut table = Table::default();
    let of = |text: fn(&LevelReport) -> Cell| answer.levels.iter().map(text);
    table.column(("", unit(answer.axis)), Align::Right, 0, of(|l| Cell::new(level(l.level))));
    table.column(("", ""), Align::Left, 0, of(|l| verdict(l.says)));
    table.column(("", "requests"), Align::Right, 0, of(|l| Cell::new(count(l.requests))));
    table.column(("", "steady"), Align::Right, 3, of(|l| Cell::new(count(l.steady))));
    table.column(
        ("", "failed"),
        Align::Right,
        4,
        of(|l| if l.failed > 0 { Cell::new(count(l.failed)).ink(Ink::Bad) } else { Cell::default() }),
    );
    let objectives = answer.levels.first().map_or(0, |l| l.objectives.len());
    for at in 0..objectives {
        let name = answer.levels[0].objectives[at].slo.as_str();
        let group = match answer.levels[0].objectives[at].allowed {
            Some(allowed) => format!("{}: {} may miss", escape(name), percent(allowed)),
            None => escape(name).into_owned(),
        };
        let cells = answer.levels.iter().map(|l| l.objectives.get(at).map_or_else(Cell::default, share));
        table.column(("", &group), Align::Right, 0, cells);
    }
    table
}

/// The share that misses, with what is not ruled out.
fn share(of: &ObjectiveReport) -> Cell {
    let ink = match of.says {
        Says::Meets => Ink::Good,
        Says::Misses => Ink::Bad,
        Says::Unclear => Ink::Plain,
    };
    match (of.misses, of.interval) {
        (Some(misses), Some([low, high])) => {
            let aside = format!("[{:.1}–{:.1}]", low * 100.0, high * 100.0);
            Cell::new(percent(misses)).aside(aside).ink(ink)
        }
        _ => verdict(of.says),
    }
}

fn verdict(says: Says) -> Cell {
    match says {
        Says::Meets => Cell::new("meets").ink(Ink::Good),
        Says::Misses => Cell::new("misses").ink(Ink::Bad),
        Says::Unclear => Cell::new("–"),
    }
}

fn unit(axis: Axis) -> &'static str {
    match axis {
        Axis::Concurrency => "users",
        Axis::Rate => "requests/s",
    }
}

/// A level without digits that say nothing.
fn level(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value}") } else { figures(value) }
}
