//! Folders without write permission: a run that needs one is refused, or ends, with the folder's
//! name and the reason, and leaves nothing.

use super::journal_recovery::{MANY_SEGMENTS, SEGMENT_AFTER_FIRST};
use crate::common::{Launcher, RECOVERABLE, Running, output_of, signal, skip, wait_for};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Returns the run's command without these capabilities, which only root has. `None`, with a
/// message, if root cannot drop them.
pub fn without_capabilities(capabilities: &[&str], run: &Command) -> Option<Command> {
    let mut command = Command::new(run.get_program());
    if nix::unistd::geteuid().is_root() {
        let dropped: Vec<String> = capabilities.iter().map(|name| format!("-{name}")).collect();
        let dropped = dropped.join(",");
        let flags = [format!("--bounding-set={dropped}"), format!("--inh-caps={dropped}"), "--".into()];
        let tried = Command::new("setpriv").args(&flags).arg("true").output();
        if !tried.is_ok_and(|output| output.status.success()) {
            skip("setpriv cannot give up a capability here");
            return None;
        }
        command = Command::new("setpriv");
        command.args(flags).arg(run.get_program());
    }
    command.args(run.get_args()).stdin(Stdio::null());
    Some(command)
}

/// Returns the command of a run that is subject to file permissions, without root's override.
fn command_without_override(launcher: &Launcher, flags: &str) -> Option<Command> {
    without_capabilities(
        &["dac_override", "dac_read_search"],
        &launcher.run(&format!("{RECOVERABLE} {flags}")),
    )
}

fn set_mode(folder: &Path, mode: u32) {
    std::fs::set_permissions(folder, PermissionsExt::from_mode(mode)).unwrap();
}

/// The engine is killed after its journal has become read-only: a successor needs a new segment.
#[test]
fn unwritable_journal_ends_run_with_reason() {
    let launcher = Launcher::new();
    let Some(mut command) = command_without_override(&launcher, MANY_SEGMENTS) else { return };
    let running = Running::spawn(&mut command);
    let folder = || launcher.folders().first().map(|run| run.join("journal-engine"));
    let folder = wait_for("the first segment is full", || {
        folder().filter(|folder| folder.join(SEGMENT_AFTER_FIRST).exists())
    });
    set_mode(&folder, 0o500);
    signal(running.process("engine"), "KILL");
    let result = running.end();
    set_mode(&folder, 0o700);
    result.fails(1, &["engine", "journal-engine", "Permission denied"]);
}

#[test]
fn unwritable_run_folder_is_refused() {
    let launcher = Launcher::new();
    set_mode(launcher.out.path(), 0o500);
    let result =
        command_without_override(&launcher, "--journal process").map(|mut command| output_of(&mut command));
    set_mode(launcher.out.path(), 0o700);
    let Some(result) = result else { return };
    assert!(matches!(result.code, Some(1 | 2)), "{}", result.stderr);
    let folder = launcher.out.path().to_str().unwrap();
    assert!(
        result.stderr.contains(folder) && result.stderr.contains("Permission denied"),
        "{}",
        result.stderr
    );
    assert_eq!(launcher.folders().len(), 0);
}
