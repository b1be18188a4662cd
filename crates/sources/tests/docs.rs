//! What the documentation shows is what works.

#![allow(clippy::unwrap_used)]

use ttft_sources::{Catalogue, Engine, Page, names};

const DOCS: &str = include_str!("../../../docs/engines.md");

#[test]
fn the_example_is_an_engine() {
    let example = DOCS.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    let engine = Engine::parse("docs/engines.md", example).unwrap();
    let catalogue = Catalogue::builtin().unwrap().with(engine);
    let page =
        Page::parse(b"my_first_token_ms_sum 500\nmy_first_token_ms_count 10\nmy_cache_percent 40\n").unwrap();
    let reading = catalogue.read(&page);
    assert_eq!(reading.engine.as_deref(), Some("mine"));
    assert_eq!(reading.values["ttft"].distribution().unwrap().mean, Some(0.05));
    assert_eq!(reading.values["kv_cache_usage_ratio"].number(), Some(0.4));
}

#[test]
fn all_names_and_engines_are_in_the_documentation() {
    for (name, _) in names() {
        let ending = name.strip_prefix("prefix_cache_hit_ratio_").unwrap_or(name);
        assert!(DOCS.contains(name) || DOCS.contains(&format!("…_{ending}")), "{name}");
    }
    for engine in Catalogue::builtin().unwrap().engines() {
        assert!(DOCS.contains(&format!("`{}`", engine.name)), "{}", engine.name);
    }
}
