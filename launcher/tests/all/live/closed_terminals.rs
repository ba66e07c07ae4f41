//! Commands whose terminal is closed, or whose output nobody reads: they end, by themselves or at a
//! signal.

use crate::common::{LIMIT, LONG, Launcher, Running, assert_nothing_left, command, read_until, signal};
use nix::fcntl::OFlag;
use nix::pty::{grantpt, posix_openpt, ptsname_r, unlockpt};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Stdio};
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

/// A run, and `watch` of it on a terminal of its own, of which the other end is given; it has drawn
/// a frame.
fn watched(launcher: &Launcher) -> (Running, Child, File) {
    let running = launcher.start(LONG);
    let folder = launcher.folders()[0].to_str().unwrap().to_owned();
    let (mut master, slave) = terminal();
    let end = || Stdio::from(slave.try_clone().unwrap());
    let watch = command(&["watch", &folder]).stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
    drop(slave);
    read_until(&mut master, "orchestrator");
    (running, watch, master)
}

/// How a process ends, which it does within a bounded time.
fn ended(mut child: Child) -> Option<i32> {
    let began = Instant::now();
    let mut status = None;
    while status.is_none() {
        if began.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("it does not end: {:?}", child.wait());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        status = child.try_wait().unwrap();
    }
    status.and_then(|status| status.code())
}

fn end(running: Running) {
    let pid = running.pid();
    signal(pid, "INT");
    running.end();
    assert_nothing_left(pid);
}

#[test]
fn watch_ends_when_its_terminal_is_closed() {
    let launcher = Launcher::new();
    let (running, watch, master) = watched(&launcher);
    drop(master);
    assert_eq!(ended(watch), Some(129), "as by SIGHUP");
    end(running);
}

#[test]
fn watch_ends_at_a_signal_and_at_its_key() {
    let launcher = Launcher::new();
    let (running, watch, master) = watched(&launcher);
    signal(watch.id(), "TERM");
    assert_eq!(ended(watch), Some(143));
    drop(master);
    let folder = launcher.folders()[0].to_str().unwrap().to_owned();
    let (mut master, slave) = terminal();
    let end_of_it = || Stdio::from(slave.try_clone().unwrap());
    let mut watch = command(&["watch", &folder]);
    let watch = watch.stdin(end_of_it()).stdout(end_of_it()).stderr(end_of_it()).spawn().unwrap();
    read_until(&mut master, "orchestrator");
    std::io::Write::write_all(&mut master, b"q").unwrap();
    assert_eq!(ended(watch), Some(0));
    end(running);
}

/// A pipe that is full, and a terminal that takes nothing more: the write never returns.
#[test]
fn watch_ends_at_a_signal_while_nobody_reads() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let folder = launcher.folders()[0].to_str().unwrap().to_owned();
    let args = ["watch", &folder, "--json", "--interval", "50ms"];
    let mut watch = command(&args).stdout(Stdio::piped()).spawn().unwrap();
    let unread = watch.stdout.take();
    let sleeps_in_a_pipe = || {
        let wait = std::fs::read_to_string(format!("/proc/{}/wchan", watch.id())).unwrap_or_default();
        wait.contains("pipe")
    };
    // Where the kernel does not say in what a process sleeps, the signal comes before it does, and
    // must end it as well.
    let began = Instant::now();
    while !sleeps_in_a_pipe() && began.elapsed().as_secs() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    signal(watch.id(), "TERM");
    assert_eq!(ended(watch), Some(143));
    drop(unread);
    end(running);
}

#[test]
fn a_followed_journal_ends_at_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = journal::Writer::open(folder.path(), &journal::Options::default(), |_| {}).unwrap();
    writer.append(b"one").unwrap();
    let args = ["journal", "follow", folder.path().to_str().unwrap()];
    for (name, code) in [("TERM", 143), ("HUP", 129), ("INT", 0)] {
        let mut follow = command(&args).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = follow.stdout.take().unwrap();
        read_until(&mut out, "one");
        signal(follow.id(), name);
        assert_eq!(ended(follow), Some(code), "{name}");
    }
    writer.close().unwrap();
}
