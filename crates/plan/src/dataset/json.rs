//! JSON records of every known shape as rows.

use serde_json::{Map, Value, json};
use ttft_model::Lengths;

use super::format::{INPUT, OUTPUT, PROMPT};
use super::rows::Part;
use super::{Instant, Row, clock};

/// One prompt of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// One user message.
    Text(String),
    /// A conversation as `OpenAI` messages.
    Messages(Value),
    /// The asking side of a conversation: for each turn its messages, without the answers.
    Turns(Vec<Vec<Value>>),
}

/// A JSON record as a row.
pub(super) fn row(line: u64, record: Value, part: Part) -> Result<Row, String> {
    let Value::Object(mut map) = record else {
        return Err("it is no JSON object".to_owned());
    };
    // Batch files and recorded requests keep the request in `body`, as an object or as a text.
    match map.remove("body") {
        Some(Value::Object(body)) => map.extend(body),
        Some(Value::String(body)) => match serde_json::from_str(&body) {
            Ok(Value::Object(body)) => map.extend(body),
            _ => return Err("`body` is no JSON object".to_owned()),
        },
        Some(_) => return Err("`body` is no JSON object".to_owned()),
        None => {}
    }
    let mut row = Row {
        time: instant(&map)?,
        delay_ms: number(&map, "delay")?,
        input_tokens: tokens(&map, &INPUT)?,
        output_tokens: tokens(&map, &OUTPUT)?,
        blocks: blocks(&map)?,
        session: name(&map, &["session_id", "chat_id"]),
        id: name(&map, &["id", "request_id", "custom_id"]),
        ..Row::at(line)
    };
    if let Some(turns) = take(&mut map, &["conversations", "conversation"]) {
        sharegpt(&mut row, turns, part)?;
    } else if let Some(messages) = map.remove("messages") {
        conversation(&mut row, messages, part)?;
    } else if let Some(turns) = map.remove("turns") {
        spoken(&mut row, &turns, part)?;
    } else if let Some(prompt) = take(&mut map, &PROMPT) {
        match prompt {
            Value::Array(list) if list.first().is_some_and(|first| first["role"].is_string()) => {
                conversation(&mut row, Value::Array(list), part)?;
            }
            prompt => row.item = Some(Item::Text(text_of(prompt)?)),
        }
        row.turns = Some(1);
    }
    if row.item.is_none() && row.input_tokens.is_none() && row.turns.is_none() {
        return Err(
            "neither a prompt (`prompt`, `messages`, `conversations`, `text`) nor the length of one \
                    (`input_length`)"
                .to_owned(),
        );
    }
    Ok(row)
}

fn take(map: &mut Map<String, Value>, names: &[&str]) -> Option<Value> {
    names.iter().find_map(|name| map.remove(*name)).filter(|value| !value.is_null())
}

/// A text, or the first text of a list.
fn text_of(value: Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text),
        Value::Array(mut list) if !list.is_empty() => match list.swap_remove(0) {
            Value::String(text) => Ok(text),
            Value::Object(mut named) => text_of(take(&mut named, &["contents"]).unwrap_or_default()),
            _ => Err("its prompt is a list of no texts".to_owned()),
        },
        _ => Err("its prompt is no text".to_owned()),
    }
}

/// What people and the assistant said; the first thing that a person said is the prompt.
fn sharegpt(row: &mut Row, turns: Value, part: Part) -> Result<(), String> {
    let Value::Array(turns) = turns else {
        return Err("`conversations` is no list".to_owned());
    };
    let from = |turn: &Value| {
        let by = turn["from"].as_str().or_else(|| turn["role"].as_str()).unwrap_or_default();
        by.to_ascii_lowercase()
    };
    row.turns = Some(turns.len() as u32);
    row.begins_with_answer =
        turns.first().is_some_and(|turn| matches!(from(turn).as_str(), "gpt" | "assistant"));
    let said = |turn: &mut Value| {
        let said = ["value", "content", "text"].iter().find_map(|name| turn.get_mut(*name).map(Value::take));
        match said {
            Some(Value::String(text)) => Ok(text),
            _ => Err("a turn has no text in `value`".to_owned()),
        }
    };
    if part == Part::Whole {
        let mut messages = Vec::with_capacity(turns.len());
        for mut turn in turns {
            let role = match from(&turn).as_str() {
                "gpt" | "assistant" | "chatgpt" | "bing" | "bard" => "assistant",
                "system" => "system",
                _ => "user",
            };
            messages.push(json!({"role": role, "content": said(&mut turn)?}));
        }
        row.item = asked_turns(messages);
        return Ok(());
    }
    let asked = turns.into_iter().find(|turn| matches!(from(turn).as_str(), "human" | "user"));
    if let Some(mut asked) = asked {
        row.item = Some(Item::Text(said(&mut asked)?));
    }
    Ok(())
}

