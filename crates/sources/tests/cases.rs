//! Pages that broke other tools, and the samples of every engine: every value that has to come out, and none that must not.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use serde_json::Value;
use ttft_sources::{Catalogue, Page, differences};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

fn page(path: &Path) -> Page {
    Page::parse(&std::fs::read(path).unwrap()).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn read(pages: &[PathBuf]) -> Value {
    let catalogue = Catalogue::builtin().unwrap();
    let reading = match pages {
        [one] => catalogue.read(&page(one)),
        [before, after] => catalogue.read_window(&page(before), &page(after), None),
        other => panic!("{other:?}"),
    };
    serde_json::to_value(&reading).unwrap()
}

fn expectation(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// All pages that are at hand.
fn all_pages() -> Vec<Vec<u8>> {
    let folders = entries(&root().join("engines")).into_iter().map(|engine| engine.join("samples"));
    let files = folders.flat_map(|folder| entries(&folder));
    files
        .filter(|file| file.extension().is_some_and(|end| end == "prom"))
        .map(|file| std::fs::read(file).unwrap())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn damaged_pages_are_survived(
        pick in any::<prop::sample::Index>(),
        cut in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
    ) {
        let pages = all_pages();
        let whole = pick.get(&pages);
        let mut bytes = whole.clone();
        for (at, byte) in edits {
            *at.get_mut(&mut bytes) = byte;
        }
        bytes.truncate(cut.index(bytes.len()) + 1);
        if let Ok(page) = Page::parse(&bytes) {
            let catalogue = Catalogue::builtin().unwrap();
            let whole = Page::parse(whole).unwrap();
            serde_json::to_value(catalogue.read(&page)).unwrap();
            serde_json::to_value(catalogue.read_window(&whole, &page, Some(1.0))).unwrap();
            serde_json::to_value(catalogue.read_window(&page, &whole, None)).unwrap();
        }
    }
}

#[test]
fn cases() {
    let cases = entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cases"));
    assert!(cases.len() >= 4);
    for case in cases {
        let pages: Vec<_> =
            entries(&case).into_iter().filter(|path| !path.ends_with("expect.json")).collect();
        let found = differences(&read(&pages), &expectation(&case.join("expect.json")));
        assert!(found.is_empty(), "{}: {found:#?}", case.display());
    }
}

#[test]
fn samples_of_engines() {
    let catalogue = Catalogue::builtin().unwrap();
    let folders = entries(&root().join("engines"));
    let named: BTreeSet<_> =
        folders.iter().map(|f| f.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    let known: BTreeSet<_> = catalogue.engines().iter().map(|engine| engine.name.clone()).collect();
    assert_eq!(named, known);
    for folder in folders {
        let samples = folder.join("samples");
        let mut tested = 0;
        for expect in
            entries(&samples).iter().filter(|path| path.extension().is_some_and(|end| end == "json"))
        {
            let name = expect.file_name().unwrap().to_str().unwrap();
            let Some(name) = name.strip_suffix(".expect.json") else { continue };
            // Scrapes of one server are called `name.1.…`, `name.2.…`.
            let pages: Vec<_> = entries(&samples)
                .into_iter()
                .filter(|path| {
                    let file = path.file_name().unwrap().to_str().unwrap();
                    file.starts_with(&format!("{name}.")) && path != expect
                })
                .collect();
            let read = read(&pages);
            let found = differences(&read, &expectation(expect));
            assert!(found.is_empty(), "{}: {found:#?}\n{read:#}", expect.display());
            tested += 1;
        }
        assert!(tested > 0, "{} has no samples", folder.display());
    }
}
