//! The first layer, which a process has from its start: it gets the descriptors that it is handed
//! and no others, and with them no more rights than they have.

use crate::common::itself;
use shm::attached::Access;
use shm::memory::Region;
use shm::memory::sealed::{Handle, Shared, inherited_by, take};
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::process::{Output, Stdio};

/// The function that a child runs, and what it is to look at.
const CHILD: &str = "BULKHEAD_TEST_CHILD";
const HANDED: &str = "BULKHEAD_TEST_HANDED";

/// Starts a function of this file as a process with these descriptors.
fn child(function: &str, handed: &str, files: &[&File]) -> String {
    let mut command = itself("descriptors::run");
    command.env(CHILD, function).env(HANDED, handed);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let Output { status, stderr, .. } =
        inherited_by(files, || command.spawn()).unwrap().wait_with_output().unwrap();
    let said = String::from_utf8(stderr).unwrap();
    assert!(status.success(), "{status}: {said}");
    said
}

#[test]
#[ignore = "the others start it, as a process of its own"]
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

/// As a shell gives it: every executed program inherits it.
fn given_by_accident() -> OwnedFd {
    // SAFETY: the call takes an integer; what it returns is new, and nobody else's.
    unsafe { OwnedFd::from_raw_fd(libc::dup(2)) }
}

/// Runs a function of this file as a launcher: in a process of its own. In this one other tests
/// open what is inherited while a child is being started.
fn alone(function: &str) {
    let Output { status, stderr, .. } = itself("descriptors::run").env(CHILD, function).output().unwrap();
    assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&stderr));
}

#[test]
fn child_inherits_only_the_descriptors_it_is_handed() {
    alone("launcher_with_stray_descriptor");
}

fn launcher_with_stray_descriptor() {
    let (handed, kept) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
    let accident = given_by_accident();
    let said = child("print_open_descriptors", "", &[&handed]);
    let open: Vec<i32> = said.split_whitespace().map(|fd| fd.parse().unwrap()).collect();
    assert_eq!(open, [handed.as_raw_fd()], "not {} and not {}", kept.as_raw_fd(), accident.as_raw_fd());
}

/// What decides it belongs to the whole process, so threads that start children at once must not
/// take or give each other's.
#[test]
fn children_of_several_threads_get_their_own_only() {
    alone("launcher_with_several_threads");
}

fn launcher_with_several_threads() {
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10 {
                    let handed = tempfile::tempfile().unwrap();
                    let said = child("print_open_descriptors", "", &[&handed]);
                    assert_eq!(said.trim(), handed.as_raw_fd().to_string());
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
    let make = |what: &str| Shared::create(what, format!("sandbox-test-{what}"), 1024, true).unwrap().0;
    let (own, others) = (make("own"), make("others"));
    let (own, others) = (own.file(Access::Write), others.file(Access::Read));
    // Memory as it would be without all that: the attempts succeed.
    // SAFETY: a C string; what the call returns is new, and nobody else's.
    let open = unsafe { File::from_raw_fd(libc::memfd_create(c"open".as_ptr(), libc::MFD_ALLOW_SEALING)) };
    open.set_len(8192).unwrap();
    let handed = format!("{} {} {}", own.as_raw_fd(), others.as_raw_fd(), open.as_raw_fd());
    let said = child("inside", &handed, &[own, others, &open]);
    let lines = |end: &str| said.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!((lines(" refused"), lines(" ALLOWED")), (8, 8), "{said}");
    let open_is_open =
        said.lines().filter(|line| line.ends_with(" ALLOWED")).all(|line| line.starts_with("open-"));
    assert!(open_is_open, "{said}");
}

/// What safe code may have: a number in a handle that it makes or reads.
#[test]
fn number_that_was_not_inherited_is_refused() {
    // Where no other test changes what is inherited.
    alone("taker");
}

fn taker() {
    let own = tempfile::tempfile().unwrap();
    let take_number = |fd: i32| take(&Handle { name: "any".into(), fd, writable: true });
    for fd in [own.as_raw_fd(), 0, 1, 2, -1, i32::MAX] {
        assert!(take_number(fd).is_err(), "{fd}");
    }
    assert!(own.metadata().is_ok(), "it is still open, and its owner's");
    let accident = given_by_accident();
    let number = std::mem::ManuallyDrop::new(accident).as_raw_fd();
    let taken = take_number(number).unwrap();
    assert_eq!(taken.as_raw_fd(), number, "as one that came through `exec`");
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
    assert_eq!(view.load(5, shm::sync::Ordering::Relaxed), 9, "its creator goes on writing");
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

fn report(whose: &str, what: &str, failed: bool) {
    eprintln!("{whose}-{what} {}", if failed { "refused" } else { "ALLOWED" });
}

/// Truncates the memory under the others: a SIGBUS for every reader.
fn resize(whose: &str, file: &File) {
    report(whose, "grow", file.set_len(1 << 20).is_err());
    report(whose, "shrink", file.set_len(4096).is_err());
    // SAFETY: the call takes integers.
    let sealed = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, libc::F_SEAL_WRITE) };
    report(whose, "seal", sealed < 0);
}

/// To write what one may read.
fn write(whose: &str, file: &File) {
    let (fd, nowhere) = (file.as_raw_fd(), std::ptr::null_mut());
    let (read, any) = (libc::PROT_READ, libc::PROT_READ | libc::PROT_WRITE);
    // SAFETY: mappings at places of the kernel's choice, which nobody else in this process knows
    // and nobody accesses; a live local.
    unsafe {
        report(whose, "write", libc::write(fd, [0u8].as_ptr().cast(), 1) < 0);
        let writable = libc::mmap(nowhere, 4096, any, libc::MAP_SHARED, fd, 0);
        report(whose, "map-writable", writable == libc::MAP_FAILED);
        if writable != libc::MAP_FAILED {
            libc::munmap(writable, 4096);
        }
        let mapped = libc::mmap(nowhere, 4096, read, libc::MAP_SHARED, fd, 0);
        assert_ne!(mapped, libc::MAP_FAILED, "whoever may read it maps it");
        report(whose, "make-writable", libc::mprotect(mapped, 4096, any) < 0);
        report(whose, "take-pages", libc::madvise(mapped, 4096, libc::MADV_REMOVE) < 0);
        let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        report(whose, "punch", libc::fallocate(fd, hole, 0, 4096) < 0);
        libc::munmap(mapped, 4096);
    }
}
