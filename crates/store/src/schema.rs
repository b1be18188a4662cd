//! The schema of `requests.arrow` and what its metadata says of the run.

use std::collections::HashMap;

use arrow_schema::{Field, Schema};
use ttft_model::Run;

use crate::columns::COLUMNS;

/// The schema that this version writes, and reads.
pub const REQUESTS_SCHEMA: &str = "ttft.requests/1";

/// What the metadata of `requests.arrow` says, so that the file can be read without its folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequestsInfo {
    /// Wall clock (nanoseconds since 1970) of the axis' zero.
    pub zero_unix_ns: i64,
    /// The monotonic clock's own reading at the axis' zero.
    pub zero_monotonic_ns: i64,
    /// The run's name.
    pub name: String,
    /// Version of the tool that wrote it.
    pub version: String,
    /// Names of the plan's stages.
    pub stages: Vec<String>,
    /// Names of the plan's workloads.
    pub workloads: Vec<String>,
    /// The model that each stage asks for.
    pub models: Vec<Option<String>>,
}

const SCHEMA: &str = "ttft.schema";
const ZERO_UNIX: &str = "ttft.zero_unix_ns";
const ZERO_MONOTONIC: &str = "ttft.zero_monotonic_ns";
const NAME: &str = "ttft.name";
const VERSION: &str = "ttft.version";
const STAGES: &str = "ttft.stages";
const WORKLOADS: &str = "ttft.workloads";
const MODELS: &str = "ttft.models";

impl RequestsInfo {
    /// What a file of this run says.
    pub(crate) fn of(run: &Run) -> Self {
        let plan = &run.plan;
        Self {
            zero_unix_ns: run.zero_unix_ns,
            zero_monotonic_ns: run.zero_monotonic_ns,
            name: run.name.clone(),
            version: run.version.clone(),
            stages: plan.stages.iter().map(|stage| stage.name.clone()).collect(),
            workloads: plan.workloads.iter().map(|workload| workload.name.clone()).collect(),
            models: plan.stages.iter().map(|stage| plan.model_of(stage).map(str::to_owned)).collect(),
        }
    }

    /// The file's schema with this as its metadata.
    pub(crate) fn schema(&self) -> Schema {
        let list = |names: &[String]| serde_json::Value::from(names).to_string();
        let metadata = HashMap::from([
            (SCHEMA.to_owned(), REQUESTS_SCHEMA.to_owned()),
            (ZERO_UNIX.to_owned(), self.zero_unix_ns.to_string()),
            (ZERO_MONOTONIC.to_owned(), self.zero_monotonic_ns.to_string()),
            (NAME.to_owned(), self.name.clone()),
            (VERSION.to_owned(), self.version.clone()),
            (STAGES.to_owned(), list(&self.stages)),
            (WORKLOADS.to_owned(), list(&self.workloads)),
            (MODELS.to_owned(), serde_json::json!(self.models).to_string()),
        ]);
        let fields: Vec<Field> = COLUMNS.iter().map(crate::columns::Column::field).collect();
        Schema::new_with_metadata(fields, metadata)
    }

    /// Reads the metadata back; what is missing stays empty.
    pub(crate) fn from_schema(schema: &Schema) -> Self {
        let text = |key: &str| schema.metadata.get(key).cloned();
        let number = |key: &str| text(key).and_then(|n| n.parse().ok()).unwrap_or(0);
        let list = |key: &str| text(key).and_then(|n| serde_json::from_str(&n).ok()).unwrap_or_default();
        Self {
            zero_unix_ns: number(ZERO_UNIX),
            zero_monotonic_ns: number(ZERO_MONOTONIC),
            name: text(NAME).unwrap_or_default(),
            version: text(VERSION).unwrap_or_default(),
            stages: list(STAGES),
            workloads: list(WORKLOADS),
            models: text(MODELS).and_then(|n| serde_json::from_str(&n).ok()).unwrap_or_default(),
        }
    }
}

/// The version that a file names; `None` if it is not ours at all.
pub(crate) fn named_schema(schema: &Schema) -> Option<&str> {
    schema.metadata.get(SCHEMA).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_comes_back() {
        let info = RequestsInfo {
            zero_unix_ns: 1_796_055_605_123_456_789,
            zero_monotonic_ns: -5,
            name: "a \"name\"".to_owned(),
            version: "0.1.0".to_owned(),
            stages: vec!["c=1, warm".to_owned(), "c=\"8\"".to_owned()],
            workloads: vec![],
            models: vec![Some("m".to_owned()), None],
        };
        assert_eq!(RequestsInfo::from_schema(&info.schema()), info);
        assert_eq!(named_schema(&info.schema()), Some(REQUESTS_SCHEMA));
    }

    #[test]
    fn names_are_unique_and_event_lists_come_last() {
        let names: std::collections::HashSet<_> = COLUMNS.iter().map(|column| column.name).collect();
        assert_eq!(names.len(), COLUMNS.len());
        let first = COLUMNS.iter().position(crate::columns::Column::is_of_events);
        assert_eq!(first, Some(COLUMNS.len() - 3));
    }

    /// Columns of exported rows that are stored as they are.
    #[test]
    fn stored_columns_have_the_names_of_exported_rows() {
        let shared = "request_id stage workload model agent warmup attempt outcome error_class http_status \
            scheduled_ns started_ns connected_ns sent_ns headers_ns first_byte_ns first_token_ns \
            first_token_user_ns first_answer_ns last_token_ns ended_ns input_tokens output_tokens \
            reasoning_tokens token_source events retransmits connection reused";
        for name in shared.split_whitespace() {
            assert!(COLUMNS.iter().any(|column| column.name == name), "{name}");
        }
    }
}
