//! Files that end where no file should, or hold what none should.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use proptest::prelude::*;
use ttft_store::{Appended, Events, RequestReader, StoreError, names};

use crate::sample::{ZERO, create, plan, read_all, rebased, records, run};

/// A finished file of three batches, and where each message of it ends.
fn three_batches(root: &Path) -> (Vec<u8>, Vec<usize>) {
    let path = root.join(names::REQUESTS);
    let mut folder = create(root);
    let mut ends = vec![fs::metadata(&path).unwrap().len() as usize];
    for batch in 0..3 {
        assert_eq!(folder.append(&records(batch * 5..batch * 5 + 5)).unwrap(), Appended::Fine);
        assert_eq!(folder.flush().unwrap(), Appended::Fine);
        ends.push(fs::metadata(&path).unwrap().len() as usize);
    }
    folder.finish(&run(&plan())).unwrap();
    (fs::read(&path).unwrap(), ends)
}

#[test]
fn whole_batches_survive_a_cut_anywhere() {
    let root = tempfile::tempdir().unwrap();
    let (bytes, ends) = three_batches(root.path());
    let path = root.path().join(names::REQUESTS);
    let expected: Vec<_> = records(0..15).into_iter().map(|r| rebased(r, ZERO)).collect();
    for len in (ends[0]..bytes.len()).step_by(97).chain(ends.iter().flat_map(|end| [end - 1, *end, end + 1]))
    {
        fs::write(&path, &bytes[..len]).unwrap();
        let Some(whole) = ends.iter().rposition(|end| *end <= len) else {
            let told = RequestReader::open(&path, Events::Load).err().unwrap().to_string();
            assert!(told.ends_with("it ends before its schema"), "{told}");
            continue;
        };
        let (read, cut) = read_all(root.path());
        assert_eq!(read, expected[..whole * 5], "cut at {len}");
        assert_eq!(cut, (len - ends[whole]) as u64);
    }
}

#[test]
fn the_file_of_a_running_run_can_be_read() {
    let root = tempfile::tempdir().unwrap();
    let mut folder = create(root.path());
    assert_eq!(folder.append(&records(0..5)).unwrap(), Appended::Fine);
    assert_eq!(read_all(root.path()), (vec![], 0), "not flushed yet");
    assert_eq!(folder.flush().unwrap(), Appended::Fine);
    assert_eq!(read_all(root.path()).0.len(), 5);
}

/// This test runs itself once more as a child that writes until it is killed.
#[test]
fn a_killed_run_can_be_read() {
    const FOLDER: &str = "TTFT_TEST_KILLED";
    if let Some(root) = std::env::var_os(FOLDER) {
        let mut folder = create(root.as_ref());
        for batch in 0.. {
            assert_eq!(folder.append(&records(batch * 50..batch * 50 + 50)).unwrap(), Appended::Fine);
            assert_eq!(folder.flush().unwrap(), Appended::Fine);
            println!("batch {batch}");
        }
    }
    let root = tempfile::tempdir().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "cut::a_killed_run_can_be_read", "--nocapture"])
        .env(FOLDER, root.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap() == "batch 20"));
    child.kill().unwrap();
    child.wait().unwrap();

    let (read, _) = read_all(root.path());
    assert!(read.len() >= 21 * 50 && read.len() % 50 == 0, "{}", read.len());
    let expected = records(0..read.len() as u64).into_iter().map(|r| rebased(r, ZERO));
    assert!(read.into_iter().eq(expected));
}

#[test]
fn zeros_at_the_end_are_a_cut() {
    let root = tempfile::tempdir().unwrap();
    let (mut bytes, ends) = three_batches(root.path());
    bytes.truncate(ends[3]);
    bytes.extend([0; 100]);
    fs::write(root.path().join(names::REQUESTS), bytes).unwrap();
    let (read, cut) = read_all(root.path());
    assert_eq!((read.len(), cut), (15, 100));
}

#[test]
fn damage_in_the_middle_is_told_after_what_stands_before_it() {
    let root = tempfile::tempdir().unwrap();
    let (mut bytes, ends) = three_batches(root.path());
    bytes[ends[1]] = b'x';
    let path = root.path().join(names::REQUESTS);
    fs::write(&path, bytes).unwrap();
    let read: Vec<_> = RequestReader::open(&path, Events::Load).unwrap().collect();
    assert_eq!(read.len(), 6);
    match read.last() {
        Some(Err(StoreError::Damaged { at, .. })) => assert_eq!(*at, ends[1] as u64),
        other => panic!("{other:?}"),
    }
}

#[test]
fn other_files_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let (bytes, _) = three_batches(root.path());
    let replaced = |from: &str, to: &str| {
        let at = bytes.windows(from.len()).position(|window| window == from.as_bytes()).unwrap();
        [&bytes[..at], to.as_bytes(), &bytes[at + from.len()..]].concat()
    };
    let path = root.path().join("other");
    for (content, told) in [
        (vec![], "it ends before its schema"),
        (b"ARROW1\0\0 and so on".to_vec(), "it is no arrow stream"),
        (b"{\"id\": 1, \"more\": 2}".to_vec(), "it is no arrow stream"),
        (replaced("ttft.requests/1", "ttft.requests/9"), "use a newer ttft"),
        (replaced("ttft.requests/1", "some.thing/else"), "its schema is not `ttft.requests`"),
        (replaced("request_id", "request_no"), "column `request_id` is missing"),
    ] {
        fs::write(&path, content).unwrap();
        let error = RequestReader::open(&path, Events::Load).err().unwrap().to_string();
        assert!(error.ends_with(told), "{error}");
    }
    assert!(RequestReader::open(root.path(), Events::Load).is_err(), "a folder is no file");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// A flipped bit may change a value or be told as damage, and never takes the program down.
    #[test]
    fn a_flipped_bit_is_survived(place in any::<proptest::sample::Index>(), bit in 0..8_u32, skip in any::<bool>()) {
        static WHOLE: LazyLock<Vec<u8>> =
            LazyLock::new(|| three_batches(tempfile::tempdir().unwrap().path()).0);
        let root = tempfile::tempdir().unwrap();
        let mut bytes = WHOLE.clone();
        let place = place.index(bytes.len());
        bytes[place] ^= 1_u8 << bit;
        let path = root.path().join(names::REQUESTS);
        fs::write(&path, bytes).unwrap();
        let events = if skip { Events::Skip } else { Events::Load };
        if let Ok(reader) = RequestReader::open(&path, events) {
            prop_assert!(reader.count() <= 16);
        }
    }
}
