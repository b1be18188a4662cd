//! Tools that are given in `OpenAI`'s shape, written in the shape of a dialect.

use serde_json::Value;

use super::parts::{Writer, shape};
use super::template::filled;
use crate::error::Problem;
use crate::rules::ToolChoiceFile;

/// The places of a tool's template.
pub(super) const OF_TOOL: &[&str] = &["name", "description", "parameters", "parameters_text"];

/// The shapes of what may be said of the use of tools.
#[derive(Debug, Default)]
pub(super) struct ToolChoice {
    auto: Option<Value>,
    none: Option<Value>,
    required: Option<Value>,
    function: Option<Value>,
}

impl ToolChoice {
    pub(super) fn new(file: &ToolChoiceFile) -> Result<Self, (usize, Problem)> {
        Ok(Self {
            auto: shape(file.auto.as_ref(), &[])?,
            none: shape(file.none.as_ref(), &[])?,
            required: shape(file.required.as_ref(), &[])?,
            function: shape(file.function.as_ref(), &["name"])?,
        })
    }

    /// A choice in the dialect's shape.
    pub(super) fn shaped(&self, choice: &Value, writer: &Writer<'_>) -> Option<Value> {
        let name = choice["function"]["name"].as_str();
        let (asked, template) = match choice.as_str() {
            Some("auto") => ("auto", &self.auto),
            Some("none") => ("none", &self.none),
            Some("required") => ("required", &self.required),
            _ => ("function", &self.function),
        };
        let Some(template) = template else {
            writer.lack(format!("the tool choice `{asked}`"));
            return None;
        };
        filled(template, &|_, _| name.map(Value::from))
    }
}

/// Whether these are tools in `OpenAI`'s shape, which no other has.
pub(super) fn are_tools(tools: &Value) -> bool {
    let is_tool = |tool: &Value| tool["type"] == "function" && tool["function"].is_object();
    tools.as_array().is_some_and(|tools| !tools.is_empty() && tools.iter().all(is_tool))
}

/// Whether it is a choice in `OpenAI`'s shape.
pub(super) fn is_choice(choice: &Value) -> bool {
    matches!(choice.as_str(), Some("auto" | "none" | "required"))
        || (choice["type"] == "function" && choice["function"]["name"].is_string())
}

/// Tools by the template of one; as they are where there is none.
pub(super) fn shaped(tools: &Value, template: Option<&Value>) -> Option<Value> {
    let Some(template) = template else { return Some(tools.clone()) };
    let one = |tool: &Value| {
        let function = &tool["function"];
        filled(template, &|place, _| match place {
            "parameters_text" => function.get("parameters").map(|value| value.to_string().into()),
            name => function.get(name).cloned(),
        })
    };
    Some(tools.as_array()?.iter().filter_map(one).collect())
}
