//! `ttft dialects`: the list, one of them, and samples that hold or do not.

use std::path::Path;

use serde_json::Value;

use crate::home::Home;

fn carried() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dialects").to_str().unwrap().to_owned()
}

#[test]
fn all_are_listed_and_shown() {
    let home = Home::new();
    let list: Value = serde_json::from_str(&home.ttft("dialects --json").expect(0).out).unwrap();
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|dialect| dialect["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 21);
    let text = home.ttft("dialects").expect(0).out;
    for name in names {
        assert!(text.lines().any(|line| line.starts_with(name)), "{name}");
        let shown = home.ttft(&format!("dialects show {name}")).expect(0).out;
        assert!(shown.contains(&format!("name = \"{name}\"\n")), "{shown}");
    }
    let shown: Value =
        serde_json::from_str(&home.ttft("dialects show gemini-json --json").expect(0).out).unwrap();
    assert_eq!(shown["framing"], "json-array");
    assert!(shown["toml"].as_str().unwrap().contains("extends = \"gemini-sse\""));
    let unknown = home.ttft("dialects show gemini").expect(2);
    assert!(unknown.err.contains("gemini-sse"), "{unknown:?}");
}

#[test]
fn what_one_shows_is_a_dialect_again() {
    let home = Home::new();
    let shown = home.ttft("dialects show azure-openai-chat").expect(0).out;
    home.write("mine.toml", &shown.replace("azure-openai-chat", "mine"));
    let again: Value =
        serde_json::from_str(&home.ttft("dialects show mine.toml --json").expect(0).out).unwrap();
    assert_eq!((&again["name"], &again["framing"]), (&"mine".into(), &"sse".into()));
    home.write("x.toml", "name = \"x\"\ntitle = \"X\"\nextends = \"y\"\n");
    let refused = home.ttft("dialects show x.toml").expect(2);
    assert!(refused.err.contains("x.toml, line 3: there is no dialect `y` to extend"), "{refused:?}");
}

#[test]
fn samples_that_hold_and_one_that_does_not() {
    let home = Home::new();
    let tested = home.ttft_with("dialects test --json", &[&carried()]).expect(0);
    let tested: Value = serde_json::from_str(&tested.out).unwrap();
    assert_eq!(tested.as_array().unwrap().len(), 21);

    std::fs::create_dir_all(home.path("mine/samples")).unwrap();
    home.write("mine/dialect.toml", "name = \"mine\"\ntitle = \"M\"\nextends = \"ollama-chat\"\n");
    home.write("mine/samples/a.ndjson", "{\"message\":{\"content\":\"Hi\"},\"done\":true}\n");
    home.write("mine/samples/a.expect.json", "{\"must\": {\"text\": \"Hi\"}}");
    let held = home.ttft("dialects test mine").expect(0);
    assert_eq!(held.out, "mine: 1 samples hold\n");
    home.write("mine/samples/a.expect.json", "{\"must\": {\"text\": \"Ho\"}}");
    let failed = home.ttft("dialects test mine").expect(1);
    assert!(
        failed.out.contains("1 of 1 samples fail\n  a: `text` is \"Hi\", must be \"Ho\"\n"),
        "{failed:?}"
    );
    home.write("mine/samples/b.expect.json", "{\"must\": {}}");
    let alone = home.ttft("dialects test mine").expect(2);
    assert!(alone.err.contains("there is no recording of that name"), "{alone:?}");
    home.ttft("dialects test nowhere").expect(2);
}
