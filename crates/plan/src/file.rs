//! A plan as its writer says it: a file in which nearly everything may be left out and lists stand for what is varied,
//! flags laid over it, and what comes of both.

mod check;
mod error;
mod node;
mod overlay;
mod path;
mod read;
mod stages;
mod template;
#[cfg(test)]
mod tests;
mod workloads;

use ttft_model::{Endpoint, Plan, Stage, Workload};

use self::node::{Node, Origin, Table, Value};
use self::read::read;
use self::stages::Order;

pub use error::FileError;
pub use overlay::{Overlay, Part};
pub use stages::Ramp;
pub use template::TEMPLATE;

/// The name of the only endpoint and the only workload, where it is not given.
const ONLY: &str = "default";

/// Levels of a plan that names no load.
const DEFAULT_CONCURRENCY: [i64; 4] = [1, 8, 16, 32];

/// Stages of a run, all repetitions included.
const MOST_STAGES: u64 = 10_000;

/// A plan that is being put together.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    /// The file's name, for messages.
    file: String,
    is_file: bool,
    /// All but the lists.
    run: Table,
    endpoints: Vec<Entry>,
    workloads: Vec<Entry>,
    stages: Vec<Entry>,
    /// Workloads that flags define.
    asked: Vec<String>,
}

/// An endpoint, a workload or a stage.
#[derive(Debug, Clone, Default)]
struct Entry {
    table: Table,
    origin: Origin,
}

/// The same keys and values, wherever they were written.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.table == other.table
    }
}

impl Entry {
    fn name(&self) -> &str {
        self.table.get("name").and_then(Node::as_text).unwrap_or(ONLY)
    }

    /// The sweep that is meant where no stage is written.
    fn usual_stage() -> Self {
        let users = DEFAULT_CONCURRENCY.map(|users| Node::implied(Value::Whole(users)));
        let users = Node::implied(Value::List(users.to_vec()));
        Self { table: Table::from([("concurrency".to_owned(), users)]), origin: Origin::Implied }
    }

    fn node(self) -> Node {
        Node { value: Value::Table(self.table), origin: self.origin }
    }
}

impl Draft {
    /// A plan that says nothing: flags will.
    pub fn new() -> Self {
        Self { file: "the plan".to_owned(), ..Self::default() }
    }

    /// What a file says; `name` is the file's, for messages.
    pub fn read(text: &str, name: &str) -> Result<Self, FileError> {
        let mut run = node::parse(text, name)?;
        let mut take = |key: &str| entries(run.remove(key), key, name);
        let mut endpoints = take("endpoints")?;
        endpoints.extend(take("endpoint")?);
        let (workloads, mut stages) = (take("workloads")?, take("stages")?);
        stages::forget_given_names(&mut stages);
        Ok(Self {
            file: name.to_owned(),
            is_file: true,
            run,
            endpoints,
            workloads,
            stages,
            asked: Vec::new(),
        })
    }

    /// The plan. `dialect_of` tells the dialect of a URL that tells it.
    pub fn plan(mut self, dialect_of: &dyn Fn(&str) -> Option<String>) -> Result<Plan, FileError> {
        let file = self.file.clone();
        workloads::complete(&mut self);
        let (repeat, order) = (self.take("repeat")?.unwrap_or(1), self.take("order")?.unwrap_or_default());
        self.run_in_full()?;
        let run = Node::implied(Value::Table(std::mem::take(&mut self.run)));
        let mut plan: Plan = read(&run, "", &file)?;
        plan.endpoints = Vec::new();
        if self.endpoints.is_empty() {
            self.endpoints.push(Entry::default());
        }
        for (at, mut entry) in std::mem::take(&mut self.endpoints).into_iter().enumerate() {
            workloads::endpoint_in_full(&mut entry.table, dialect_of);
            plan.endpoints.push(read::<Endpoint>(&entry.node(), &format!("endpoints.{at}"), &file)?);
        }
        plan.stages = self.stages(repeat, order, plan.seed)?;
        plan.workloads = Vec::new();
        for (at, mut entry) in std::mem::take(&mut self.workloads).into_iter().enumerate() {
            let path = format!("workloads.{at}");
            workloads::in_full(&mut entry.table, &path, &file)?;
            plan.workloads.push(read::<Workload>(&entry.node(), &path, &file)?);
        }
        check::check(&plan)?;
        self.prune(&mut plan)?;
        Ok(plan)
    }

