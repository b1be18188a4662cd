//! The invariants that ARCHITECTURE.md names, each a test.

#![allow(clippy::unwrap_used, reason = "a test that cannot look fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Which of our crates each may depend on, directly, outside of tests.
const MAY_USE: &[(&str, &[&str])] = &[
    ("ttft-model", &[]),
    ("ttft-kernel", &["ttft-model"]),
    ("ttft-dialect", &["ttft-model"]),
    ("ttft-plan", &["ttft-model"]),
    ("ttft-sim", &["ttft-kernel", "ttft-model"]),
    ("ttft-wire", &["ttft-kernel", "ttft-model"]),
    ("ttft-drive", &["ttft-dialect", "ttft-kernel", "ttft-model", "ttft-plan", "ttft-wire"]),
    ("ttft-sources", &["ttft-model"]),
    ("ttft-store", &["ttft-model"]),
    ("ttft-judge", &["ttft-model", "ttft-sources"]),
    ("ttft-show", &["ttft-judge", "ttft-model"]),
];

/// Crates that must not reach an event loop or a socket, by any way.
const PURE: &[&str] =
    &["ttft-model", "ttft-dialect", "ttft-plan", "ttft-sources", "ttft-store", "ttft-judge", "ttft-show"];
const IMPURE: &[&str] = &["tokio", "mio", "hyper", "h2", "socket2", "rustls"];

/// Licences that go with MIT OR Apache-2.0.
const LICENCES: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "OpenSSL",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// This platform, as cargo names it.
fn host() -> String {
    let out = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned()
}

/// All packages that are built here, ours and others', as cargo sees them.
fn metadata() -> Value {
    let out = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host()])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

/// What each package is built from, by id: its normal and build dependencies, not those of its tests.
fn edges(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let nodes = metadata["resolve"]["nodes"].as_array().unwrap();
    nodes
        .iter()
        .map(|node| {
            let built_from = node["deps"].as_array().unwrap().iter().filter(|dep| {
                dep["dep_kinds"].as_array().unwrap().iter().any(|kind| kind["kind"].as_str() != Some("dev"))
            });
            (node["id"].as_str().unwrap(), built_from.map(|dep| dep["pkg"].as_str().unwrap()).collect())
        })
        .collect()
}

fn names(metadata: &Value) -> BTreeMap<&str, &str> {
    let packages = metadata["packages"].as_array().unwrap();
    packages.iter().map(|p| (p["id"].as_str().unwrap(), p["name"].as_str().unwrap())).collect()
}

fn id_of<'a>(names: &BTreeMap<&'a str, &'a str>, name: &str) -> &'a str {
    names.iter().find(|(_, known)| **known == name).unwrap_or_else(|| panic!("no package {name}")).0
}

/// Source files of our crates, without tests.
fn sources() -> Vec<(PathBuf, String)> {
    fn walk(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        walk(&entry.unwrap().path().join("src"), &mut found);
    }
    found
}

#[test]
fn crates_know_only_those_before_them() {
    let metadata = metadata();
    let (names, edges) = (names(&metadata), edges(&metadata));
    for (name, allowed) in MAY_USE {
        let used: BTreeSet<&str> = edges[id_of(&names, name)].iter().map(|id| names[id]).collect();
        let ours = used.into_iter().filter(|used| used.starts_with("ttft"));
        let wrong: Vec<&str> = ours.filter(|used| !allowed.contains(used)).collect();
        assert!(wrong.is_empty(), "{name} must not depend on {wrong:?}");
    }
    let known: BTreeSet<&str> =
        MAY_USE.iter().map(|(name, _)| *name).chain(["ttft-bench", "ttft-tidy"]).collect();
    let ours = names.values().copied().filter(|name| name.starts_with("ttft-"));
    let new: Vec<&str> = ours.filter(|name| !known.contains(name)).collect();
    assert!(new.is_empty(), "say in tidy what {new:?} may depend on");
}

#[test]
fn pure_crates_reach_no_socket() {
    let metadata = metadata();
    let (names, edges) = (names(&metadata), edges(&metadata));
    for name in PURE {
        let mut reached = BTreeSet::new();
        let mut left = vec![id_of(&names, name)];
        while let Some(id) = left.pop() {
            if reached.insert(id) {
                left.extend(&edges[id]);
            }
        }
        let impure: Vec<&str> =
            reached.iter().map(|id| names[id]).filter(|name| IMPURE.contains(name)).collect();
        assert!(impure.is_empty(), "{name} reaches {impure:?}");
    }
}

#[test]
fn licences_are_compatible() {
    let metadata = metadata();
    for package in metadata["packages"].as_array().unwrap() {
        let licence = package["license"].as_str().unwrap_or("none");
        let choices = licence.replace(['(', ')'], "").replace('/', " OR ");
        // Any choice of an OR will do; all parts of an AND have to.
        let fits = |choice: &str| choice.split(" AND ").all(|part| LICENCES.contains(&part.trim()));
        assert!(choices.split(" OR ").any(fits), "{}: {licence}", package["name"]);
    }
}

#[test]
fn unsafe_code_and_clocks_are_the_kernel_crates() {
    for (path, text) in sources() {
        let shown = path.strip_prefix(root()).unwrap().display().to_string();
        if shown.starts_with("crates/kernel/") {
            continue;
        }
        if path.ends_with("src/lib.rs") || path.ends_with("src/main.rs") {
            assert!(text.contains("#![forbid(unsafe_code)]"), "{shown} must forbid unsafe code");
        }
        for clock in ["Instant::now", "SystemTime::now", "clock_gettime"] {
            assert!(!text.contains(clock), "{shown} reads a clock: {clock}");
        }
    }
}

#[test]
fn files_say_what_they_are_for_and_stay_small() {
    for (path, text) in sources() {
        let shown = path.strip_prefix(root()).unwrap().display().to_string();
        let first = text.lines().next().unwrap_or_default();
        let spoken = first.starts_with("//!") || first.starts_with("// ") || first.starts_with("/*!");
        assert!(spoken, "{shown}: the first line says what the file is for");
        let lines = text.lines().count();
        assert!(lines <= 600, "{shown} has {lines} lines: split it");
        for left in ["todo!(", "unimplemented!(", "dbg!("] {
            assert!(!text.contains(left), "{shown} holds {left}…)");
        }
    }
}
