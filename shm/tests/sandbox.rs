//! What a sandboxed process tries, and that each of it is refused: by both layers together, and by landlock alone.
//!
//! The test executes itself: the child enters the sandbox, tries everything, prints a line for each and ends.
#![cfg(all(target_arch = "x86_64", not(miri), not(loom)))]

use shm::os::sandbox::{missing, restrict_syscalls, restrict_thread};
use std::process::Command;

const LAYERS: &str = "BULKHEAD_TEST_SANDBOX";

/// Runs the child with these layers; what it printed.
fn child(layers: &str) -> String {
    let me = std::env::current_exe().unwrap();
    let output =
        Command::new(me).args(["--exact", "inside", "--nocapture"]).env(LAYERS, layers).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{}: {text}", output.status);
    text
}

/// The child's part; does nothing when it is run as a test.
#[test]
fn inside() {
    let Ok(layers) = std::env::var(LAYERS) else { return };
    let file = tempfile::tempfile().unwrap();
    restrict_thread(false).unwrap();
    if layers == "all" {
        restrict_syscalls(false).unwrap();
    }
    attempts(std::os::fd::AsRawFd::as_raw_fd(&file));
    // Still possible: memory of one's own, the time, sleeping, another word on stderr.
    let grown = vec![1u8; 4 << 20];
    std::thread::sleep(std::time::Duration::from_millis(1));
    eprintln!("alive {} {}", grown.len(), std::time::Instant::now().elapsed().as_secs());
    std::process::exit(0);
}

/// Tries everything that a hostile strategy would, and prints what the kernel said.
fn attempts(file: i32) {
    // SAFETY: getppid has no arguments and cannot fail.
    let parent = unsafe { libc::getppid() };
    let path = c"/etc/passwd".as_ptr();
    let shm = c"/dev/shm/bulkhead.sandbox-test".as_ptr();
    // SAFETY: a CPU set is bits, all of which may be zero.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a valid CPU set and 0 is inside it.
    unsafe { libc::CPU_SET(0, &mut set) };
    let mut byte = 0u8;
    let local = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let remote = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    // SAFETY: a socket address is integers, all of which may be zero.
    let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
    address.sin_family = libc::AF_INET as u16;
    address.sin_port = 9u16.to_be();
    address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    let address_len = size_of::<libc::sockaddr_in>() as u32;
    let set_len = size_of::<libc::cpu_set_t>();
    let report = |what: &str, result: i64| {
        let error = std::io::Error::last_os_error();
        eprintln!("{what} {}", if result < 0 { format!("refused {error}") } else { "ALLOWED".into() });
    };
    // SAFETY: every pointer below is to a live local or a C string literal of the right type and size, and none of these
    // calls, if it were allowed, touches this process's Rust memory: forks are not followed by anything but `_exit`.
    unsafe {
        report("open", libc::open(path, libc::O_RDONLY).into());
        report("create", libc::open(shm, libc::O_RDWR | libc::O_CREAT, 0o600).into());
        report("unlink", libc::unlink(shm).into());
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0);
        report("socket", socket.into());
        report("connect", libc::connect(socket, (&raw const address).cast(), address_len).into());
        report("signal", libc::syscall(libc::SYS_kill, parent, libc::SIGCONT));
        report("pidfd", libc::syscall(libc::SYS_pidfd_open, parent, 0));
        report("ptrace", libc::ptrace(libc::PTRACE_ATTACH, parent, 0, 0));
        report(
            "read-memory",
            libc::process_vm_readv(parent, &raw const local, 1, &raw const remote, 1, 0) as i64,
        );
        report(
            "write-memory",
            libc::process_vm_writev(parent, &raw const local, 1, &raw const remote, 1, 0) as i64,
        );
        report("affinity", libc::sched_setaffinity(parent, set_len, &raw const set).into());
        report("own-affinity", libc::sched_setaffinity(0, set_len, &raw const set).into());
        report("priority", libc::setpriority(libc::PRIO_PROCESS, parent as u32, 5).into());
        report("truncate", libc::ftruncate(file, 1).into());
        let mapped = libc::mmap(std::ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, file, 0);
        report("map-file", if mapped == libc::MAP_FAILED { -1 } else { 0 });
        let executable = libc::PROT_READ | libc::PROT_EXEC;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let mapped = libc::mmap(std::ptr::null_mut(), 4096, executable, flags, -1, 0);
        report("map-executable", if mapped == libc::MAP_FAILED { -1 } else { 0 });
        report("exec", libc::execv(c"/bin/true".as_ptr(), [path, std::ptr::null()].as_ptr()).into());
        let forked = libc::fork();
        if forked == 0 {
            libc::_exit(0);
        }
        report("fork", forked.into());
        report("write-file", libc::write(file, (&raw const byte).cast(), 1) as i64);
    }
}

#[test]
fn everything_a_hostile_strategy_would_try_is_refused() {
    let lacking = missing();
    if !lacking.is_empty() {
        eprintln!("SKIPPED: {}", lacking.join("; "));
        return;
    }
    let said = child("all");
    let refused: Vec<&str> = said
        .lines()
        .filter(|line| line.contains(" refused "))
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    let all = [
        "open",
        "create",
        "unlink",
        "socket",
        "connect",
        "signal",
        "pidfd",
        "ptrace",
        "read-memory",
        "write-memory",
        "affinity",
        "own-affinity",
        "priority",
        "truncate",
        "map-file",
        "map-executable",
        "exec",
        "fork",
        "write-file",
    ];
    assert_eq!(refused, all, "{said}");
    assert!(said.contains("alive"), "{said}");
}

#[test]
fn landlock_alone_refuses_files_ports_and_signals() {
    if !missing().is_empty() {
        eprintln!("SKIPPED: {}", missing().join("; "));
        return;
    }
    let said = child("landlock");
    for what in ["open", "create", "connect", "signal", "ptrace"] {
        assert!(said.contains(&format!("{what} refused")), "{what}: {said}");
    }
}
