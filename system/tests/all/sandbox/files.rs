//! File access of a journal writer and its threads: allowed in its directory, refused elsewhere.

use super::{child, in_forked_process, is_sandbox_missing, profile_from_environment};
use nix::fcntl::{FallocateFlags, fallocate};
use shm::memory::Region;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::sync::mpsc;
use system::sandbox::{AllowedFiles, JOURNALED, SandboxProfile};

/// The file operations of a journal in a directory; all are refused in other directories.
fn try_operations(thread: &str, inside: &Path, outside: &Path) {
    let report = |operation: &str, result: io::Result<()>| match result {
        Ok(()) => eprintln!("{thread} {operation} allowed"),
        Err(error) => eprintln!("{thread} {operation} refused {error}"),
    };
    let [unfinished_path, final_path] =
        ["unfinished", "log"].map(|name| inside.join(format!("{name}-{thread}")));
    report("write-inside", write_segment(&unfinished_path, &final_path));
    let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let punch = |file: File| fallocate(&file, hole, 0, 4096).map_err(io::Error::from);
    report("punch", File::options().write(true).open(&final_path).and_then(punch));
    report("remove-inside", fs::remove_file(&final_path));
    report("sync-inside", File::open(inside).and_then(|folder| folder.sync_all()));
    report("descriptors", (0..400).map(|_| File::open(inside)).collect::<io::Result<Vec<_>>>().map(drop));
    report("open-outside", File::open(outside.join("there")).map(drop));
    report("create-outside", File::create_new(outside.join(thread)).map(drop));
    report("rename-outside", fs::rename(outside.join("there"), outside.join(format!("moved-{thread}"))));
    report(
        "shared-memory",
        File::create_new(format!("/dev/shm/sandbox-{thread}-{}", std::process::id())).map(drop),
    );
    report("passwords", File::open("/etc/passwd").map(drop));
    report("socket", UdpSocket::bind("127.0.0.1:0").map(drop));
    report("execute", std::process::Command::new("/bin/true").status().map(drop));
    report("thread", std::thread::Builder::new().spawn(|| {}).map(drop));
}

/// A segment is created, mapped, touched, written, synced, and renamed.
fn write_segment(unfinished_path: &Path, final_path: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).create_new(true).open(unfinished_path)?;
    // Directly, without the emulation of the C library.
    nix::fcntl::posix_fallocate(&file, 0, 1 << 16)?;
    file.write_all(&[1; 64])?;
    let region = Region::map("segment", &file, false).map_err(io::Error::other)?;
    region.touch()?;
    region.words()[9].store(7, shm::sync::Ordering::Relaxed);
    file.sync_data()?;
    fs::rename(unfinished_path, final_path)
}

#[test]
#[ignore = "started by other tests as a process of its own"]
fn write_as_journal() {
    let Some(SandboxProfile { layers, .. }) = profile_from_environment() else { return };
    let profile = SandboxProfile { layers, ..JOURNALED };
    let [inside, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    File::create(outside.path().join("there")).unwrap();
    in_forked_process(|| {
        let folders = [inside.path()];
        profile.confine_to(&AllowedFiles { folders: &folders, ..AllowedFiles::default() }, false).unwrap();
        let (inside, outside) = (inside.path(), outside.path());
        let ((go, wait), (started_sender, started)) = (mpsc::channel(), mpsc::channel());
        std::thread::scope(|scope| {
            // Like a journal's helper thread: it runs before system calls are refused.
            scope.spawn(move || {
                started_sender.send(()).unwrap();
                wait.recv().unwrap();
                try_operations("helper", inside, outside);
            });
            started.recv().unwrap();
            profile.restrict_calls(false).unwrap();
            go.send(()).unwrap();
        });
        try_operations("main", inside, outside);
        eprintln!("alive");
    });
}

const INSIDE: [&str; 3] = ["write-inside", "remove-inside", "sync-inside"];
const FILES: [&str; 5] = ["open-outside", "create-outside", "rename-outside", "shared-memory", "passwords"];
const OTHERS: [&str; 4] = ["socket", "execute", "thread", "punch"];

/// Returns the allowed and refused operations of both threads with these layers.
fn check(layers: &str, allowed: &[&str], refused: &[&str]) {
    let output = child("files::write_as_journal", layers);
    for thread in ["helper", "main"] {
        for (operations, result) in [(allowed, "allowed"), (refused, "refused")] {
            for operation in operations {
                assert!(
                    output.contains(&format!("{thread} {operation} {result}")),
                    "{layers}: {operation}: {output}"
                );
            }
        }
    }
    assert!(output.contains("alive"), "{output}");
    let leftovers = fs::read_dir("/dev/shm").unwrap().flatten();
    let leftovers = leftovers.filter(|file| file.file_name().to_string_lossy().starts_with("sandbox-"));
    leftovers.for_each(|file| fs::remove_file(file.path()).unwrap());
}

#[test]
fn journal_writer_accesses_only_its_directory() {
    if is_sandbox_missing() {
        return;
    }
    check("all", &INSIDE, &[&FILES[..], &OTHERS, &["descriptors"]].concat());
    // Each layer alone: seccomp does not check paths, landlock only checks files.
    check("landlock", &INSIDE, &FILES);
    check("calls", &INSIDE, &OTHERS);
    check("limits", &INSIDE, &["descriptors"]);
    check(
        "none",
        &["write-inside", "descriptors", "create-outside", "shared-memory", "passwords", "socket", "thread"],
        &[],
    );
}

#[test]
fn missing_directory_is_named_in_error() {
    if is_sandbox_missing() {
        return;
    }
    let nowhere = Path::new("/no/such/folder");
    let folders = [nowhere];
    in_forked_process(|| {
        let error = JOURNALED
            .confine_to(&AllowedFiles { folders: &folders, ..AllowedFiles::default() }, false)
            .unwrap_err();
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
    });
}
