//! Commands that run until a signal arrives or their terminal is closed.

use crate::common::{LONG, Launcher, ended, read_until, signal};
use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

/// Creates a pseudoterminal of 100 columns. Returns the master, which no process inherits, and the
/// slave.
fn terminal() -> (File, File) {
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let mut options = File::options();
    options.read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits());
    let slave = options.open(ptsname_r(&master).unwrap()).unwrap();
    let mut stty = Command::new("stty");
    let sized = stty.args(["rows", "40", "cols", "100"]).stdin(slave.try_clone().unwrap()).status();
    assert!(sized.unwrap().success());
    (std::os::fd::OwnedFd::from(master).into(), slave)
}

/// Starts a command on the slave end of a terminal. Neither Ctrl-C nor a hang-up is ignored,
/// whatever the test's own parent has set (`nohup`).
fn start_on(slave: &File, args: &[&str]) -> Child {
    let stream = || Stdio::from(slave.try_clone().unwrap());
    let mut command = Command::new("env");
    command.args(["--default-signal=INT,HUP", env!("CARGO_BIN_EXE_launcher")]).args(args);
    command.stdin(stream()).stdout(stream()).stderr(stream()).spawn().unwrap()
}

/// Checks that each signal ends the command, started on a new terminal, once it has printed
/// `texts`.
fn ends_at_signals(args: &[&str], texts: &[&str], signals: &[(&str, i32)]) {
    for (name, number) in signals {
        let (mut master, slave) = terminal();
        let mut command = start_on(&slave, args);
        texts.iter().for_each(|text| read_until(&mut master, text));
        signal(command.id(), name);
        assert_eq!(ended(&mut command).signal(), Some(*number), "{name}");
    }
}

#[test]
fn watch_redraws_until_signal_or_closed_terminal() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let folder = launcher.folder();
    let args = ["watch", folder.to_str().unwrap()];
    let frame = ["\u{1b}[H\u{1b}[Jrun ", "orchestrator"];
    ends_at_signals(&args, &[frame, frame].concat(), &[("INT", 2), ("TERM", 15)]);
    let (mut master, slave) = terminal();
    let mut watch = start_on(&slave, &args);
    drop(slave);
    read_until(&mut master, "orchestrator");
    drop(master);
    assert_eq!(ended(&mut watch).code(), Some(1), "its terminal is closed");
    running.interrupt();
}

#[test]
fn journal_follow_ends_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = journal::Writer::open(folder.path(), &journal::Options::default(), |_| {}).unwrap();
    writer.append(b"one").unwrap();
    let args = ["journal", "follow", folder.path().to_str().unwrap()];
    ends_at_signals(&args, &["one"], &[("INT", 2), ("TERM", 15), ("HUP", 1)]);
    writer.close().unwrap();
}
