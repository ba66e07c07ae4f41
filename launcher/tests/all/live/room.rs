//! Too little room in `/dev/shm` or on the disk, on file systems of the test's own. Needs the right to mount in a namespace
//! of its own; says so loudly and passes where that is missing.

use crate::common::text;
use std::process::{Command, Output};

/// Runs a script in a mount namespace of its own, with `$L` as the launcher and `$OUT` as an empty folder; `None` where
/// that is not allowed.
fn in_namespace(script: &str) -> Option<Output> {
    let may = Command::new("unshare").args(["--mount", "true"]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no right to make a mount namespace here; run as root to test small file systems");
        return None;
    }
    let out = tempfile::tempdir().unwrap();
    let output = Command::new("unshare")
        .args(["--mount", "sh", "-c", script])
        .env("L", env!("CARGO_BIN_EXE_launcher"))
        .env("OUT", out.path())
        .output()
        .unwrap();
    Some(output)
}

#[test]
fn a_small_dev_shm_is_said_before_anything_starts() {
    let script = "mount -t tmpfs -o size=64m tmpfs /dev/shm && $L run --orders 1M --out $OUT; echo rc=$?; ls /dev/shm $OUT";
    let Some(output) = in_namespace(script) else { return };
    let stderr = text(&output.stderr);
    assert!(stderr.contains("/dev/shm") && stderr.contains("--shm-size"), "{stderr}");
    let stdout = text(&output.stdout);
    assert!(stdout.contains("rc=1") && !stdout.contains("bulkhead"), "nothing is left: {stdout}");
}

#[test]
fn a_dev_shm_that_fills_up_at_the_last_moment_is_an_error_too() {
    // The size says there is room; a limit on files' size does not.
    let script = "mount -t tmpfs -o size=64m tmpfs /dev/shm && ulimit -f 1000; trap '' XFSZ; \
                  $L run --orders 100k --out $OUT; echo rc=$?; ls /dev/shm";
    let Some(output) = in_namespace(script) else { return };
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(stdout.contains("rc=1") && !stdout.contains("bulkhead."), "{stdout}{stderr}");
    assert!(stderr.contains("bulkhead.") && stderr.contains("reserve"), "{stderr}");
}

#[test]
fn a_small_disk_is_said_before_anything_starts() {
    let script =
        "mount -t tmpfs -o size=1m tmpfs $OUT && $L run --orders 100k --out $OUT; echo rc=$?; ls $OUT";
    let Some(output) = in_namespace(script) else { return };
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    assert!(stderr.contains("--out") && stderr.contains("MiB"), "{stderr}");
    assert!(stdout.trim_end().ends_with("rc=1"), "no folder is left: {stdout}");
}
