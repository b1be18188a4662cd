//! Samples of a dialect: recordings, each with what must come out of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::{DecodeOptions, decode_file, wrong};
use crate::{Dialect, Error};

/// What a sample's expectation is called, behind its name.
const EXPECT: &str = ".expect.json";
/// Numbers that are nearer are the same, unless a sample gives a tolerance of its own.
const TOLERANCE: f64 = 1e-9;

/// One sample, decoded and compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// Its name.
    pub name: String,
    /// What differs from what must come out, in words; empty if nothing does.
    pub problems: Vec<String>,
}

/// Runs the samples of a dialect's folder: `dialect.toml`, and `samples/` with a `NAME.expect.json` beside each
/// recording `NAME.*`.
pub fn test_samples(folder: &Path) -> Result<(Arc<Dialect>, Vec<Sample>), Error> {
    let dialect = Dialect::load(&folder.join("dialect.toml"))?;
    let options = DecodeOptions { dialect: Some(dialect.clone()), ..DecodeOptions::default() };
    let files = files(&folder.join("samples"))?;
    let mut samples = Vec::new();
    for file in &files {
        let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(name) = name.strip_suffix(EXPECT) else { continue };
        let recording = files.iter().find(|other| {
            let other = other.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            !other.ends_with(EXPECT) && other.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
        });
        let Some(recording) = recording else {
            return Err(wrong(&file.display().to_string(), 1, "there is no recording of that name"));
        };
        let problems = test_sample(recording, file, &options)?;
        samples.push(Sample { name: name.to_owned(), problems });
    }
    Ok((dialect, samples))
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |source| Error::Read { file: folder.display().to_string(), source };
    let entries = std::fs::read_dir(folder).map_err(failed)?;
    let mut files: Vec<_> =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>().map_err(failed)?;
    files.sort();
    Ok(files)
}

/// Decodes one recording; says what differs from the expectation in that file.
pub fn test_sample(recording: &Path, expect: &Path, options: &DecodeOptions) -> Result<Vec<String>, Error> {
    let file = expect.display().to_string();
    let text = std::fs::read(expect).map_err(|source| Error::Read { file: file.clone(), source })?;
    let expect: Value =
        serde_json::from_slice(&text).map_err(|error| wrong(&file, error.line(), &error.to_string()))?;
    if !expect["must"].is_object() {
        return Err(wrong(&file, 1, "an expectation has an object `must`"));
    }
    let decoded = decode_file(recording, options)?;
    let decoded = serde_json::to_value(&decoded).map_err(|error| wrong(&file, 1, &error.to_string()))?;
    Ok(differences(&decoded, &expect))
}

/// What differs between the JSON form of a decoded answer and what must come out, in words.
pub fn differences(decoded: &Value, expect: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, wanted) in expect["must"].as_object().into_iter().flatten() {
        let Some(found) = decoded.get(name) else {
            problems.push(format!("nothing is called `{name}`"));
            continue;
        };
        let tolerance = expect["tolerance"][name].as_f64().unwrap_or(TOLERANCE);
        if !same(found, wanted, tolerance) {
            problems.push(format!("`{name}` is {found}, must be {wanted}"));
        }
    }
    for (name, forbidden) in expect["must_not"].as_object().into_iter().flatten() {
        let found = &decoded[name];
        for wrong in forbidden.as_array().into_iter().flatten() {
            let holds = found.as_str().zip(wrong.as_str()).is_some_and(|(text, part)| text.contains(part));
            if holds || same(found, wrong, 0.0) {
                problems.push(format!("`{name}` is {found}, must not be {wrong}"));
            }
        }
    }
    for flag in expect["should"]["flags"].as_array().into_iter().flatten() {
        if !decoded["flags"].as_array().is_some_and(|flags| flags.contains(flag)) {
            problems.push(format!("the flag {flag} is missing"));
        }
    }
    problems
}

fn same(found: &Value, wanted: &Value, tolerance: f64) -> bool {
    match (found.as_f64(), wanted.as_f64()) {
        (Some(found), Some(wanted)) => (found - wanted).abs() <= tolerance,
        _ => found == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_named() {
        let decoded = json!({ "ttft_ms": 80.0, "text": "Hi", "flags": ["untimed"], "output_tokens": null });
        let check = |expect: Value, wanted: &[&str]| assert_eq!(differences(&decoded, &expect), wanted);
        check(json!({ "must": { "ttft_ms": 80, "output_tokens": null, "text": "Hi" } }), &[]);
        check(json!({ "must": { "ttft_ms": 81 } }), &["`ttft_ms` is 80.0, must be 81"]);
        check(json!({ "must": { "ttft_ms": 81 }, "tolerance": { "ttft_ms": 1 } }), &[]);
        check(json!({ "must": { "ttft": 80 } }), &["nothing is called `ttft`"]);
        check(json!({ "must_not": { "text": ["i"] } }), &["`text` is \"Hi\", must not be \"i\""]);
        check(json!({ "must_not": { "output_tokens": [0] } }), &[]);
        check(json!({ "should": { "flags": ["untimed"] } }), &[]);
        check(json!({ "should": { "flags": ["x"] } }), &["the flag \"x\" is missing"]);
    }
}
