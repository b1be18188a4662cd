//! Where a run's files lie: the folder's name, and making it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::error::io_error;

/// File names inside a run folder.
pub mod names {
    /// The plan as run, secrets redacted.
    pub const PLAN: &str = "plan.toml";
    /// The run's own facts.
    pub const RUN: &str = "run.json";
    /// One row per attempt, an Arrow IPC stream.
    pub const REQUESTS: &str = "requests.arrow";
    /// Scrapes of engines and gateways, a line each.
    pub const SERVER: &str = "server.jsonl";
    /// Scrapes of accelerators, a line each.
    pub const GPU: &str = "gpu.jsonl";
    /// The judged result.
    pub const SUMMARY: &str = "summary.json";
    /// Room kept free for the end of a run on a full disk.
    pub const RESERVE: &str = ".reserve";
}

/// Where a new run folder goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place<'a> {
    /// A new folder under this one, named after the run's time and name.
    Under(&'a Path),
    /// Exactly this one, which must be new or empty.
    Exactly(&'a Path),
}

impl Place<'_> {
    /// Makes the folder.
    pub(crate) fn make(self, zero_unix_ns: i64, name: &str) -> Result<PathBuf, StoreError> {
        match self {
            Self::Under(root) => make_named(root, &folder_name(zero_unix_ns, name)),
            Self::Exactly(path) => make_empty(path),
        }
    }
}

/// Makes `root/name`, or `root/name-2` and so on if that exists.
fn make_named(root: &Path, name: &str) -> Result<PathBuf, StoreError> {
    fs::create_dir_all(root).map_err(io_error("make", root))?;
    let mut path = root.join(name);
    let mut number = 2;
    loop {
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                path = root.join(format!("{name}-{number}"));
                number += 1;
            }
            Err(e) => return Err(io_error("make", &path)(e)),
        }
    }
}

fn make_empty(path: &Path) -> Result<PathBuf, StoreError> {
    fs::create_dir_all(path).map_err(io_error("make", path))?;
    let mut files = fs::read_dir(path).map_err(io_error("list", path))?;
    match files.next() {
        None => Ok(path.to_owned()),
        Some(_) => Err(StoreError::NotEmpty { path: path.to_owned() }),
    }
}

/// `2026-11-30T16-20-05Z-name`; the name cut to letters, digits, dots, dashes and underscores.
pub fn folder_name(unix_ns: i64, name: &str) -> String {
    let seconds = unix_ns.div_euclid(1_000_000_000);
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil_from_days(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}Z-{}", sanitised(name))
}

/// Year, month and day of a count of days since 1970-01-01, after Howard Hinnant's `civil_from_days`: years
/// begin in March, so that the leap day is the last day of a year.
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// At most 48 characters that are safe in a file name on any system.
fn sanitised(name: &str) -> String {
    let mut safe = String::new();
    for c in name.chars().take(48) {
        let c = if c.is_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' };
        if c != '-' || !safe.ends_with('-') {
            safe.push(c);
        }
    }
    match safe.trim_matches(['-', '.']) {
        "" => "run".to_owned(),
        safe => safe.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_carry_time_and_a_safe_name() {
        for (seconds, name, folder) in [
            (0, "x", "1970-01-01T00-00-00Z-x"),
            (1_796_055_605, "sweep", "2026-11-30T16-20-05Z-sweep"),
            (951_782_400, "a/b\\..:c d", "2000-02-29T00-00-00Z-a-b-..-c-d"),
            (4_107_542_399, "../..", "2100-02-28T23-59-59Z-run"),
            (-1, "长 名", "1969-12-31T23-59-59Z-长-名"),
        ] {
            assert_eq!(folder_name(seconds * 1_000_000_000, name), folder);
        }
        assert!(folder_name(0, &"长".repeat(400)).len() < 255);
    }

    #[test]
    fn a_taken_name_gets_a_number() {
        let root = tempfile::tempdir().unwrap();
        let make = || Place::Under(&root.path().join("runs")).make(0, "x").unwrap();
        let names: Vec<_> = (0..3).map(|_| make().file_name().unwrap().to_owned()).collect();
        assert_eq!(names, ["1970-01-01T00-00-00Z-x", "1970-01-01T00-00-00Z-x-2", "1970-01-01T00-00-00Z-x-3"]);
    }

    #[test]
    fn a_given_folder_must_be_new_or_empty() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("deep/er");
        assert_eq!(Place::Exactly(&path).make(0, "x").unwrap(), path);
        assert_eq!(Place::Exactly(&path).make(0, "x").unwrap(), path, "an empty folder is fine");
        fs::write(path.join("a"), "").unwrap();
        let told = Place::Exactly(&path).make(0, "x").unwrap_err().to_string();
        assert!(told.contains("is not empty"), "{told}");
        assert!(Place::Exactly(&path.join("a")).make(0, "x").is_err(), "a file is no folder");
    }
}
