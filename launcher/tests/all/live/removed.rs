//! The run's folder is removed while the run goes on.

use crate::common::{LONG, Launcher, Running, assert_exists};
use std::fs;

fn interrupted(running: Running) -> String {
    let result = running.interrupt();
    let said = result.said();
    assert!(matches!(result.code, Some(1 | 130)) && !said.contains("panicked"), "{result:?}");
    said
}

#[test]
fn a_removed_folder_is_made_again_with_the_results() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let folder = launcher.folder();
    fs::remove_dir_all(&folder).unwrap();
    let said = interrupted(running);
    for file in ["summary.json", "run.json", "config.yaml", "strategy-0.stamps"] {
        assert_exists(&folder.join(file));
    }
    let summary = launcher.newest_summary();
    assert_eq!(summary["valid"], true, "{said}");
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains("was removed while the run went on"), "{reasons}");
}

#[test]
fn a_folder_that_cannot_be_made_again_is_said() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let folder = launcher.folder();
    // Somebody's file stands where the folder of all runs was, so that not even root can make one.
    fs::remove_dir_all(launcher.out.path()).unwrap();
    fs::write(launcher.out.path(), "mine").unwrap();
    let said = interrupted(running);
    let name = folder.display().to_string();
    assert!(said.contains(&name) && said.contains("cannot be made again"), "{said}");
    assert_eq!(fs::read(launcher.out.path()).unwrap(), b"mine");
    fs::remove_file(launcher.out.path()).unwrap();
    fs::create_dir(launcher.out.path()).unwrap();
}
