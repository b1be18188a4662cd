//! Disks that take no more, for real. Each test runs itself once more as a child that has such a disk.

use std::path::Path;
use std::process::Command;

use ttft_store::{Appended, StoreError};

use crate::sample::{ZERO, create, plan, read_all, rebased, records, run};

/// Tells the child where to write, and that it is one.
const FOLDER: &str = "TTFT_TEST_FULL_DISK";

/// Runs that test alone, behind a few words of shell that end with `exec "$0" "$@"`.
fn run_child(command: &str, before: &str, test: &str, folder: &Path) {
    let child = Command::new("sh")
        .arg("-c")
        .arg(format!("{before}; exec {command} \"$0\" \"$@\""))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder)
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"));
}

/// The kernel refuses to let a file grow beyond 5 or 10 MiB (shells count in blocks of 512 or 1024 bytes). The
/// reserve is of no help, and the signal that would end the process is ignored.
#[test]
fn a_file_that_cannot_grow_ends_at_a_whole_batch() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return fill_file(folder.as_ref());
    }
    let root = tempfile::tempdir().unwrap();
    let test = "full_disk::a_file_that_cannot_grow_ends_at_a_whole_batch";
    run_child("", "trap '' XFSZ; ulimit -f 10240", test, root.path());
}

fn fill_file(root: &Path) {
    let mut folder = create(root);
    let mut appended = 0;
    let mut held = 0;
    for round in 0..40 {
        assert_ne!(folder.append(&records(appended..appended + 1000)).unwrap(), Appended::LowSpace);
        appended += 1000;
        match folder.flush().unwrap() {
            Appended::Held { rows, .. } if held == 0 => {
                assert!(round > 0, "the first batch fits");
                assert_eq!(rows, 1000);
                held = rows;
            }
            Appended::Held { rows, .. } => {
                held += 1000;
                assert_eq!(rows, held);
            }
            state => assert_eq!((state, held), (Appended::Fine, 0)),
        }
    }
    assert!(held > 0, "the limit was reached");

    match folder.finish(&run(&plan())) {
        Err(StoreError::NotKept { rows, path, .. }) => {
            assert_eq!(rows, held);
            assert!(path.starts_with(root));
        }
        other => panic!("{other:?}"),
    }
    let kept = appended - held;
    let (read, cut) = read_all(root);
    assert_eq!((read.len() as u64, cut), (kept, 0));
    assert!(read.into_iter().eq(records(0..kept).into_iter().map(|r| rebased(r, ZERO))));
}

/// A file system of 8 MiB, where the system lets a user mount one in a namespace of its own; elsewhere there is
/// nothing to test on.
#[test]
#[cfg(target_os = "linux")]
fn a_run_on_a_full_disk_ends_with_all_its_results() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return fill_disk(folder.as_ref());
    }
    let root = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o size=8m none '{}'", root.path().display());
    let can = Command::new("unshare").args(["-rm", "sh", "-c", &mount]).output();
    if can.is_ok_and(|output| output.status.success()) {
        let test = "full_disk::a_run_on_a_full_disk_ends_with_all_its_results";
        let inside = format!("{mount} && exec \"$0\" \"$@\"");
        run_child(&format!("unshare -rm sh -c '{}'", inside.replace('\'', "'\\''")), ":", test, root.path());
    }
}

#[cfg(target_os = "linux")]
fn fill_disk(root: &Path) {
    let root = &root.join("run");
    let mut folder = create(root);
    let mut appended = 0;
    loop {
        assert_eq!(folder.append(&records(appended..appended + 500)).unwrap().stop_reason(), None);
        appended += 500;
        match folder.flush().unwrap() {
            Appended::Fine => assert!(appended < 10_000, "the disk is full by then"),
            state => break assert_eq!(state, Appended::LowSpace),
        }
    }
    // What was under way when the driver heard of it.
    assert_eq!(folder.append(&records(appended..appended + 500)).unwrap(), Appended::LowSpace);
    appended += 500;

    let mut run = run(&plan());
    run.stopped_by = Some("the disk is full".to_owned());
    let finished = folder.finish(&run).unwrap();
    assert_eq!((finished.rows, finished.low_space), (appended, true));
    assert_eq!(ttft_store::read_run(root).unwrap().run, run);
    let expected = records(0..appended).into_iter().map(|r| rebased(r, ZERO));
    assert!(read_all(root).0.into_iter().eq(expected));
}
