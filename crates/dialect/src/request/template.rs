//! Templates: JSON with places, and how they are filled.

use serde_json::{Map, Value};

use super::body::OPEN_PLACE;

/// Gives the value of a place, if it has one. Of a list whose first element is a place, what follows are the
/// templates of its elements.
pub(super) type Lookup<'a> = dyn Fn(&str, &[Value]) -> Option<Value> + 'a;

/// A template's value with its places filled. A place without a value vanishes, and so does an object or a list that
/// is left empty by it.
pub(super) fn filled(template: &Value, lookup: &Lookup<'_>) -> Option<Value> {
    match template {
        Value::String(text) => match place_of(text) {
            None => Some(template.clone()),
            Some((name, default)) => lookup(name, &[])
                .or_else(|| default.map(|text| serde_json::from_str(text).unwrap_or_else(|_| text.into()))),
        },
        Value::Array(list) => {
            if let Some((name, elements)) = list_of(list) {
                return lookup(name, elements);
            }
            let filled: Vec<Value> = list.iter().filter_map(|value| filled(value, lookup)).collect();
            (!filled.is_empty() || list.is_empty()).then_some(Value::Array(filled))
        }
        Value::Object(map) => {
            let filled: Map<String, Value> =
                map.iter().filter_map(|(key, value)| Some((key.clone(), filled(value, lookup)?))).collect();
            (!filled.is_empty() || map.is_empty()).then_some(Value::Object(filled))
        }
        other => Some(other.clone()),
    }
}

/// The first place of a template that nothing fills, if there is one. `of_elements` gives the places that the
/// templates of a list's elements may have.
pub(super) fn unknown_place<'a>(
    template: &'a Value,
    places: &[&str],
    of_elements: &dyn Fn(&str) -> Option<&'static [&'static str]>,
) -> Option<&'a str> {
    match template {
        Value::String(text) => place_of(text).map(|(name, _)| name).filter(|name| !places.contains(name)),
        Value::Array(list) => {
            if let Some((name, elements)) = list_of(list)
                && let Some(places) = of_elements(name)
            {
                return elements.iter().find_map(|value| unknown_place(value, places, &|_| None));
            }
            list.iter().find_map(|value| unknown_place(value, places, of_elements))
        }
        Value::Object(map) => map.values().find_map(|value| unknown_place(value, places, of_elements)),
        _ => None,
    }
}

/// Whether a template has that place, in whatever depth.
pub(super) fn has_place(template: &Value, name: &str) -> bool {
    match template {
        Value::String(text) => place_of(text).is_some_and(|(place, _)| place == name),
        Value::Array(list) => list.iter().any(|value| has_place(value, name)),
        Value::Object(map) => map.values().any(|value| has_place(value, name)),
        _ => false,
    }
}

/// A value with its `{prompt}` made open places.
pub(super) fn opened(value: &Value) -> Value {
    match value {
        Value::String(text) if text == "{prompt}" => OPEN_PLACE.into(),
        Value::Array(list) => list.iter().map(opened).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), opened(value))).collect())
        }
        other => other.clone(),
    }
}

/// The name and default of a string that is a place: `{name}` or `{name|default}`.
fn place_of(text: &str) -> Option<(&str, Option<&str>)> {
    let inner = text.strip_prefix('{')?.strip_suffix('}')?;
    Some(inner.split_once('|').map_or((inner, None), |(name, default)| (name, Some(default))))
}

/// The name of a list that is made of templates, and the templates.
fn list_of(list: &[Value]) -> Option<(&str, &[Value])> {
    let (Value::String(text), elements @ [_, ..]) = list.split_first()? else { return None };
    Some((place_of(text)?.0, elements))
}
