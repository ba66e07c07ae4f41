//! The first layer, which a process has from its start: it inherits only the descriptors that it is
//! handed, with no more rights than they have.

use crate::common::test_child;
use shm::attached::Access;
use shm::memory::Region;
use shm::memory::sealed::{Handle, Shared, inherited_by, take};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Output, Stdio};

/// The environment variables with the function that a child runs, and with its descriptors.
const CHILD: &str = "BULKHEAD_TEST_CHILD";
const HANDED: &str = "BULKHEAD_TEST_HANDED";

/// Starts a function of this file as a process with these descriptors.
fn child(function: &str, handed: &str, files: &[&File]) -> String {
    let mut command = test_child("descriptors::run");
    command.env(CHILD, function).env(HANDED, handed);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let Output { status, stderr, .. } =
        inherited_by(files, || command.spawn()).unwrap().wait_with_output().unwrap();
    let output = String::from_utf8(stderr).unwrap();
    assert!(status.success(), "{status}: {output}");
    output
}

#[test]
#[ignore = "started by other tests as a process of its own"]
fn run() {
    match std::env::var(CHILD).unwrap_or_default().as_str() {
        "launcher_with_stray_descriptor" => launcher_with_stray_descriptor(),
        "launcher_with_several_threads" => launcher_with_several_threads(),
        "print_open_descriptors" => print_open_descriptors(),
        "taker" => taker(),
        "inside" => inside(),
        _ => {}
    }
}

/// Returns a descriptor without close-on-exec, as from a shell: each executed program inherits it.
fn inherited_by_accident() -> OwnedFd {
    // SAFETY: the call takes an integer; what it returns is new, and nobody else's.
    unsafe { OwnedFd::from_raw_fd(libc::dup(2)) }
}

/// Runs a function of this file as a launcher in a process of its own. In this process other tests
/// may open descriptors while a child is started.
fn run_in_child(function: &str) {
    let Output { status, stderr, .. } = test_child("descriptors::run").env(CHILD, function).output().unwrap();
    assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
}

#[test]
fn child_inherits_only_the_descriptors_it_is_handed() {
    run_in_child("launcher_with_stray_descriptor");
}

fn launcher_with_stray_descriptor() {
    let (handed, kept) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    let stray = inherited_by_accident();
    let output = child("print_open_descriptors", "", &[&handed]);
    let open: Vec<i32> = output.split_whitespace().map(|fd| fd.parse().unwrap()).collect();
    assert_eq!(open, [handed.as_raw_fd()], "not {} and not {}", kept.as_raw_fd(), stray.as_raw_fd());
}

/// Close-on-exec flags belong to the whole process, so threads that start children concurrently
/// must not pass on each other's descriptors.
#[test]
fn children_of_several_threads_get_their_own_only() {
    run_in_child("launcher_with_several_threads");
}

fn launcher_with_several_threads() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let handed = tempfile::tempfile().unwrap();
                    let output = child("print_open_descriptors", "", &[&handed]);
                    assert_eq!(output.trim(), handed.as_raw_fd().to_string());
                }
            });
        }
    });
}

fn print_open_descriptors() {
    let is_open = |fd: &i32| std::fs::read_link(format!("/proc/self/fd/{fd}")).is_ok();
    for fd in (3..1024).filter(is_open) {
        eprintln!("{fd}");
    }
}

#[test]
fn sealed_memory_resists_resizing_and_writes_by_readers() {
    let create = |name: &str| Shared::create(name, format!("sandbox-test-{name}"), 1024, true).unwrap().0;
    let (own, others) = (create("own"), create("others"));
    let (own, others) = (own.file(Access::Write), others.file(Access::Read));
    // Memory without seals: the attempts succeed.
    // SAFETY: a C string; what the call returns is new, and nobody else's.
    let open = unsafe { File::from_raw_fd(libc::memfd_create(c"open".as_ptr(), libc::MFD_ALLOW_SEALING)) };
    open.set_len(8192).unwrap();
    let handed = format!("{} {} {}", own.as_raw_fd(), others.as_raw_fd(), open.as_raw_fd());
    let output = child("inside", &handed, &[own, others, &open]);
    let lines = |end: &str| output.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!((lines(" refused"), lines(" ALLOWED")), (8, 8), "{output}");
    let open_is_open =
        output.lines().filter(|line| line.ends_with(" ALLOWED")).all(|line| line.starts_with("open-"));
    assert!(open_is_open, "{output}");
}

