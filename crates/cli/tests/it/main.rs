//! The built binary, driven as users drive it.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected fails")]

mod bad_input;
mod cases;
mod check;
mod dataset;
mod dialects;
mod faults;
mod find;
mod help;
mod home;
mod hostile;
mod limits;
mod load;
mod metrics;
mod plans;
mod prompts;
mod raw_server;
mod reach;
mod recordings;
mod report_as;
mod run;
mod scrape;
mod secrets;
mod sessions;
mod shapes;
mod signals;
mod sim;
mod trace;
