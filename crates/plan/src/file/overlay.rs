//! What flags say, laid over what a file says.

use serde::Serialize;

use super::error::{FileError, likely};
use super::node::{Node, Origin, Table, Value, parse_value};
use super::{Draft, Entry, workloads};

/// Which part of a plan a flag is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The run as a whole.
    Run,
    /// Its only endpoint.
    Endpoint,
    /// Every workload.
    Workload,
    /// Every stage.
    Stage,
}

/// What flags say, in the words of a file.
#[derive(Debug, Clone, Default)]
pub struct Overlay {
    run: Table,
    endpoint: Table,
    workload: Table,
    stage: Table,
    models: Vec<String>,
    named: Vec<(String, Table)>,
}

/// Keys of a stage of which one says what kind of load it is.
const STARTS: [&str; 3] = ["concurrency", "rate", "trace"];

/// Keys that belong to some of these.
const BELONGS: [(&str, &[&str]); 7] = [
    ("ramp_up", &["concurrency"]),
    ("think_time", &["concurrency"]),
    ("arrival", &["rate"]),
    ("max_in_flight", &["rate", "trace"]),
    ("trace_format", &["trace"]),
    ("speed", &["trace"]),
    ("smooth", &["trace"]),
];

/// Keys that a new value of one of them takes away: they say the same thing in another way.
const INSTEAD: [&[&str]; 4] = [
    &["requests", "duration"],
    &["workload", "mix"],
    &["prompt", "prompt_tokens", "dataset"],
    &["max_tokens", "output"],
];

impl Overlay {
    /// Takes what a flag says, if it was given. `key` is the key of the file; in a table of its own with a dot between.
    pub fn put<T: Serialize>(
        &mut self,
        part: Part,
        key: &str,
        flag: &str,
        value: Option<T>,
    ) -> Result<(), FileError> {
        let Some(value) = value else { return Ok(()) };
        let origin = Origin::Flag(flag.into());
        let value = Value::of(&value, &origin).ok_or_else(|| FileError::Flag {
            flag: flag.to_owned(),
            what: "no plan file can hold a number that large".to_owned(),
        })?;
        let node = Node { value, origin: origin.clone() };
        let table = match part {
            Part::Run => &mut self.run,
            Part::Endpoint => &mut self.endpoint,
            Part::Workload => &mut self.workload,
            Part::Stage => &mut self.stage,
        };
        let Some((outer, inner)) = key.split_once('.') else {
            table.insert(key.to_owned(), node);
            return Ok(());
        };
        let empty = Node { value: Value::Table(Table::new()), origin };
        if let Value::Table(table) = &mut table.entry(outer.to_owned()).or_insert(empty).value {
            table.insert(inner.to_owned(), node);
        }
        Ok(())
    }

    /// Asks for these models, one after another; one replaces all that the plan names.
    pub fn models(&mut self, models: &[String]) {
        self.models = models.to_vec();
    }

    /// A workload by its name: `long:prompt-tokens=4k,max-tokens=64`, in the words of the prompt flags.
    pub fn workload(&mut self, given: &str) -> Result<(), FileError> {
        let bad = |what: &str| FileError::Flag { flag: "--workload".to_owned(), what: what.to_owned() };
        let (name, rest) = given
            .split_once(':')
            .filter(|(name, _)| !name.trim().is_empty())
            .ok_or_else(|| bad("write it as NAME:KEY=VALUE,…, for instance long:prompt-tokens=4k"))?;
        let origin = Origin::Flag(format!("--workload {name}").into());
        let mut pairs: Vec<(String, String)> = Vec::new();
        for part in rest.split(',') {
            // What does not begin with a key belongs to the value before: texts may have commas.
            let key = part.split_once('=').filter(|(key, _)| is_key(key.trim()));
            match (key, pairs.last_mut()) {
                (Some((key, value)), _) => pairs.push((key.trim().replace('-', "_"), value.to_owned())),
                (None, Some((_, value))) => *value = format!("{value},{part}"),
                (None, None) => {
                    return Err(bad("write it as NAME:KEY=VALUE,…, for instance long:prompt-tokens=4k"));
                }
            }
        }
        let mut table: Table =
            pairs.into_iter().map(|(key, value)| (key, parse_value(value.trim(), &origin))).collect();
        let name = name.trim().to_owned();
        table.insert("name".to_owned(), Node { value: Value::Text(name.clone()), origin });
        self.named.push((name, table));
        Ok(())
    }
}

