//! From the TOML form to matchers, checking all of it: a dialect that loads can be used.

use std::collections::BTreeMap;

use toml::Value;

use super::file::{RuleFile, Scope, StreamFile};
use super::{Condition, DialectFile, Matcher, Meaning, Rule, Rules, Scalar};
use crate::error::Problem;
use crate::json::{Trie, segments, shared_stars};

/// A problem and the position in the file that it is at.
pub(crate) type At = (usize, Problem);

/// Compiles the rules of a dialect file.
pub(crate) fn compile(file: &DialectFile) -> Result<Rules, At> {
    let nothing = StreamFile::default();
    let (at, stream) =
        file.stream.as_ref().map_or((0, &nothing), |stream| (stream.span().start, stream.get_ref()));
    let framing = stream.framing.ok_or((at, Problem::Missing("framing")))?;
    let has = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
    let finish_ends = stream.finish_ends.unwrap_or(false);
    let ends = file.rules.iter().any(|rule| rule.get_ref().is == Meaning::End);
    let body_ends = stream.body_ends.unwrap_or(false);
    if !ends && !finish_ends && !body_ends && !has(&stream.end_data) && !has(&stream.end_events) {
        return Err((at, Problem::NoTerminator));
    }
    if finish_ends && !file.rules.iter().any(|rule| rule.get_ref().is == Meaning::Finish) {
        return Err((at, Problem::NoFinish));
    }
    if !file.rules.iter().any(|rule| rule.get_ref().is.channel().is_some()) {
        return Err((at, Problem::NoOutput));
    }

    let bytes = |list: &Option<Vec<String>>| {
        list.iter().flatten().map(|text| text.clone().into_bytes()).collect::<Vec<_>>()
    };
    let (stream_rules, document_rules) = (matcher(file, Scope::Stream)?, matcher(file, Scope::Document)?);
    Ok(Rules {
        framing,
        base64: stream.base64.as_ref().map(one_pointer).transpose()?,
        signs: bytes(&stream.signs),
        end_data: bytes(&stream.end_data),
        end_events: bytes(&stream.end_events),
        finish_ends,
        body_ends,
        comment_data: bytes(&stream.comment_data),
        ping_events: bytes(&stream.ping_events),
        error_events: bytes(&stream.error_events),
        error_fields: bytes(&stream.error_fields),
        stream: stream_rules,
        document: document_rules,
    })
}

/// A trie that looks for one value.
fn one_pointer(pointer: &toml::Spanned<String>) -> Result<Trie, At> {
    let mut trie = Trie::default();
    let text = pointer.get_ref();
    trie.insert(text)
        .map_err(|why| (pointer.span().start, Problem::Pointer { pointer: text.clone(), why }))?;
    Ok(trie)
}

fn matcher(file: &DialectFile, scope: Scope) -> Result<Matcher, At> {
    let mut matcher = Matcher::default();
    let choice = choice_pointer(file)?;
    if let Some((position, pointer)) = &choice {
        matcher.choice = Some(insert(&mut matcher, pointer, *position)?);
        matcher.one_choice = !pointer.contains("/*");
    }
    for (group, spanned) in file.rules.iter().enumerate() {
        let rule = spanned.get_ref();
        if !in_scope(rule, scope) || rule.is == Meaning::Choice {
            continue;
        }
        let position = rule.at.span().start;
        let pointers = pointers(&rule.at)?;
        for (rank, pointer) in pointers.iter().enumerate() {
            let slot = insert(&mut matcher, pointer, position)?;
            let compiled = Rule {
                meaning: rule.is,
                group: group as u16,
                rank: rank as u8,
                alternatives: pointers.len() > 1,
                is_shape: rule.is == Meaning::Finish || rule.is.channel().is_some(),
                choice_stars: choice.as_ref().map_or(0, |(_, choice)| shared_stars(choice, pointer) as u8),
                cumulative: rule.cumulative,
                fallback: rule.fallback,
                beside: rule.beside,
                unit_ms: rule.unit.map_or(1.0, super::file::Unit::in_ms),
                only: scalars(rule.only.as_ref(), position)?,
                not: scalars(rule.not.as_ref(), position)?,
                when: conditions(&mut matcher, &rule.when, pointer, position)?,
                unless: conditions(&mut matcher, &rule.unless, pointer, position)?,
            };
            let wanted = usize::from(slot) + 1;
            if matcher.by_slot.len() < wanted {
                matcher.by_slot.resize_with(wanted, Vec::new);
            }
            matcher.by_slot[usize::from(slot)].push(compiled);
        }
    }
    matcher.by_slot.resize_with(matcher.trie.slots(), Vec::new);
    Ok(matcher)
}

