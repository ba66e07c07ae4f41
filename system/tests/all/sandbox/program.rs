//! A program that is not ours, on its way into the sandbox: what it may do while its gate is open, and that nothing of it is left when that is closed.

use super::{LAYERS, alone};
use crate::common::itself;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::Duration;
use system::sandbox::{Gate, missing, program};

/// How long a test waits for what must come.
const PATIENCE: Duration = Duration::from_secs(60);

fn say(what: &str, result: io::Result<impl Sized>) {
    eprintln!("{what} {}", result.map_or_else(|error| format!("refused {error}"), |_| "allowed".into()));
}

#[test]
#[ignore = "the others start it, as a process of its own"]
fn behind_a_gate() {
    if std::env::var(LAYERS).as_deref() != Ok("gate") {
        return;
    }
    alone(|| {
        program::enclose(&[], io::stdin().as_fd(), false).unwrap();
        say("read", File::open("/etc/passwd"));
        say("create", File::create("/tmp/sandbox-test"));
        say("memory", std::fs::read_dir("/dev/shm"));
        say("socket", std::net::UdpSocket::bind("127.0.0.1:0"));
        // SAFETY: the child does nothing but end.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            std::process::exit(0);
        }
        say("fork", if forked < 0 { Err(io::Error::last_os_error()) } else { Ok(()) });
        let thread = std::thread::Builder::new().spawn(|| ());
        say("thread", thread.map(std::thread::JoinHandle::join));
        eprintln!("open");
        let closed = loop {
            match File::open("/etc/passwd") {
                Ok(_) => std::thread::sleep(Duration::from_millis(1)),
                Err(error) => break error,
            }
        };
        say("later", Err::<(), _>(closed));
        say("again", File::open("/etc/passwd"));
        eprintln!("alive {}", vec![1u8; 4 << 20].len());
    });
}

#[test]
fn a_gate_that_is_closed_outside_is_closed_for_good() {
    if !missing().is_empty() {
        eprintln!("SKIPPED: {}", missing().join("; "));
        return;
    }
    let (ours, its) = UnixStream::pair().unwrap();
    let mut gate = Gate::open(ours, PATIENCE).unwrap();
    let mut child = itself("sandbox::program::behind_a_gate")
        .env(LAYERS, "gate")
        .stdin(Stdio::from(OwnedFd::from(its)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        if line == "open" {
            gate.close();
        }
        said = format!("{said}{line}\n");
    }
    assert!(child.wait().unwrap().success(), "{said}");
    for line in ["read allowed", "thread allowed", "alive 4194304"] {
        assert!(said.contains(line), "{line}: {said}");
    }
    for what in ["create", "memory", "socket", "fork"] {
        assert!(said.contains(&format!("{what} refused ")), "{what}: {said}");
    }
    for what in ["later", "again"] {
        assert!(said.contains(&format!("{what} refused Function not implemented")), "{what}: {said}");
    }
}

/// Whoever should hand a gate over and ends instead leaves nothing that waits.
#[test]
fn a_gate_that_never_comes_is_no_gate() {
    let (ours, its) = UnixStream::pair().unwrap();
    let gate = Gate::open(ours, PATIENCE).unwrap();
    drop(its);
    drop(gate);
}