/// The turns of a conversation: what is said up to each answer. What the system alone says belongs to the turn behind
/// it, and what begins with an answer begins behind it; `None` when nobody asks.
fn asked_turns(messages: Vec<Value>) -> Option<Item> {
    let mut turns = Vec::new();
    let mut turn: Vec<Value> = Vec::new();
    let is_asked = |turn: &[Value]| turn.iter().any(|message| message["role"] != "system");
    for message in messages {
        if message["role"] != "assistant" {
            turn.push(message);
        } else if is_asked(&turn) {
            turns.push(std::mem::take(&mut turn));
        }
    }
    if is_asked(&turn) {
        turns.push(turn);
    }
    (!turns.is_empty()).then_some(Item::Turns(turns))
}

/// A list of messages, sent as it is without the answers at its end.
fn conversation(row: &mut Row, messages: Value, part: Part) -> Result<(), String> {
    let Value::Array(mut messages) = messages else {
        return Err("`messages` is no list".to_owned());
    };
    if let Some(odd) = messages.iter().position(|message| !message["role"].is_string()) {
        return Err(format!("message {} has no `role`", odd + 1));
    }
    let is_content =
        |message: &Value| matches!(message["content"], Value::Null | Value::String(_) | Value::Array(_));
    if let Some(odd) = messages.iter().position(|message| !is_content(message)) {
        return Err(format!("the `content` of message {} is neither a text nor a list of parts", odd + 1));
    }
    row.turns = Some(messages.len() as u32);
    row.begins_with_answer = messages.first().is_some_and(|message| message["role"] == "assistant");
    if part == Part::Whole {
        row.item = asked_turns(messages);
        return Ok(());
    }
    while messages.last().is_some_and(|message| message["role"] == "assistant") {
        messages.pop();
    }
    if !messages.is_empty() {
        row.item = Some(Item::Messages(Value::Array(messages)));
    }
    Ok(())
}

/// `AIPerf`'s turns: the user's side of a conversation; its first is the prompt.
fn spoken(row: &mut Row, turns: &Value, part: Part) -> Result<(), String> {
    let Value::Array(turns) = turns else {
        return Err("`turns` is no list".to_owned());
    };
    row.turns = Some(turns.len() as u32);
    let mut texts = Vec::new();
    for turn in turns.iter().take(if part == Part::Whole { turns.len() } else { 1 }) {
        let Value::Object(turn) = turn else {
            return Err("a turn is no JSON object".to_owned());
        };
        let mut turn = turn.clone();
        row.time = row.time.or(instant(&turn)?);
        texts.extend(take(&mut turn, &PROMPT).map(text_of).transpose()?);
    }
    row.item = match part {
        Part::First => texts.pop().map(Item::Text),
        Part::Whole if texts.is_empty() => None,
        Part::Whole => {
            let turn = |text| vec![json!({"role": "user", "content": text})];
            Some(Item::Turns(texts.into_iter().map(turn).collect()))
        }
    };
    Ok(())
}

fn instant(map: &Map<String, Value>) -> Result<Option<Instant>, String> {
    match map.get("timestamp") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(number)) => {
            let value = number.as_i64().map(|whole| i128::from(whole) * 1_000_000_000);
            let value = value.or_else(|| number.as_f64().and_then(clock::of_float));
            value
                .map(|value| Some(Instant::Number(value)))
                .ok_or_else(|| format!("timestamp {number} is too large"))
        }
        Some(Value::String(text)) => clock::calendar(text)
            .map(Instant::Calendar)
            .or_else(|| clock::billionths(text).map(Instant::Number))
            .map(Some)
            .ok_or_else(|| format!("timestamp `{}` is neither a number nor a date", short(text))),
        Some(_) => Err("`timestamp` is neither a number nor a date".to_owned()),
    }
}

