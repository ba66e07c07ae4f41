//! Attempts of a sandboxed process, and the layer that refuses each: every layer alone, and all
//! together.
//!
//! The tests execute this binary: the child sets up the given layers, makes all attempts, prints a
//! line for each and exits.
#![expect(clippy::disallowed_methods, reason = "refused calls are tried by their plain names")]

mod attempts;
mod files;

use attempts::{attempts, shared_page};
use std::collections::BTreeSet;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use system::memory;
use system::sandbox::{STDERR_BYTES, STRATEGY, SandboxError, SandboxLayer, SandboxProfile, missing};

/// The environment variable with the layers that the child sets up.
const LAYERS: &str = "BULKHEAD_TEST_SANDBOX";

/// Returns `true`, and prints the reason, where tests of the sandbox are skipped.
fn is_sandbox_missing() -> bool {
    let missing = missing().join("; ");
    if !missing.is_empty() {
        eprintln!("SKIPPED: {missing}");
    }
    !missing.is_empty()
}

/// Runs an ignored test of this binary alone in its process, on one thread, so that it may change
/// the process. Returns its stderr, which is a file, as for a role.
fn child(test: &str, layers: &str) -> String {
    let mut output = tempfile::tempfile().unwrap();
    let test = format!("sandbox::{test}");
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &test, "--ignored", "--nocapture"])
        .env(LAYERS, layers)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(output.try_clone().unwrap())
        .status()
        .unwrap();
    let mut text = String::new();
    output.rewind().unwrap();
    output.read_to_string(&mut text).unwrap();
    assert!(status.success(), "{status}: {text}");
    text
}

/// Returns the strategies' profile with the layers of the environment variable.
fn profile_from_environment() -> Option<SandboxProfile> {
    let layers: &[SandboxLayer] = match std::env::var(LAYERS).ok()?.as_str() {
        "none" => &[],
        "privileges" => &[SandboxLayer::Privileges],
        "landlock" => &[SandboxLayer::Landlock],
        "limits" => &[SandboxLayer::Limits],
        "calls" => &[SandboxLayer::Calls],
        "all" => &SandboxLayer::ALL,
        other => panic!("{other}"),
    };
    Some(SandboxProfile { layers, ..STRATEGY })
}

/// Continues in a forked process with one thread, that of the test; the harness has another.
fn in_forked_process(body: impl FnOnce()) {
    // SAFETY: the other thread waits for this one and holds no lock that what follows needs; the C
    // library makes its own usable in the new process.
    let forked = unsafe { libc::fork() };
    if forked == 0 {
        body();
        std::process::exit(0);
    }
    let mut status = 0;
    // SAFETY: our own child, and a live local.
    unsafe { libc::waitpid(forked, &raw mut status, 0) };
    assert_eq!(status, 0, "the forked process");
}

#[test]
#[ignore = "started by other tests as a process of its own"]
fn inside() {
    let Some(profile) = profile_from_environment() else { return };
    let (file, page) = (tempfile::tempfile().unwrap(), shared_page());
    in_forked_process(|| {
        if profile.layers.contains(&SandboxLayer::Limits) {
            memory::limit_growth(64 << 20).unwrap();
        }
        profile.confine(false).unwrap();
        profile.restrict_calls(false).unwrap();
        attempts(file.as_raw_fd(), page);
        // Still possible: private memory, the time, sleeping, output on stderr.
        let grown = vec![1u8; 4 << 20];
        std::thread::sleep(std::time::Duration::from_millis(1));
        eprintln!("alive {} {}", grown.len(), std::time::Instant::now().elapsed().as_secs());
    });
}