/// A handle that safe code made or read may have any number.
#[test]
fn number_that_was_not_inherited_is_refused() {
    // In a process where no other test changes the inherited descriptors.
    run_in_child("taker");
}

fn taker() {
    let own = tempfile::tempfile().unwrap();
    let take_number = |fd: i32| take(&Handle { name: "any".into(), fd, writable: true });
    for fd in [own.as_raw_fd(), 0, 1, 2, -1, i32::MAX] {
        assert!(take_number(fd).is_err(), "{fd}");
    }
    assert!(own.metadata().is_ok(), "the descriptor is still open");
    let stray = inherited_by_accident();
    let number = std::mem::ManuallyDrop::new(stray).as_raw_fd();
    let taken = take_number(number).unwrap();
    assert_eq!(taken.as_raw_fd(), number, "like a descriptor inherited through `exec`");
    assert!(take_number(number).is_err(), "each at most once");
}

#[test]
fn write_sealed_memory_cannot_be_mapped_writable() {
    let (shared, words) =
        Shared::create_read_only("schedule", "sandbox-test-schedule".into(), 1024, true).unwrap();
    words[5].store(9, shm::sync::Ordering::Relaxed);
    let map = |access| Region::map("schedule", shared.file(access), true);
    assert!(map(Access::Write).is_err() && map(Access::Read).is_err());
    let view = Region::map_read_only("schedule", shared.file(Access::Read)).unwrap();
    assert_eq!(view.load(5, shm::sync::Ordering::Relaxed), 9, "its creator still writes");
    let (shared, _) = Shared::create("ring", "sandbox-test-ring".into(), 1024, true).unwrap();
    assert!(Region::map("ring", shared.file(Access::Write), true).is_ok());
}

fn inside() {
    let handed = std::env::var(HANDED).unwrap();
    let mut files = handed.split(' ').map(|fd| {
        take(&Handle { name: "any".into(), fd: fd.parse().unwrap(), writable: true })
            .expect("it was handed over")
    });
    let (own, others, open) = (files.next().unwrap(), files.next().unwrap(), files.next().unwrap());
    resize("own", &own);
    write("others", &others);
    write("open", &open);
    resize("open", &open);
}

fn report(owner: &str, name: &str, failed: bool) {
    eprintln!("{owner}-{name} {}", if failed { "refused" } else { "ALLOWED" });
}

/// Tries to resize the memory; a truncation would cause a SIGBUS in every reader.
fn resize(owner: &str, file: &File) {
    report(owner, "grow", file.set_len(1 << 20).is_err());
    report(owner, "shrink", file.set_len(4096).is_err());
    // SAFETY: the call takes integers.
    let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
    report(owner, "seal", sealed < 0);
}

/// Tries to write memory that may only be read.
fn write(owner: &str, file: &File) {
    let (fd, nowhere) = (file.as_raw_fd(), std::ptr::null_mut());
    let (read, read_write) = (libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: mappings at places of the kernel's choice, which nobody else in this process knows
    // and nobody accesses; a live local.
    unsafe {
        report(owner, "write", libc::write(fd, [0u8].as_ptr().cast(), 1) < 0);
        let writable = libc::mmap(nowhere, 4096, read_write, libc::MAP_SHARED, fd, 0);
        report(owner, "map-writable", writable == libc::MAP_FAILED);
        if writable != libc::MAP_FAILED {
            libc::munmap(writable, 4096);
        }
        let mapped = libc::mmap(nowhere, 4096, read, libc::MAP_SHARED, fd, 0);
        assert_ne!(mapped, libc::MAP_FAILED, "readable memory can be mapped");
        report(owner, "make-writable", libc::mprotect(mapped, 4096, read_write) < 0);
        report(owner, "take-pages", libc::madvise(mapped, 4096, libc::MADV_REMOVE) < 0);
        let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        report(owner, "punch", libc::fallocate(fd, hole, 0, 4096) < 0);
        libc::munmap(mapped, 4096);
    }
}
