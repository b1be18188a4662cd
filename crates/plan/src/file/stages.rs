//! From stages as they are written, with lists of what is to be varied, to one after another, with names.

use std::collections::{BTreeMap, BTreeSet};

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;

use super::Entry;
use super::error::FileError;
use super::node::{Node, Table, Value};
use crate::draw::mixed;

/// Keys that may be lists, the slowest to change first.
const AXES: [&str; 6] = ["endpoint", "model", "workload", "concurrency", "rate", "speed"];

/// A stage that is one level.
#[derive(Debug, Clone)]
pub(super) struct Level {
    pub(super) table: Table,
    /// The number of the table in the file that it comes of.
    pub(super) source: usize,
    /// Whether others come of the same.
    shared: bool,
}

/// Which order stages are played in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Order {
    /// As they are written.
    #[default]
    Planned,
    /// Each repetition in an order of its own, by the seed.
    Shuffled,
}

/// One level of each combination of what the tables list.
pub(super) fn levels(stages: &[Entry], file: &str) -> Result<Vec<Level>, FileError> {
    let mut levels = Vec::new();
    for (source, Entry { table, .. }) in stages.iter().enumerate() {
        let mut combined = vec![table.clone()];
        for axis in AXES {
            combined = combined.into_iter().flat_map(|table| varied(table, axis)).collect();
        }
        let empty = |axis: &&str| table.get(*axis).filter(|node| node.value == Value::List(Vec::new()));
        if let Some((axis, node)) = AXES.iter().find_map(|axis| Some((axis, empty(axis)?))) {
            let (at, key) = (node.origin.place(file), format!("stages.{source}.{axis}"));
            return Err(FileError::Value { at, key, what: "lists nothing".to_owned() });
        }
        let shared = combined.len() > 1;
        for mut table in combined {
            ramp(&mut table, source, file)?;
            levels.push(Level { table, source, shared });
        }
    }
    Ok(levels)
}

fn varied(table: Table, axis: &str) -> Vec<Table> {
    let Some(Node { value: Value::List(values), .. }) = table.get(axis) else { return vec![table] };
    let with = |value: &Node| {
        let mut table = table.clone();
        table.insert(axis.to_owned(), value.clone());
        table
    };
    values.iter().map(with).collect()
}

/// `rate = "2..20/5"` in keys of its own.
fn ramp(table: &mut Table, source: usize, file: &str) -> Result<(), FileError> {
    let Some(node) = table.get("rate") else { return Ok(()) };
    let Some(text) = node.as_text() else { return Ok(()) };
    let origin = node.origin.clone();
    let Ramp { from, to, steps } = text.parse().map_err(|what| FileError::Value {
        at: origin.place(file),
        key: format!("stages.{source}.rate"),
        what,
    })?;
    let mut put = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            table.insert(key.to_owned(), Node { value, origin: origin.clone() });
        }
    };
    put("rate", Some(Value::Real(from)));
    put("rate_to", to.map(Value::Real));
    put("rate_steps", steps.map(|steps| Value::Whole(steps.into())));
    Ok(())
}

/// A rate as flags and files write it: `2`, `2..20`, or `2..20/5` in five steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ramp {
    /// Requests a second, at the beginning.
    pub from: f64,
    /// At the end, if that is another.
    pub to: Option<f64>,
    /// In so many steps; steadily without.
    pub steps: Option<u32>,
}

impl std::str::FromStr for Ramp {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || {
            "it is requests a second, above 0: 2 or 0.5; 2..20 for a ramp, 2..20/5 for one in 5 steps"
                .to_owned()
        };
        let rate = |text: &str| match text.trim().parse::<f64>() {
            Ok(rate) if rate > 0.0 && rate <= 1e7 => Ok(rate),
            _ => Err(bad()),
        };
        let Some((from, to)) = text.split_once("..") else {
            return Ok(Self { from: rate(text)?, to: None, steps: None });
        };
        let (to, steps) = match to.split_once('/') {
            None => (to, None),
            Some((to, steps)) => match steps.trim().parse::<u32>() {
                Ok(steps) if steps >= 2 => (to, Some(steps)),
                _ => return Err(bad()),
            },
        };
        Ok(Self { from: rate(from)?, to: Some(rate(to)?), steps })
    }
}

