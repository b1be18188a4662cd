//! `--set PATH=VALUE`: one value of a plan, by the way to it.

use std::ops::Range;

use super::error::{FileError, likely};
use super::node::{Node, Origin, Table, Value, parse_value};
use super::{Draft, Entry, stages};

/// Steps of a path: far more than a plan has.
const MOST_STEPS: usize = 32;

impl Draft {
    /// Sets what `PATH=VALUE` says. Steps of the path are keys of tables, and numbers (from 0) or names of entries of
    /// lists; `*` is every entry. The value is TOML, or else a text.
    pub fn set(&mut self, given: &str) -> Result<(), FileError> {
        let (path, value) = given.split_once('=').unwrap_or((given, ""));
        // The value may be secret: only the path is ever told.
        let bad = |what: String| FileError::Path { given: path.to_owned(), what };
        if path.len() == given.len() {
            return Err(bad("write it as PATH=VALUE, for instance stages.0.concurrency=8".to_owned()));
        }
        let steps: Vec<&str> = path.split('.').map(|step| step.trim().trim_matches('"')).collect();
        if steps.iter().any(|step| step.is_empty()) {
            return Err(bad("a step of the path is empty".to_owned()));
        }
        if steps.len() > MOST_STEPS {
            return Err(bad("no plan is as deep".to_owned()));
        }
        let origin = Origin::Flag(format!("--set {}", path.trim()).into());
        self.set_at(&steps, &parse_value(value.trim(), &origin)).map_err(bad)
    }

    fn set_at(&mut self, steps: &[&str], value: &Node) -> Result<(), String> {
        let stages = stages::names_of(&self.stages);
        let names = |list: &[Entry]| list.iter().map(|entry| entry.name().to_owned()).collect();
        if self.stages.is_empty() && steps[0] == "stages" {
            self.stages.push(Entry::usual_stage());
        }
        match steps {
            ["stages", rest @ ..] => into_entries(&mut self.stages, &stages, "stages", rest, value),
            ["workloads", rest @ ..] => {
                let names: Vec<String> = names(&self.workloads);
                into_entries(&mut self.workloads, &names, "workloads", rest, value)
            }
            ["endpoints", rest @ ..] => {
                let names: Vec<String> = names(&self.endpoints);
                into_entries(&mut self.endpoints, &names, "endpoints", rest, value)
            }
            ["endpoint", rest @ ..] if self.endpoints.len() < 2 => {
                into_entries(&mut self.endpoints, &[], "endpoint", &[&["0"], rest].concat(), value)
            }
            ["endpoint", ..] => Err("there are several: name one, endpoints.NAME".to_owned()),
            _ => into_table(&mut self.run, steps, value),
        }
    }
}

/// Goes on in a list of tables that a plan always has.
fn into_entries(
    list: &mut Vec<Entry>,
    names: &[String],
    of: &str,
    steps: &[&str],
    value: &Node,
) -> Result<(), String> {
    let [which, rest @ ..] = steps else {
        return Err(format!("`{of}` is a list: say which entry, by its number or name"));
    };
    if rest.is_empty() {
        return Err(format!("an entry of `{of}` is a table: say which key"));
    }
    if list.is_empty() && matches!(*which, "0" | "*") {
        // The one that is meant where none is written.
        list.push(Entry { origin: value.origin.clone(), ..Entry::default() });
    }
    let chosen = chosen(list.len(), names, of, which)?;
    for entry in &mut list[chosen] {
        into_table(&mut entry.table, rest, value)?;
    }
    Ok(())
}

fn into_table(table: &mut Table, steps: &[&str], value: &Node) -> Result<(), String> {
    let (key, rest) = (steps[0], &steps[1..]);
    // What is not there yet is made: whether anything knows the key is found out when the plan is read.
    let empty = || Node { value: Value::Table(Table::new()), origin: value.origin.clone() };
    into_node(table.entry(key.to_owned()).or_insert_with(empty), key, rest, value)
}

fn into_node(node: &mut Node, key: &str, steps: &[&str], value: &Node) -> Result<(), String> {
    let [next, rest @ ..] = steps else {
        *node = value.clone();
        return Ok(());
    };
    match &mut node.value {
        Value::Table(table) => into_table(table, steps, value),
        Value::List(list) => {
            let names: Vec<String> =
                list.iter().map(|node| node.name().unwrap_or_default().to_owned()).collect();
            let chosen = chosen(names.len(), &names, key, next)?;
            for node in &mut list[chosen] {
                into_node(node, next, rest, value)?;
            }
            Ok(())
        }
        other => Err(format!("`{key}` is {}, and has no `{next}`", other.kind())),
    }
}

/// Which entries a number, a name or `*` means.
fn chosen(n: usize, names: &[String], of: &str, which: &str) -> Result<Range<usize>, String> {
    if which == "*" {
        return Ok(0..n);
    }
    if let Ok(at) = which.parse::<usize>() {
        return match n {
            _ if at < n => Ok(at..at + 1),
            0 => Err(format!("`{of}` is empty")),
            1 => Err(format!("`{of}` has one entry, number 0")),
            n => Err(format!("`{of}` has {n} entries, numbers 0 to {}", n - 1)),
        };
    }
    if let Some(at) = names.iter().position(|name| name == which) {
        return Ok(at..at + 1);
    }
    let known: Vec<&str> = names.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    Err(match likely(which, known.iter().copied()) {
        Some(meant) => format!("`{of}` has no `{which}`; did you mean `{meant}`?"),
        None if known.is_empty() => format!("`{of}` is a list: number its entries from 0, or `*` for all"),
        None => format!("`{of}` has no `{which}`; there are {}", known.join(", ")),
    })
}
