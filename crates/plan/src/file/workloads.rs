//! Short ways to write workloads and endpoints, in full.

use ttft_model::Lengths;

use super::error::FileError;
use super::node::{Node, Origin, Table, Value};
use super::read::read;
use super::{Draft, Entry};

/// Keys that say where prompts come from.
const PROMPTS: [&str; 3] = ["prompt", "prompt_tokens", "dataset"];

/// Adds the workloads that are meant where none is written: one for all stages, and one for the trace that is replayed.
pub(super) fn complete(draft: &mut Draft) {
    for stage in &mut draft.stages {
        let Some(trace) = stage.table.get("trace").cloned() else { continue };
        if stage.table.contains_key("workload") || stage.table.contains_key("mix") {
            continue;
        }
        let name = workload_of_trace(&mut draft.workloads, &trace, stage.table.get("trace_format"));
        stage.table.insert("workload".to_owned(), Node::text(name));
    }
    if draft.workloads.is_empty() {
        draft.workloads.push(Entry::default());
    }
}

/// The name of the workload whose prompts are the trace's: one that is there, or a new one.
fn workload_of_trace(workloads: &mut Vec<Entry>, trace: &Node, format: Option<&Node>) -> String {
    let follows = |entry: &&Entry| {
        let prompt = entry.table.get("prompt").and_then(Node::as_table);
        let of_trace = prompt.and_then(|prompt| prompt.get("trace")?.as_table());
        of_trace.is_some_and(|of| of.get("path") == Some(trace) && of.get("format") == format)
    };
    if let Some(known) = workloads.iter().find(follows) {
        return known.name().to_owned();
    }
    let mut of_trace = Table::from([("path".to_owned(), trace.clone())]);
    of_trace.extend(format.map(|format| ("format".to_owned(), format.clone())));
    let prompt = Table::from([("trace".to_owned(), Node::implied(Value::Table(of_trace)))]);
    let prompt = ("prompt".to_owned(), Node::implied(Value::Table(prompt)));
    match &mut workloads[..] {
        // One that says nothing of its prompts is meant.
        [only] if !PROMPTS.iter().any(|key| only.table.contains_key(*key)) => {
            only.table.extend([prompt]);
            only.name().to_owned()
        }
        _ => {
            let is_taken = |name: &str| workloads.iter().any(|known| known.name() == name);
            let numbered = (2..).map(|number| format!("trace-{number}"));
            let name = std::iter::once("trace".to_owned()).chain(numbered).find(|name| !is_taken(name));
            let name = if workloads.is_empty() { super::ONLY.to_owned() } else { name.unwrap_or_default() };
            let table = Table::from([("name".to_owned(), Node::text(name.clone())), prompt]);
            workloads.push(Entry { table, origin: trace.origin.clone() });
            name
        }
    }
}

/// The names of the workloads that a stage is made of if it names none: all that follow no trace.
pub(super) fn for_all(workloads: &[Entry]) -> Vec<Node> {
    let follows = |entry: &Entry| {
        entry.table.get("prompt").and_then(Node::as_table).is_some_and(|prompt| prompt.contains_key("trace"))
    };
    let free = workloads.iter().filter(|entry| workloads.len() == 1 || !follows(entry));
    free.map(|entry| Node::text(entry.name())).collect()
}

/// What was measured at another server has to be measured again.
pub(super) fn measure_again(workload: &mut Table) {
    if workload.get("calibration").is_some_and(|how| how.as_table().is_some()) {
        workload.insert("calibration".to_owned(), Node::text("measure"));
    }
}

/// Other prompts are calibrated as theirs are; what has been measured holds for them as well.
pub(super) fn forget_choice(workload: &mut Table) {
    workload.retain(|key, how| key != "calibration" || how.as_table().is_some());
}

