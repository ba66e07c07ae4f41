//! Commands that continue until a signal comes or their terminal is closed.

use crate::common::{LIMIT, LONG, Launcher, assert_nothing_left, read_until, signal};
use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Instant;

/// A terminal of 100 columns: its user's end, which no process inherits, and the other one.
fn terminal() -> (File, File) {
    let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let mut options = File::options();
    options.read(true).write(true).custom_flags(OFlag::O_NOCTTY.bits());
    let slave = options.open(ptsname_r(&master).unwrap()).unwrap();
    let mut stty = std::process::Command::new("stty");
    let sized = stty.args(["rows", "40", "cols", "100"]).stdin(slave.try_clone().unwrap()).status();
    assert!(sized.unwrap().success());
    (std::os::fd::OwnedFd::from(master).into(), slave)
}

/// Starts a command on the slave end of a terminal. Ctrl-C is not ignored, whatever the test's own
/// parent has set.
fn start_on(slave: &File, args: &[&str]) -> Child {
    let end = || Stdio::from(slave.try_clone().unwrap());
    let mut command = std::process::Command::new("env");
    command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_launcher")]).args(args);
    command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap()
}

/// Waits for the end of a process, which comes within a bounded time.
fn ended(mut child: Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("it does not end: {:?}", child.wait());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn watch_redraws_until_signal_or_closed_terminal() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let folder = launcher.folders()[0].to_str().unwrap().to_owned();
    for (name, number) in [("INT", 2), ("TERM", 15)] {
        let (mut master, slave) = terminal();
        let watch = start_on(&slave, &["watch", &folder]);
        for _ in 0..2 {
            read_until(&mut master, "\u{1b}[H\u{1b}[Jrun ");
            read_until(&mut master, "orchestrator");
        }
        signal(watch.id(), name);
        assert_eq!(ended(watch).signal(), Some(number), "{name}");
    }
    let (mut master, slave) = terminal();
    let watch = start_on(&slave, &["watch", &folder]);
    drop(slave);
    read_until(&mut master, "orchestrator");
    drop(master);
    assert_eq!(ended(watch).code(), Some(1), "its terminal is closed");
    let pid = running.pid();
    signal(pid, "INT");
    running.end();
    assert_nothing_left(pid);
}

#[test]
fn a_followed_journal_ends_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = journal::Writer::open(folder.path(), &journal::Options::default(), |_| {}).unwrap();
    writer.append(b"one").unwrap();
    let args = ["journal", "follow", folder.path().to_str().unwrap()];
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let (mut master, slave) = terminal();
        let follow = start_on(&slave, &args);
        read_until(&mut master, "one");
        signal(follow.id(), name);
        assert_eq!(ended(follow).signal(), Some(number), "{name}");
    }
    writer.close().unwrap();
}
