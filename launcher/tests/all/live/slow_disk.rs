//! Journals on a slow disk: a role that waits in `fdatasync` for longer than its deadline does not
//! hang, and one that really hangs is found all the same.

use crate::common::{Launcher, Running, document, in_place, list, signal, skip, text, wait_until};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A deadline that a busy machine does not exceed, and that the slow sync exceeds by far.
const RUN: &str = "--isolation process --on-death restart --venue book --exchange process --venues 1 \
                   --strategies 1 --journal each --liveness 1s --orders 60k --window 60s --idle park";

/// Builds the library that makes one sync slow. `None`, with a message: no compiler here.
fn slow_sync(folder: &TempDir) -> Option<PathBuf> {
    let library = folder.path().join("slow_sync.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/live/slow_sync.c");
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library).arg(source);
    let Ok(output) = cc.arg("-ldl").output() else {
        skip("there is no compiler cc");
        return None;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(library)
}

#[test]
fn slow_sync_pauses_deadline_and_stopped_engine_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let Some(library) = slow_sync(&folder) else { return };
    let request = folder.path().join("request");
    let launcher = Launcher::new();
    let mut run = launcher.run(RUN);
    let running = Running::spawn(run.env("LD_PRELOAD", library).env("SLOW_SYNC", &request));
    wait_until("the run has begun", || launcher.has_begun());
    let pid = running.pid();
    let place = |role: &str, killed: &[u32]| {
        let mut found = None;
        wait_until("the role is there", || {
            found = in_place(pid, role, killed);
            found.is_some()
        });
        found.unwrap()
    };
    let engine = place("engine", &[]);
    std::fs::write(&request, "").unwrap();
    wait_until("a sync has become slow", || !request.exists());
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(in_place(pid, "engine", &[]), Some(engine), "it waited for its disk, and goes on");
    signal(engine, "STOP");
    place("engine", &[engine]);
    let result = running.interrupt().fails(130, &["for the disk of its journal"]);
    let record = document(&launcher.folder(), "run.json");
    let deaths = list(&record["comebacks"]);
    assert_eq!(deaths.len(), 1, "only the one that was stopped: {deaths:#?}, {}", result.said());
    assert!(deaths[0]["cause"].as_str().unwrap().contains("hangs"), "{deaths:#?}");
    let warnings = record["warnings"].to_string();
    assert!(warnings.contains("waited for the disk of its journal once"), "{warnings}");
}