/// Returns the attempts that were refused.
fn refused(layers: &str) -> BTreeSet<String> {
    let output = child("inside", layers);
    assert!(output.contains("alive"), "{layers}: {output}");
    let lines = output.lines().filter(|line| line.contains(" refused "));
    lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

/// Asserts that this layer alone refuses these attempts, and that all are allowed without layers.
fn assert_refuses(layers: &str, attempts: &[&str]) {
    if is_sandbox_missing() {
        return;
    }
    let (with_layer, without) = (refused(layers), refused("none"));
    // Some systems (Yama) let only root read a process that is not its child.
    let may_be_restricted = ["ptrace", "read-memory", "write-memory"];
    for attempt in attempts
        .iter()
        .filter(|attempt| !(may_be_restricted.contains(*attempt) && without.contains(**attempt)))
    {
        assert!(with_layer.contains(*attempt), "{layers} does not refuse {attempt}, only {with_layer:?}");
        assert!(!without.contains(*attempt), "{attempt} is refused without {layers}");
    }
}

#[test]
fn attempts_of_hostile_strategy_are_refused() {
    if is_sandbox_missing() {
        return;
    }
    let output = child("inside", "all");
    assert!(output.contains("alive") && !output.contains("ALLOWED"), "{output}");
    assert_eq!(output.matches(" refused ").count(), attempts::COUNT, "{output}");
}

#[test]
fn landlock_alone_refuses_files_ports_and_signals() {
    assert_refuses("landlock", &["open", "create", "connect", "signal", "ptrace"]);
}

#[test]
fn seccomp_alone_refuses_all_unlisted_calls() {
    assert_refuses(
        "calls",
        &[
            "open",
            "create",
            "socket",
            "connect",
            "signal",
            "pidfd",
            "duplicate",
            "memory-file",
            "ptrace",
            "read-memory",
            "write-memory",
            "affinity",
            "own-affinity",
            "lower-priority",
            "truncate",
            "map-file",
            "map-executable",
            "map-shared",
            "make-executable",
            "take-pages",
            "exec",
            "fork",
            "write-file",
            "fill-file",
        ],
    );
}

#[test]
fn limits_alone_refuse_descriptors_files_that_grow_and_memory() {
    assert_refuses(
        "limits",
        &[
            "open",
            "create",
            "socket",
            "pidfd",
            "duplicate",
            "memory-file",
            "fill-file",
            "raise-limit",
            "much-memory",
        ],
    );
}

#[test]
fn without_privileges_root_is_an_ordinary_user() {
    let (with_layer, without) = (refused("privileges"), refused("none"));
    // SAFETY: the call takes nothing and cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    for attempt in ["raise-priority", "change-root", "gain"] {
        assert!(with_layer.contains(attempt), "{attempt}: {with_layer:?}");
        assert!(!is_root || !without.contains(attempt), "root is refused {attempt} already");
    }
}

/// Existing threads would not be confined by layers that apply to one thread.
#[test]
fn process_with_second_thread_is_not_confined() {
    let error = STRATEGY.confine(false).unwrap_err();
    assert!(matches!(error, SandboxError::Threads(2..)), "{error}");
    std::fs::File::open("/proc/self/status").expect("no layer was applied");
}

/// Sends through an open pipe and socket.
#[test]
#[ignore = "started by other tests as a process of its own"]
fn sending() {
    let Some(profile) = profile_from_environment() else { return };
    let (mut socket, _other_end) = std::os::unix::net::UnixStream::pair().unwrap();
    let (_reader, mut pipe) = std::io::pipe().unwrap();
    in_forked_process(|| {
        profile.confine(false).unwrap();
        profile.restrict_calls(true).unwrap();
        eprintln!("pipe {:?}", std::io::Write::write(&mut pipe, &[0; 64]).ok());
        eprintln!("socket {:?}", std::io::Write::write(&mut socket, &[0; 56]).ok());
        // SAFETY: a message header is integers and pointers, all of which may be zero: no data, no
        // address, no descriptors.
        let nothing: libc::msghdr = unsafe { std::mem::zeroed() };
        // SAFETY: a live local that contains null pointers only.
        let sent = unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const nothing, 0) };
        eprintln!("sendmsg {sent}");
    });
}

#[test]
fn kernel_messages_cannot_carry_descriptors() {
    if is_sandbox_missing() {
        return;
    }
    for (layers, sendmsg) in [("all", -1), ("calls", -1), ("none", 0)] {
        let output = child("sending", layers);
        let expected = format!("pipe Some(64)\nsocket Some(56)\nsendmsg {sendmsg}\n");
        assert!(output.contains(&expected), "{layers}: {output}");
    }
}

/// Writes more to stderr than its file may hold.
#[test]
#[ignore = "started by other tests as a process of its own"]
fn write_too_much() {
    let Some(profile) = profile_from_environment() else { return };
    in_forked_process(|| {
        profile.confine(false).unwrap();
        profile.restrict_calls(false).unwrap();
        let line = [b'x'; 4096];
        for _ in 0..4 * STDERR_BYTES as usize / line.len() {
            let _ = std::io::Write::write(&mut std::io::stderr(), &line);
        }
    });
}

#[test]
fn stderr_output_ends_at_limit() {
    if is_sandbox_missing() {
        return;
    }
    for layers in ["limits", "all"] {
        assert_eq!(child("write_too_much", layers).len() as u64, STDERR_BYTES, "{layers}");
    }
}
