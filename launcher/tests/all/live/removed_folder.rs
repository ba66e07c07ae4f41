//! The run's folder is removed while the run goes on.

use crate::common::{LONG, Launcher, Running, assert_exists};
use std::fs;

fn interrupt_and_print(running: Running) -> String {
    let result = running.interrupt();
    let printed = result.all_output();
    assert!(matches!(result.code, Some(1 | 130)) && !printed.contains("panicked"), "{result:?}");
    printed
}

#[test]
fn removed_run_folder_is_recreated_with_results() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let folder = launcher.folder();
    fs::remove_dir_all(&folder).unwrap();
    let printed = interrupt_and_print(running);
    for file in ["summary.json", "run.json", "config.yaml", "strategy-0.stamps"] {
        assert_exists(&folder.join(file));
    }
    let summary = launcher.newest_summary();
    assert_eq!(summary["valid"], true, "{printed}");
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains("was removed while the run went on"), "{reasons}");
}

#[test]
fn failure_to_recreate_run_folder_is_reported() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let folder = launcher.folder();
    // A file replaces the folder of all runs, so that not even root can create the run's folder.
    fs::remove_dir_all(launcher.out.path()).unwrap();
    fs::write(launcher.out.path(), "mine").unwrap();
    let printed = interrupt_and_print(running);
    let name = folder.display().to_string();
    assert!(printed.contains(&name) && printed.contains("cannot be made again"), "{printed}");
    assert_eq!(fs::read(launcher.out.path()).unwrap(), b"mine");
    fs::remove_file(launcher.out.path()).unwrap();
    fs::create_dir(launcher.out.path()).unwrap();
}