/// Output is of the stream unless the rule says otherwise; everything else is of both.
fn in_scope(rule: &RuleFile, wanted: Scope) -> bool {
    let usual = if rule.is.channel().is_some() { Scope::Stream } else { Scope::Both };
    let scope = rule.scope.unwrap_or(usual);
    scope == Scope::Both || scope == wanted
}

fn choice_pointer(file: &DialectFile) -> Result<Option<(usize, String)>, At> {
    let mut rules = file.rules.iter().map(toml::Spanned::get_ref).filter(|rule| rule.is == Meaning::Choice);
    let Some(rule) = rules.next() else { return Ok(None) };
    let position = rule.at.span().start;
    let mut pointers = pointers(&rule.at)?;
    let pointer = pointers.swap_remove(0);
    let stars = pointer.split('/').filter(|step| *step == "*").count();
    if rules.next().is_some() || !pointers.is_empty() || stars > 1 {
        return Err((position, Problem::Choice));
    }
    Ok(Some((position, pointer)))
}

fn pointers(at: &toml::Spanned<Value>) -> Result<Vec<String>, At> {
    let texts = match at.get_ref() {
        Value::String(text) => vec![text.clone()],
        Value::Array(list) => list.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect(),
        _ => Vec::new(),
    };
    let whole = !texts.is_empty() && at.get_ref().as_array().is_none_or(|list| list.len() == texts.len());
    if whole { Ok(texts) } else { Err((at.span().start, Problem::At)) }
}

fn insert(matcher: &mut Matcher, pointer: &str, position: usize) -> Result<u16, At> {
    matcher
        .trie
        .insert(pointer)
        .map_err(|why| (position, Problem::Pointer { pointer: pointer.to_owned(), why }))
}

fn scalars(value: Option<&Value>, position: usize) -> Result<Vec<Scalar>, At> {
    let scalar = |value: &Value| match value {
        // Compared with the bytes of the JSON text, so as JSON writes it.
        Value::String(text) => {
            let json = serde_json::Value::from(text.as_str()).to_string();
            Ok(Scalar::Text(json.as_bytes()[1..json.len() - 1].to_vec()))
        }
        Value::Integer(number) => Ok(Scalar::Number(*number as f64)),
        Value::Float(number) => Ok(Scalar::Number(*number)),
        Value::Boolean(value) => Ok(Scalar::Bool(*value)),
        _ => Err((position, Problem::Value)),
    };
    match value {
        None => Ok(Vec::new()),
        Some(Value::Array(list)) => list.iter().map(scalar).collect(),
        Some(value) => Ok(vec![scalar(value)?]),
    }
}

fn conditions(
    matcher: &mut Matcher,
    map: &BTreeMap<String, Value>,
    pointer: &str,
    position: usize,
) -> Result<Vec<Condition>, At> {
    let mut conditions = Vec::new();
    for (other, value) in map {
        segments(other).map_err(|why| (position, Problem::Pointer { pointer: other.clone(), why }))?;
        conditions.push(Condition {
            slot: insert(matcher, other, position)?,
            shared: shared_stars(pointer, other),
            values: scalars(Some(value), position)?,
        });
    }
    Ok(conditions)
}
