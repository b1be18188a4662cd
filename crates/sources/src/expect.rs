//! What must come out of a page and what must not, as written beside a recorded one.

use serde_json::Value;

/// How far numbers may be off unless the file says otherwise.
const TOLERANCE: f64 = 1e-9;

/// What differs between the JSON form of a reading and what must come out, in words.
///
/// `must` has values by name, `null` for unknown; `must_not` has lists of values that a name must not have, the name being
/// a path with dots, or the last part of one; `tolerance` is by the last part of a name.
pub fn differences(read: &Value, expect: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    for (name, wanted) in expect["must"].as_object().into_iter().flatten() {
        compare(name, &read[name], wanted, &expect["tolerance"], &mut problems);
    }
    for (path, wrong) in expect["must_not"].as_object().into_iter().flatten() {
        let mut found = Vec::new();
        match pointed(read, path) {
            Some(value) => found.push(value),
            None => named(read, path, &mut found),
        }
        for wrong in wrong.as_array().into_iter().flatten() {
            if found.iter().any(|found| same(found, wrong, TOLERANCE)) {
                problems.push(format!("`{path}` must not be {wrong}"));
            }
        }
    }
    problems
}

fn compare(path: &str, found: &Value, wanted: &Value, tolerance: &Value, problems: &mut Vec<String>) {
    if let Some(wanted) = wanted.as_object() {
        for (name, wanted) in wanted {
            compare(&format!("{path}.{name}"), &found[name], wanted, tolerance, problems);
        }
        return;
    }
    let leaf = path.rsplit('.').next().unwrap_or(path);
    let tolerance = [path, leaf].iter().find_map(|name| tolerance[*name].as_f64()).unwrap_or(TOLERANCE);
    if !same(found, wanted, tolerance) {
        problems.push(format!("`{path}` is {found}, must be {wanted}"));
    }
}

fn pointed<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(value, |value, name| value.get(name))
}

fn named<'a>(value: &'a Value, name: &str, found: &mut Vec<&'a Value>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        if key == name {
            found.push(value);
        }
        named(value, name, found);
    }
}

fn same(found: &Value, wanted: &Value, tolerance: f64) -> bool {
    match (found, wanted) {
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(f, w)| same(f, w, tolerance))
        }
        _ => match (found.as_f64(), wanted.as_f64()) {
            (Some(found), Some(wanted)) => (found - wanted).abs() <= tolerance,
            _ => found == wanted,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_named() {
        let read = json!({ "ttft": { "p99_s": 10, "mean_s": 0.5 }, "hosts": ["a"] });
        let check = |expect: Value, wanted: &[&str]| assert_eq!(differences(&read, &expect), wanted);
        check(json!({ "must": { "ttft": { "mean_s": 0.5 }, "itl": null, "hosts": ["a"] } }), &[]);
        check(json!({ "must": { "ttft": { "mean_s": 0.6 } } }), &["`ttft.mean_s` is 0.5, must be 0.6"]);
        check(json!({ "must": { "ttft": { "mean_s": 0.6 } }, "tolerance": { "mean_s": 0.1 } }), &[]);
        check(
            json!({ "must": { "ttft": null } }),
            &["`ttft` is {\"mean_s\":0.5,\"p99_s\":10}, must be null"],
        );
        check(json!({ "must_not": { "p99_s": [10.0] } }), &["`p99_s` must not be 10.0"]);
        check(json!({ "must_not": { "ttft.p99_s": [10.0] } }), &["`ttft.p99_s` must not be 10.0"]);
        check(json!({ "must_not": { "ttft.p99_s": [1.0], "ttft": [10] } }), &[]);
    }
}