/// Writes a workload in full: `prompt = "text"`, `prompt_tokens`, `dataset`, and `max_tokens` as a distribution.
pub(super) fn in_full(workload: &mut Table, path: &str, file: &str) -> Result<(), FileError> {
    let bad = |origin: &Origin, key: &str, what: String| FileError::Value {
        at: origin.place(file),
        key: format!("{path}.{key}"),
        what,
    };
    let given: Vec<&str> = PROMPTS.into_iter().filter(|key| workload.contains_key(*key)).collect();
    if let [first, second, ..] = given[..] {
        let what = format!("does not go with `{first}`: a workload has its prompts from one of them");
        return Err(bad(&workload[second].origin, second, what));
    }
    let mut asks_length = false;
    if let Some(node) = workload.remove("prompt_tokens") {
        asks_length = true;
        let key = match read::<Lengths>(&node, &format!("{path}.prompt_tokens"), file)? {
            Lengths::Recorded => {
                let what = "takes lengths; a stage with `trace` has the recorded ones".to_owned();
                return Err(bad(&node.origin, "prompt_tokens", what));
            }
            Lengths::Fixed(_) => "tokens",
            _ => "lengths",
        };
        put_prompt(workload, key, node);
    }
    if let Some(node) = workload.remove("dataset") {
        put_prompt(workload, "file", node);
    }
    if let Some(node) = workload.get("prompt").filter(|node| node.as_text().is_some()).cloned() {
        put_prompt(workload, "text", node);
    }
    let of = |key: &str| workload.get("prompt").and_then(Node::as_table).is_some_and(|p| p.contains_key(key));
    asks_length |= of("tokens") || of("lengths") || of("trace");
    let drawn = workload.get("prompt").and_then(|prompt| prompt.as_table()?.get("lengths")?.as_text());
    // What a file says of prompts, it says of their answers.
    let is_recorded = of("file") || of("trace") || drawn.is_some_and(|text| text.starts_with("empirical:"));
    if asks_length && !workload.contains_key("calibration") {
        workload.insert("calibration".to_owned(), Node::text("measure"));
    }
    if let Some(Node { value: count @ Value::Whole(_), origin }) = workload.get("images").cloned() {
        let count = Node { value: count, origin: origin.clone() };
        let images = Value::Table(Table::from([("count".to_owned(), count)]));
        workload.insert("images".to_owned(), Node { value: images, origin });
    }
    match workload.get("max_tokens").cloned() {
        None if is_recorded && !workload.contains_key("output") => {
            workload.insert("output".to_owned(), Node::text("recorded"));
        }
        Some(node) if node.as_text().is_some() => {
            let lengths: Lengths = read(&node, &format!("{path}.max_tokens"), file)?;
            workload.remove("max_tokens");
            if !matches!(lengths, Lengths::Fixed(_)) {
                workload.insert("output".to_owned(), node.clone());
            }
            // How long those of a file may get, only the file knows.
            if !matches!(lengths, Lengths::Recorded | Lengths::Empirical(_)) {
                let most = Value::Whole(lengths.most().into());
                workload.insert("max_tokens".to_owned(), Node { value: most, origin: node.origin });
            }
        }
        _ => {}
    }
    Ok(())
}

fn put_prompt(workload: &mut Table, key: &str, node: Node) {
    let origin = node.origin.clone();
    let prompt = Value::Table(Table::from([(key.to_owned(), node)]));
    workload.insert("prompt".to_owned(), Node { value: prompt, origin });
}

/// Writes an endpoint in full: headers as a table, and the dialect that its URL tells.
pub(super) fn endpoint_in_full(endpoint: &mut Table, dialect_of: &dyn Fn(&str) -> Option<String>) {
    if let Some(Node { value: Value::Table(headers), origin }) = endpoint.get("headers").cloned() {
        let header = |(name, value): (&String, &Node)| {
            let name = ("name".to_owned(), Node::text(name.clone()));
            let text = match &value.value {
                number @ (Value::Whole(_) | Value::Real(_) | Value::Truth(_)) => {
                    Value::Text(number.to_string())
                }
                other => other.clone(),
            };
            let origin = value.origin.clone();
            let text = Node { value: text, origin: origin.clone() };
            Node { value: Value::Table(Table::from([name, ("value".to_owned(), text)])), origin }
        };
        let list = Value::List(headers.iter().map(header).collect());
        endpoint.insert("headers".to_owned(), Node { value: list, origin });
    }
    if !endpoint.contains_key("dialect") {
        let told = endpoint.get("url").and_then(Node::as_text).and_then(dialect_of);
        endpoint.extend(told.map(|dialect| ("dialect".to_owned(), Node::text(dialect))));
    }
}
