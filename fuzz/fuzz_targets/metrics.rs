//! Metrics pages: whatever parses can be read, alone and as a window with itself.

#![no_main]

use libfuzzer_sys::fuzz_target;
use ttft_sources::{Catalogue, Page};

fuzz_target!(|bytes: &[u8]| {
    let (Ok(page), Ok(catalogue)) = (Page::parse(bytes), Catalogue::builtin()) else { return };
    catalogue.read(&page);
    let window = catalogue.read_window(&page, &page, Some(1.0)).window;
    assert!(window.is_some_and(|window| !window.reset_detected), "a page is no restart of itself");
});