fn is_key(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '-' | '_'))
}

impl Draft {
    /// Lays flags over what is there. `docs/plans.md` says what replaces what.
    pub fn lay(&mut self, flags: &Overlay) -> Result<(), FileError> {
        merge(&mut self.run, &flags.run);
        self.lay_endpoint(flags)?;
        self.lay_stages(flags)?;
        for (name, new) in &flags.named {
            match self.workloads.iter_mut().find(|known| known.name() == name) {
                Some(known) => replace(&mut known.table, new),
                None => self.workloads.push(Entry { table: new.clone(), ..Entry::default() }),
            }
        }
        self.asked = flags.named.iter().map(|(name, _)| name.clone()).collect();
        workloads::complete(self);
        for workload in &mut self.workloads {
            replace(&mut workload.table, &flags.workload);
        }
        Ok(())
    }

    fn lay_endpoint(&mut self, flags: &Overlay) -> Result<(), FileError> {
        if flags.endpoint.is_empty() && flags.models.is_empty() {
            return Ok(());
        }
        if self.endpoints.is_empty() {
            self.endpoints.push(Entry::default());
        }
        if let (Some((key, node)), true) = (flags.endpoint.iter().next(), self.endpoints.len() > 1) {
            let what = format!(
                "the plan has {} endpoints, so say which is meant: --set endpoints.NAME.{key}=…",
                self.endpoints.len()
            );
            return Err(FileError::Flag { flag: node.origin.place(""), what });
        }
        let first_model = flags.models.first().map(|model| Node::flag("--model", Value::Text(model.clone())));
        for Entry { table, .. } in &mut self.endpoints {
            for (key, node) in &flags.endpoint {
                match key.as_str() {
                    "headers" => add_headers(table, node),
                    _ => _ = table.insert(key.clone(), node.clone()),
                }
            }
            table.extend(first_model.clone().map(|model| ("model".to_owned(), model)));
        }
        if flags.endpoint.contains_key("url") || first_model.is_some() {
            // It counts tokens in its own way.
            self.workloads.iter_mut().for_each(|workload| workloads::measure_again(&mut workload.table));
        }
        Ok(())
    }

    fn lay_stages(&mut self, flags: &Overlay) -> Result<(), FileError> {
        let says = |key: &str| flags.stage.contains_key(key);
        let new_load = STARTS.iter().any(|key| says(key));
        if self.stages.is_empty() {
            self.stages.push(Entry::usual_stage());
        }
        let mut gone: Vec<&str> = instead(&flags.stage);
        if new_load {
            gone.extend(
                STARTS.into_iter().chain(BELONGS.map(|(key, _)| key)).chain(["rate_to", "rate_steps"]),
            );
        }
        if says("trace") {
            gone.extend(["workload", "mix"]);
        }
        if !flags.models.is_empty() {
            gone.push("model");
        }
        for Entry { table, .. } in &mut self.stages {
            if new_load || flags.run.contains_key("repeat") {
                forget_repetition(table);
            }
            table.retain(|key, _| !gone.contains(&key.as_str()));
            if flags.models.len() > 1 {
                let models =
                    flags.models.iter().map(|model| Node::flag("--model", Value::Text(model.clone())));
                table.insert("model".to_owned(), Node::flag("--model", Value::List(models.collect())));
            }
            if !self.is_file && !flags.named.is_empty() && !says("mix") && !says("trace") {
                let names =
                    flags.named.iter().map(|(name, _)| Node::flag("--workload", Value::Text(name.clone())));
                table.insert("workload".to_owned(), Node::flag("--workload", Value::List(names.collect())));
            }
        }
        for (key, node) in &flags.stage {
            self.lay_stage_key(key, node, flags)?;
        }
        // Levels that differed only in what has been replaced are now one.
        let mut kept: Vec<Entry> = Vec::new();
        for stage in self.stages.drain(..) {
            if !kept.contains(&stage) {
                kept.push(stage);
            }
        }
        self.stages = kept;
        Ok(())
    }

