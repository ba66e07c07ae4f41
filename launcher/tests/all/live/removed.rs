//! The run's folder is removed while the run goes on.

use crate::common::{LONG, Launcher, Running, assert_nothing_left, signal};
use std::fs;

fn interrupted(running: Running) -> (String, String) {
    let pid = running.pid();
    signal(pid, "INT");
    let (code, stdout, stderr) = running.end();
    assert!(matches!(code, Some(1 | 130)), "{code:?} {stdout}{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    assert_nothing_left(pid);
    (stdout, stderr)
}

#[test]
fn a_removed_folder_is_made_again_with_the_results() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let folder = launcher.folders().remove(0);
    fs::remove_dir_all(&folder).unwrap();
    let (stdout, stderr) = interrupted(running);
    assert!(folder.join("summary.json").exists(), "{stdout}{stderr}");
    let summary = launcher.newest_summary();
    assert_eq!(summary["valid"], true, "{stdout}{stderr}");
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains("was removed while the run went on"), "{reasons}");
    for file in ["run.json", "config.yaml", "strategy-0.stamps"] {
        assert!(folder.join(file).exists(), "{file}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_again_is_said() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let folder = launcher.folders().remove(0);
    // Somebody's file stands where the folder of all runs was, so that not even root can make one.
    fs::remove_dir_all(launcher.out.path()).unwrap();
    fs::write(launcher.out.path(), "mine").unwrap();
    let (stdout, stderr) = interrupted(running);
    let name = folder.display().to_string();
    assert!(stderr.contains(&name) && stderr.contains("cannot be made again"), "{stdout}{stderr}");
    assert_eq!(fs::read(launcher.out.path()).unwrap(), b"mine");
    fs::remove_file(launcher.out.path()).unwrap();
    fs::create_dir(launcher.out.path()).unwrap();
}