/// Plays all levels `repeat` times, a whole pass after another so that what drifts does not look like a trend, and
/// gives each stage its name.
pub(super) fn arranged(mut levels: Vec<Level>, repeat: u32, order: Order, seed: u64) -> Vec<Level> {
    if repeat > 1 {
        let pass = |number: u32| {
            levels.iter().map(move |level| {
                let mut level = level.clone();
                let number = Node::implied(Value::Whole(number.into()));
                level.table.insert("repetition".to_owned(), number);
                level
            })
        };
        levels = (1..=repeat).flat_map(pass).collect();
    }
    let names = names(&levels);
    for (level, name) in levels.iter_mut().zip(names) {
        level.table.insert("name".to_owned(), Node::text(name));
    }
    if order == Order::Shuffled {
        levels.sort_by_key(|level| repetition(&level.table));
        for pass in levels.chunk_by_mut(|a, b| repetition(&a.table) == repetition(&b.table)) {
            let number = pass.first().map_or(1, |level| repetition(&level.table));
            pass.shuffle(&mut SmallRng::seed_from_u64(mixed(seed, number as u64)));
        }
    }
    levels
}

pub(super) fn repetition(table: &Table) -> i64 {
    match table.get("repetition").map(|node| &node.value) {
        Some(Value::Whole(number)) => *number,
        _ => 1,
    }
}

/// Takes names away that would be given anyway: a plan as it was run has them all, and they should follow when it is
/// changed.
pub(super) fn forget_given_names(stages: &mut [Entry]) {
    let mut nameless = stages.to_vec();
    for stage in &mut nameless {
        stage.table.remove("name");
    }
    for (Entry { table, .. }, name) in stages.iter_mut().zip(names_of(&nameless)) {
        if table.get("name").and_then(Node::as_text) == Some(&name) {
            table.remove("name");
        }
    }
}

/// The names of stages as they stand in the file.
pub(super) fn names_of(stages: &[Entry]) -> Vec<String> {
    let level = |stage: &Entry| Level { table: stage.table.clone(), source: 0, shared: false };
    names(&stages.iter().map(level).collect::<Vec<_>>())
}

/// `c8 long big-model`: the load, and what differs between stages; or the name that was written.
fn names(levels: &[Level]) -> Vec<String> {
    let differing: Vec<fn(&Table) -> Option<String>> = [mix as fn(&Table) -> Option<String>, model, endpoint]
        .into_iter()
        .filter(|part| levels.iter().map(|level| part(&level.table)).collect::<BTreeSet<_>>().len() > 1)
        .collect();
    let repeated = levels.iter().any(|level| repetition(&level.table) > 1);
    let mut seen: BTreeMap<(String, i64), u32> = BTreeMap::new();
    let name = |level: &Level| {
        let table = &level.table;
        let number = repetition(table);
        let written = table.get("name").and_then(Node::as_text);
        let written =
            written.map(|name| name.strip_suffix(&format!(" #{number}")).unwrap_or(name).to_owned());
        let given =
            || [Some(load(table))].into_iter().chain(differing.iter().map(|part| part(table))).flatten();
        let parts: Vec<String> = match written {
            Some(written) if !level.shared => vec![written],
            written => written.into_iter().chain(given()).collect(),
        };
        let mut name = parts.join(" ");
        let count = seen.entry((name.clone(), number)).or_default();
        *count += 1;
        if *count > 1 {
            name = format!("{name} ({count})");
        }
        if repeated { format!("{name} #{number}") } else { name }
    };
    levels.iter().map(name).collect()
}

fn load(table: &Table) -> String {
    let shown = |key: &str| table.get(key).map(|node| node.value.to_string());
    if let Some(users) = shown("concurrency") {
        return format!("c{users}");
    }
    if table.contains_key("trace") {
        return format!("trace×{}", shown("speed").as_deref().unwrap_or("1"));
    }
    let to = shown("rate_to").map_or(String::new(), |to| format!("..{to}"));
    let steps = shown("rate_steps").map_or(String::new(), |steps| format!("/{steps}"));
    format!("r{}{to}{steps}", shown("rate").unwrap_or_default())
}

fn mix(table: &Table) -> Option<String> {
    match table.get("mix").map(|node| &node.value) {
        Some(Value::Table(mix)) => Some(mix.keys().cloned().collect::<Vec<_>>().join("+")),
        _ => table.get("workload").and_then(Node::as_text).map(str::to_owned),
    }
}

fn model(table: &Table) -> Option<String> {
    table.get("model").and_then(Node::as_text).map(str::to_owned)
}

fn endpoint(table: &Table) -> Option<String> {
    table.get("endpoint").and_then(Node::as_text).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_as_people_write_them() {
        let ramp = |from, to, steps| Ok(Ramp { from, to, steps });
        assert_eq!("2".parse(), ramp(2.0, None, None));
        assert_eq!("2..20".parse(), ramp(2.0, Some(20.0), None));
        assert_eq!("0.5 .. 20 / 5".parse(), ramp(0.5, Some(20.0), Some(5)));
        for text in ["", "0", "-1", "nan", "inf", "2..", "..2", "2..20/", "2..20/1", "2..20/x", "1e9"] {
            assert!(text.parse::<Ramp>().unwrap_err().contains("above 0"), "{text}");
        }
    }
}
