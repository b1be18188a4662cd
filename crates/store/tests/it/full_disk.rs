//! A disk that takes no more, for real: the kernel refuses to let a file of this process grow.

use std::process::Command;

use ttft_store::{Appended, StoreError};

use crate::sample::{ZERO, create, plan, read_all, rebased, records, run};

/// Tells the child where to write, and that it is one.
const FOLDER: &str = "TTFT_TEST_FULL_DISK";

/// Runs this test once more under a file size limit of 5 to 10 MiB (shells count in blocks of 512 or 1024
/// bytes), with the signal ignored that would end it there.
#[test]
#[cfg(unix)]
fn a_file_that_cannot_grow_ends_at_a_whole_batch() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return fill(folder.as_ref());
    }
    let root = tempfile::tempdir().unwrap();
    let shell = "trap '' XFSZ; ulimit -f 10240; exec \"$0\" \"$@\"";
    let test = "full_disk::a_file_that_cannot_grow_ends_at_a_whole_batch";
    let child = Command::new("sh")
        .args(["-c", shell])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, root.path())
        .output()
        .unwrap();
    assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));
    assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"));
}

#[cfg(unix)]
fn fill(root: &std::path::Path) {
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