fn number(map: &Map<String, Value>, name: &str) -> Result<Option<f64>, String> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => value.as_f64().map(Some).ok_or_else(|| format!("`{name}` is no number")),
    }
}

/// The first of these fields that is there, as a number of tokens.
fn tokens(map: &Map<String, Value>, names: &[&str]) -> Result<Option<u32>, String> {
    let Some((name, value)) = names.iter().find_map(|name| Some((name, map.get(*name)?))) else {
        return Ok(None);
    };
    if value.is_null() {
        return Ok(None);
    }
    let most = f64::from(Lengths::LONGEST);
    let whole = value.as_f64().filter(|count| *count >= 0.0 && count.fract() == 0.0 && *count <= most);
    whole
        .map(|count| Some(count as u32))
        .ok_or_else(|| format!("`{name}` is {}, which is no number of tokens", short(&value.to_string())))
}

fn blocks(map: &Map<String, Value>) -> Result<Vec<u64>, String> {
    match map.get("hash_ids") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(list)) => list
            .iter()
            .map(|id| id.as_u64().or_else(|| id.as_i64().map(i64::cast_unsigned)))
            .collect::<Option<_>>()
            .ok_or_else(|| "`hash_ids` holds what is no whole number".to_owned()),
        Some(_) => Err("`hash_ids` is no list".to_owned()),
    }
}

