//! Journals on a slow disk: a role that waits in `fdatasync` for longer than its deadline is not
//! taken for hung, and one that really hangs is still detected.

use crate::common::{Launcher, Running, document, list, serving_process, signal, skip, text, wait_until};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A deadline that a busy machine does not exceed, and that the slow sync exceeds by far.
const RUN: &str = "--isolation process --on-death restart --venue book --exchange process --venues 1 \
                   --strategies 1 --journal each --liveness 1s --orders 12k --window 60s --idle park";

/// Builds the library that makes one sync slow. Returns `None`, with a message, without a compiler.
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
    let wait_for_role = |role: &str, killed: &[u32]| {
        let mut serving = None;
        wait_until("the role is serving", || {
            serving = serving_process(pid, role, killed);
            serving.is_some()
        });
        serving.unwrap()
    };
    let engine = wait_for_role("engine", &[]);
    std::fs::write(&request, "").unwrap();
    wait_until("a sync has become slow", || !request.exists());
    std::thread::sleep(std::time::Duration::from_secs(5));
    assert_eq!(
        serving_process(pid, "engine", &[]),
        Some(engine),
        "the engine waited for its disk and continues"
    );
    signal(engine, "STOP");
    wait_for_role("engine", &[engine]);
    let result = running.interrupt().fails(130, &["for the disk of its journal"]);
    let record = document(&launcher.folder(), "run.json");
    let deaths = list(&record["comebacks"]);
    assert_eq!(
        deaths.len(),
        1,
        "only the stopped engine was restarted: {deaths:#?}, {}",
        result.all_output()
    );
    assert!(deaths[0]["cause"].as_str().unwrap().contains("hangs"), "{deaths:#?}");
    let warnings = record["warnings"].to_string();
    assert!(warnings.contains("waited for the disk of its journal once"), "{warnings}");
}
