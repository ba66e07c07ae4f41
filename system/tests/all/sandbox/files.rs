//! File access of a journal writer and its threads: allowed in its directory, refused elsewhere.

use super::{alone, child, is_sandbox_missing, told};
use nix::fcntl::{FallocateFlags, fallocate};
use shm::memory::Region;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::sync::mpsc;
use system::sandbox::{AllowedFiles, JOURNALED, SandboxProfile};

/// The file operations of a journal in a directory; all are refused in other directories.
fn tries(who: &str, inside: &Path, outside: &Path) {
    let say = |what: &str, done: io::Result<()>| match done {
        Ok(()) => eprintln!("{who} {what} allowed"),
        Err(error) => eprintln!("{who} {what} refused {error}"),
    };
    let [new, named] = ["unfinished", "log"].map(|name| inside.join(format!("{name}-{who}")));
    say("write-inside", journals(&new, &named));
    let hole = FallocateFlags::FALLOC_FL_PUNCH_HOLE | FallocateFlags::FALLOC_FL_KEEP_SIZE;
    let punch = |file: File| fallocate(&file, hole, 0, 4096).map_err(io::Error::from);
    say("punch", File::options().write(true).open(&named).and_then(punch));
    say("remove-inside", fs::remove_file(&named));
    say("sync-inside", File::open(inside).and_then(|folder| folder.sync_all()));
    say("descriptors", (0..400).map(|_| File::open(inside)).collect::<io::Result<Vec<_>>>().map(drop));
    say("open-outside", File::open(outside.join("there")).map(drop));
    say("create-outside", File::create_new(outside.join(who)).map(drop));
    say("rename-outside", fs::rename(outside.join("there"), outside.join(format!("moved-{who}"))));
    say(
        "shared-memory",
        File::create_new(format!("/dev/shm/sandbox-{who}-{}", std::process::id())).map(drop),
    );
    say("passwords", File::open("/etc/passwd").map(drop));
    say("socket", UdpSocket::bind("127.0.0.1:0").map(drop));
    say("execute", std::process::Command::new("/bin/true").status().map(drop));
    say("thread", std::thread::Builder::new().spawn(|| {}).map(drop));
}

/// A segment is created, mapped, touched, written, synced, and renamed.
fn journals(new: &Path, named: &Path) -> io::Result<()> {
    let mut file = File::options().read(true).write(true).create_new(true).open(new)?;
    // Directly, without the emulation of the C library.
    nix::fcntl::posix_fallocate(&file, 0, 1 << 16)?;
    file.write_all(&[1; 64])?;
    let region = Region::map("segment", &file, false).map_err(io::Error::other)?;
    region.touch()?;
    region.words()[9].store(7, shm::sync::Ordering::Relaxed);
    file.sync_data()?;
    fs::rename(new, named)
}

#[test]
#[ignore = "the others start it, as a process of its own"]
fn writing() {
    let Some(SandboxProfile { layers, .. }) = told() else { return };
    let profile = SandboxProfile { layers, ..JOURNALED };
    let [inside, outside] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    File::create(outside.path().join("there")).unwrap();
    alone(|| {
        let folders = [inside.path()];
        profile.confine_to(&AllowedFiles { folders: &folders, ..AllowedFiles::default() }, false).unwrap();
        let (inside, outside) = (inside.path(), outside.path());
        let ((go, wait), (begins, begun)) = (mpsc::channel(), mpsc::channel());
        std::thread::scope(|scope| {
            // Like a journal's helper thread: it runs before system calls are refused.
            scope.spawn(move || {
                begins.send(()).unwrap();
                wait.recv().unwrap();
                tries("helper", inside, outside);
            });
            begun.recv().unwrap();
            profile.restrict_calls(false).unwrap();
            go.send(()).unwrap();
        });
        tries("main", inside, outside);
        eprintln!("alive");
    });
}

const INSIDE: [&str; 3] = ["write-inside", "remove-inside", "sync-inside"];
const FILES: [&str; 5] = ["open-outside", "create-outside", "rename-outside", "shared-memory", "passwords"];
const OTHERS: [&str; 4] = ["socket", "execute", "thread", "punch"];

/// Returns the allowed and refused operations of both threads with these layers.
fn check(layers: &str, allowed: &[&str], refused: &[&str]) {
    let said = child("files::writing", layers);
    for who in ["helper", "main"] {
        for (all, how) in [(allowed, "allowed"), (refused, "refused")] {
            for what in all {
                assert!(said.contains(&format!("{who} {what} {how}")), "{layers}: {what}: {said}");
            }
        }
    }
    assert!(said.contains("alive"), "{said}");
    let left = fs::read_dir("/dev/shm").unwrap().flatten();
    let left = left.filter(|file| file.file_name().to_string_lossy().starts_with("sandbox-"));
    left.for_each(|file| fs::remove_file(file.path()).unwrap());
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
    alone(|| {
        let error = JOURNALED
            .confine_to(&AllowedFiles { folders: &folders, ..AllowedFiles::default() }, false)
            .unwrap_err();
        assert!(error.to_string().contains("/no/such/folder"), "{error}");
    });
}