    /// Puts a key into every stage that has a use for it.
    fn lay_stage_key(&mut self, key: &str, node: &Node, flags: &Overlay) -> Result<(), FileError> {
        let loads = BELONGS.iter().find(|(belongs, _)| *belongs == key).map_or(&[][..], |(_, loads)| *loads);
        let mut taken = false;
        for Entry { table, .. } in &mut self.stages {
            let has = |load: &&str| table.contains_key(*load) || flags.stage.contains_key(*load);
            if loads.is_empty() || loads.iter().any(has) {
                table.insert(key.to_owned(), node.clone());
                taken = true;
            }
        }
        if taken {
            return Ok(());
        }
        let loads: Vec<String> = loads.iter().map(|load| format!("--{load}")).collect();
        let whose = if self.is_file { ", and the plan has no such stage" } else { "" };
        let what = format!("goes with {}{whose}", loads.join(" and "));
        Err(FileError::Flag { flag: node.origin.place(""), what })
    }
}

/// Puts keys into a table, each in the place of those that say the same in another way.
fn replace(table: &mut Table, new: &Table) {
    let gone = instead(new);
    let new_prompt = gone.contains(&"prompt");
    table.retain(|key, _| !gone.contains(&key.as_str()));
    if new_prompt {
        workloads::forget_choice(table);
    }
    merge(table, new);
}

/// Keys that have to go when these come.
fn instead(new: &Table) -> Vec<&'static str> {
    INSTEAD
        .iter()
        .filter(|keys| keys.iter().any(|key| new.contains_key(*key)))
        .copied()
        .flatten()
        .copied()
        .collect()
}

fn forget_repetition(stage: &mut Table) {
    let number = super::stages::repetition(stage);
    if stage.remove("repetition").is_none() {
        return;
    }
    let Some(Node { value: Value::Text(name), .. }) = stage.get_mut("name") else { return };
    if let Some(base) = name.strip_suffix(&format!(" #{number}")) {
        *name = base.to_owned();
    }
}

/// Headers of the same name give way.
fn add_headers(endpoint: &mut Table, new: &Node) {
    let name = |node: &Node| Some(node.as_table()?.get("name")?.as_text()?.to_ascii_lowercase());
    let all = match (endpoint.get("headers").map(|old| &old.value), &new.value) {
        (Some(Value::List(old)), Value::List(new)) => {
            let stays = |old: &&Node| !new.iter().any(|new| name(new) == name(old));
            Value::List(old.iter().filter(stays).chain(new).cloned().collect())
        }
        _ => new.value.clone(),
    };
    endpoint.insert("headers".to_owned(), Node { value: all, origin: new.origin.clone() });
}

/// Tables are merged, all else is replaced.
fn merge(into: &mut Table, from: &Table) {
    for (key, node) in from {
        match (into.get_mut(key).map(|node| &mut node.value), &node.value) {
            (Some(Value::Table(into)), Value::Table(from)) => merge(into, from),
            _ => _ = into.insert(key.clone(), node.clone()),
        }
    }
}

/// A name that flags bring and no stage asks for.
pub(super) fn unasked(name: &str, known: &[String]) -> FileError {
    let meant = likely(name, known.iter().map(String::as_str));
    let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
    FileError::Flag {
        flag: format!("--workload {name}"),
        what: format!("no stage asks for it: name it in --mix, or in a stage of the plan{meant}"),
    }
}