    /// Takes a key that only files have.
    fn take<T: serde::de::DeserializeOwned>(&mut self, key: &str) -> Result<Option<T>, FileError> {
        let node = self.run.remove(key);
        node.map(|node| read(&node, key, &self.file)).transpose()
    }

    /// Short ways to write what concerns the run as a whole.
    fn run_in_full(&mut self) -> Result<(), FileError> {
        if let Some(slo) = self.run.get_mut("slo").filter(|node| node.as_text().is_some()) {
            slo.value = Value::List(vec![slo.clone()]);
        }
        let Some(node) = self.run.get_mut("precision") else { return Ok(()) };
        let Some(text) = node.as_text() else { return Ok(()) };
        let Some(share) = share(text) else {
            let what = "expected a share such as \"5%\" or 0.05".to_owned();
            let (at, key) = (node.origin.place(&self.file), "precision".to_owned());
            return Err(FileError::Value { at, key, what });
        };
        node.value = Value::Real(share);
        Ok(())
    }

    fn stages(&mut self, repeat: u32, order: Order, seed: u64) -> Result<Vec<Stage>, FileError> {
        let file = self.file.clone();
        if repeat == 0 {
            return Err(FileError::Contradiction("`repeat` is 0: that would send nothing".to_owned()));
        }
        if repeat > 1 && self.stages.iter().any(|stage| stage.table.contains_key("repetition")) {
            let what = "`repeat` does not go with stages that are repetitions already: leave one of them out";
            return Err(FileError::Contradiction(what.to_owned()));
        }
        if self.stages.is_empty() {
            self.stages.push(Entry::usual_stage());
        }
        let of_all = workloads::for_all(&self.workloads);
        for Entry { table, .. } in &mut self.stages {
            let says = |key: &str| table.contains_key(key);
            let (named, ends) = (says("workload") || says("mix"), says("requests") || says("duration"));
            // A trace has an end of its own.
            let ends = ends || says("trace");
            if !named {
                table.insert("workload".to_owned(), Node::implied(Value::List(of_all.clone())));
            }
            if !ends {
                let usual = Stage::default().stop.duration.unwrap_or_default();
                table.insert("duration".to_owned(), Node::text(usual.to_string()));
            }
        }
        let levels = stages::levels(&self.stages, &file)?;
        let count = levels.len() as u64 * u64::from(repeat);
        if count > MOST_STAGES {
            return Err(FileError::Contradiction(format!(
                "{count} stages are too many: {MOST_STAGES} can be"
            )));
        }
        let arranged = stages::arranged(levels, repeat, order, seed);
        let stage = |level: stages::Level| {
            let (path, origin) =
                (format!("stages.{}", level.source), self.stages[level.source].origin.clone());
            read(&Entry { table: level.table, origin }.node(), &path, &file)
        };
        arranged.into_iter().map(stage).collect()
    }

    /// Leaves workloads out that no stage asks for: they would be prepared for nothing.
    fn prune(&self, plan: &mut Plan) -> Result<(), FileError> {
        let stages = &plan.stages;
        let is_used =
            |name: &str| stages.iter().flat_map(|stage| &stage.mix).any(|share| share.workload == name);
        if let Some(name) = self.asked.iter().find(|name| !is_used(name)) {
            let used = plan.workloads.iter().map(|workload| workload.name.clone());
            return Err(overlay::unasked(name, &used.filter(|name| is_used(name)).collect::<Vec<_>>()));
        }
        plan.workloads.retain(|workload| is_used(&workload.name));
        Ok(())
    }
}

/// The tables of a list; one table alone is a list of one.
fn entries(node: Option<Node>, key: &str, file: &str) -> Result<Vec<Entry>, FileError> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let list = match node.value {
        Value::List(list) => list,
        Value::Table(table) => return Ok(vec![Entry { table, origin: node.origin }]),
        ref other => {
            let what = format!("expected tables, written [[{key}]], found {}", other.kind());
            return Err(FileError::Value { at: node.origin.place(file), key: key.to_owned(), what });
        }
    };
    let entry = |(at, node): (usize, Node)| match node.value {
        Value::Table(table) => Ok(Entry { table, origin: node.origin }),
        other => {
            let what = format!("expected a table, written [[{key}]], found {}", other.kind());
            Err(FileError::Value { at: node.origin.place(file), key: format!("{key}.{at}"), what })
        }
    };
    list.into_iter().enumerate().map(entry).collect()
}

/// `5%` or `0.05` as a share.
pub fn share(text: &str) -> Option<f64> {
    let text = text.trim();
    match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
        None => text.parse().ok(),
    }
}
