//! Folders that may not be written: a run that needs one is refused, or ends, with the folder's
//! name and the reason, and nothing is left.

use super::comebacks::{BASE, BEHIND_THE_FIRST, MANY_SEGMENTS};
use crate::common::{Launcher, Running, output_of, signal, skip, wait_for};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A run without these capabilities: root gives them up, others have none. `None`, with a message:
/// root cannot give them up here.
pub fn without(capabilities: &[&str], run: &Command) -> Option<Command> {
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

/// The launcher as somebody whom permissions concern: root is not, unless it gives that up.
fn concerned(launcher: &Launcher, flags: &str) -> Option<Command> {
    without(&["dac_override", "dac_read_search"], &launcher.run(&format!("{BASE} {flags}")))
}

fn allow(folder: &Path, mode: u32) {
    std::fs::set_permissions(folder, PermissionsExt::from_mode(mode)).unwrap();
}

/// The engine is killed when its journal may not be written any more: a successor needs a segment
/// of its own.
#[test]
fn unwritable_journal_ends_run_with_reason() {
    let launcher = Launcher::new();
    let Some(mut command) = concerned(&launcher, MANY_SEGMENTS) else { return };
    let running = Running::spawn(&mut command);
    let folder = || launcher.folders().first().map(|run| run.join("journal-engine"));
    let folder = wait_for("the first segment is full", || {
        folder().filter(|folder| folder.join(BEHIND_THE_FIRST).exists())
    });
    allow(&folder, 0o500);
    signal(running.process("engine"), "KILL");
    let result = running.end();
    allow(&folder, 0o700);
    result.fails(1, &["engine", "journal-engine", "Permission denied"]);
}

#[test]
fn unwritable_run_folder_is_refused() {
    let launcher = Launcher::new();
    allow(launcher.out.path(), 0o500);
    let result = concerned(&launcher, "--journal process").map(|mut command| output_of(&mut command));
    allow(launcher.out.path(), 0o700);
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