/// A name, or a number that serves as one.
fn name(map: &Map<String, Value>, names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| match map.get(*name)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

fn short(text: &str) -> String {
    text.chars().take(40).collect()
}

impl Item {
    /// Its text alone: what is said in it, without roles.
    pub(super) fn words_and_chars(&self) -> (u64, u64) {
        fn count(text: &str) -> (u64, u64) {
            (text.split_whitespace().count() as u64, text.chars().count() as u64)
        }
        fn sum<'a>(messages: impl Iterator<Item = &'a Value>) -> (u64, u64) {
            let texts = messages.flat_map(|message| match &message["content"] {
                Value::String(text) => vec![count(text)],
                Value::Array(parts) => {
                    parts.iter().filter_map(|part| part["text"].as_str()).map(count).collect()
                }
                _ => Vec::new(),
            });
            texts.fold((0, 0), |(words, chars), (w, c)| (words + w, chars + c))
        }
        match self {
            Self::Text(text) => count(text),
            Self::Messages(messages) => sum(messages.as_array().into_iter().flatten()),
            Self::Turns(turns) => sum(turns.iter().flatten()),
        }
    }

    /// Whether there is nothing to say in it.
    pub(super) fn is_blank(&self) -> bool {
        *self == Self::Messages(json!([])) || self.words_and_chars().0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Row {
        row(1, serde_json::from_str(text).unwrap(), Part::First).unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn the_turns_of_conversations() {
        let turns = |text: &str| match row(1, serde_json::from_str(text).unwrap(), Part::Whole).unwrap().item
        {
            Some(Item::Turns(turns)) => {
                let said = |turn: &Vec<Value>| {
                    turn.iter().filter_map(|m| m["content"].as_str()).collect::<Vec<_>>().join("+")
                };
                turns.iter().map(said).collect::<Vec<_>>()
            }
            None => Vec::new(),
            other => panic!("{other:?}"),
        };
        let gpt = r#"{"conversations": [{"from": "gpt", "value": "z"}, {"from": "system", "value": "s"},
            {"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}, {"from": "human", "value": "c"},
            {"from": "human", "value": "d"}, {"from": "gpt", "value": "e"}]}"#;
        assert_eq!(turns(gpt), ["s+a", "c+d"]);
        let messages = r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]}"#;
        assert_eq!(turns(messages), ["s+a", "c"]);
        assert_eq!(turns(r#"{"turns": [{"text": "a"}, {"text": "b"}]}"#), ["a", "b"]);
        for nobody in [
            r#"{"conversations": []}"#,
            r#"{"conversations": [{"from": "gpt", "value": "z"}]}"#,
            r#"{"messages": [{"role": "system", "content": "s"}]}"#,
            r#"{"turns": []}"#,
        ] {
            assert_eq!(turns(nobody), [""; 0], "{nobody}");
        }
    }

    fn text(row: &Row) -> &str {
        match &row.item {
            Some(Item::Text(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_shapes_of_every_tool() {
        let mooncake =
            of(r#"{"timestamp": 3000, "input_length": 1030, "output_length": 5, "hash_ids": [1, 2, 3]}"#);
        assert_eq!((mooncake.input_tokens, mooncake.output_tokens), (Some(1030), Some(5)));
        assert_eq!((mooncake.time, mooncake.blocks.len()), (Some(Instant::Number(3_000_000_000_000)), 3));

        let vllm = of(r#"{"prompt": "hi", "output_tokens": 7}"#);
        assert_eq!((text(&vllm), vllm.output_tokens), ("hi", Some(7)));
        let guidellm = of(r#"{"prompt": "hi", "output_tokens_count": 7, "prompt_tokens_count": 1.0}"#);
        assert_eq!((guidellm.input_tokens, guidellm.output_tokens), (Some(1), Some(7)));
        assert_eq!(text(&of(r#"{"text_input": "hi", "session_id": "a", "delay": 5}"#)), "hi");
        assert_eq!(text(&of(r#"{"texts": ["one", "two"]}"#)), "one");
        assert_eq!(text(&of(r#"{"texts": [{"name": "q", "contents": ["one"]}]}"#)), "one");
        let turns = of(r#"{"session_id": "a", "turns": [{"text": "one"}, {"text": "two", "delay": 5}]}"#);
        assert_eq!((text(&turns), turns.turns), ("one", Some(2)));

        let gpt = of(
            r#"{"id": "x_0", "conversations": [{"from": "gpt", "value": "a"}, {"from": "human", "value": "b"}]}"#,
        );
        assert_eq!((text(&gpt), gpt.turns, gpt.begins_with_answer), ("b", Some(2), true));
        let empty = of(r#"{"id": "x_0", "conversations": []}"#);
        assert_eq!((empty.item, empty.turns), (None, Some(0)));

        let messages = r#"[{"role":"system","content":"s"},{"role":"user","content":"u"}]"#;
        let answered = r#"[{"role":"system","content":"s"},{"role":"user","content":"u"},{"role":"assistant","content":"a"}]"#;
        let expect = Some(Item::Messages(serde_json::from_str(messages).unwrap()));
        for record in [
            format!(r#"{{"messages": {messages}}}"#),
            format!(r#"{{"messages": {answered}}}"#),
            format!(r#"{{"custom_id": "1", "body": {{"messages": {messages}}}}}"#),
            format!(r#"{{"prompt": {messages}}}"#),
            format!(r#"{{"body": {:?}}}"#, format!(r#"{{"messages": {messages}}}"#)),
        ] {
            assert_eq!(of(&record).item, expect, "{record}");
        }
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, part) in [
            ("3", "no JSON object"),
            ("{}", "neither a prompt"),
            (r#"{"input_length": "512"}"#, "`input_length` is \"512\""),
            (r#"{"input_length": -1}"#, "no number of tokens"),
            (r#"{"input_length": 1.5}"#, "no number of tokens"),
            (r#"{"input_length": 1, "hash_ids": ["a"]}"#, "`hash_ids`"),
            (r#"{"input_length": 1, "timestamp": "soon"}"#, "neither a number nor a date"),
            (r#"{"messages": [{"content": "x"}]}"#, "message 1 has no `role`"),
            (r#"{"messages": [{"role": "user", "content": 5}]}"#, "`content` of message 1"),
            (r#"{"conversations": "x"}"#, "no list"),
            (r#"{"prompt": 5}"#, "no text"),
        ] {
            let why = row(1, serde_json::from_str(text).unwrap(), Part::First).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
