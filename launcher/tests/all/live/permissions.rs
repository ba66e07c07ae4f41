//! Folders that may not be written: a run that needs one is refused, or ends, with the folder's
//! name and the reason, and nothing is left.

use super::comebacks::{BASE, BEHIND_THE_FIRST, MANY_SEGMENTS};
use crate::common::{Launcher, Running, assert_nothing_left, signal, text, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// The launcher as somebody whom permissions concern: root is not, unless it gives that up. `None`:
/// it cannot.
fn concerned(launcher: &Launcher, flags: &[&str]) -> Option<Command> {
    let run = launcher.run(&[&BASE[..], flags].concat());
    let setpriv = ["--bounding-set=-dac_override,-dac_read_search", "--"];
    let mut command = if nix::unistd::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(setpriv).arg(run.get_program());
        command
    } else {
        Command::new(run.get_program())
    };
    command.args(run.get_args()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let tried = Command::new("setpriv").args(setpriv).arg("true").output();
    let is_able = !nix::unistd::geteuid().is_root() || tried.is_ok_and(|output| output.status.success());
    if !is_able {
        eprintln!("SKIPPED: setpriv cannot give up a capability here");
    }
    is_able.then_some(command)
}

fn allow(folder: &Path, mode: u32) {
    std::fs::set_permissions(folder, PermissionsExt::from_mode(mode)).unwrap();
}

/// The engine is killed when its journal may not be written any more: a successor needs a segment
/// of its own.
#[test]
fn unwritable_journal_ends_run_with_reason() {
    let launcher = Launcher::new();
    let Some(mut command) = concerned(&launcher, &MANY_SEGMENTS) else { return };
    let running = Running { child: command.spawn().unwrap() };
    let folder = || launcher.folders().first().map(|run| run.join("journal-engine"));
    let is_behind = |name: &std::ffi::OsStr| {
        name.to_str().is_some_and(|name| name.starts_with("log-") && name >= BEHIND_THE_FIRST)
    };
    let is_under_way = || {
        let entries = folder().and_then(|folder| std::fs::read_dir(folder).ok());
        entries.into_iter().flatten().flatten().any(|entry| is_behind(&entry.file_name()))
    };
    wait_until("the first segment is full", is_under_way);
    let folder = folder().unwrap();
    allow(&folder, 0o500);
    signal(running.process("engine"), "KILL");
    let pid = running.pid();
    let (code, _, said) = running.end();
    allow(&folder, 0o700);
    assert_eq!(code, Some(1), "{said}");
    for words in ["engine", "journal-engine", "Permission denied"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    assert_nothing_left(pid);
}

#[test]
fn unwritable_run_folder_is_refused() {
    let launcher = Launcher::new();
    allow(launcher.out.path(), 0o500);
    let output = concerned(&launcher, &["--journal", "process"]).map(|mut command| command.output().unwrap());
    allow(launcher.out.path(), 0o700);
    let Some(output) = output else { return };
    let said = text(&output.stderr);
    assert!(matches!(output.status.code(), Some(1 | 2)), "{said}");
    let folder = launcher.out.path().to_str().unwrap();
    assert!(said.contains(folder) && said.contains("Permission denied"), "{said}");
    assert_eq!(launcher.folders().len(), 0);
}
