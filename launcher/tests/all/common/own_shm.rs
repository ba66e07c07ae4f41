//! A private `/dev/shm` for this test program, where the kernel allows it. Other runs on this
//! machine then neither remove its segments, nor fill its memory, nor count as its runs.
//!
//! | the program runs | what it does |
//! |---|---|
//! | as root with the right to mount | a mount namespace of its own |
//! | as another user, where user namespaces may mount | a user namespace around it as well |
//! | elsewhere, such as in Docker without privileges | it shares `/dev/shm`, and says so |
//!
//! The tests of one program still share it with each other.

use super::skip;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};
use std::env;
use std::fs;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const SHM: &str = "/dev/shm";
/// Environment variable, set once a private `/dev/shm` was mounted or found impossible.
const VARIABLE: &str = "BULKHEAD_OWN_SHM";

system::before_main!(enter);

/// Executes this program again with a `/dev/shm` of its own. The `exec` drops the capabilities that
/// its user has in a new user namespace.
fn enter() {
    if env::var_os(VARIABLE).is_some() || env::args().any(|word| word == "--list") {
        return;
    }
    let entered = match may_mount() {
        true => mount_own(),
        false => Err(io::Error::other("this user may not mount in a namespace of its own here")),
    };
    if let Err(error) = &entered {
        skip(&format!("a {SHM} of the tests' own: {error}; they share it with all others"));
    }
    let error = Command::new("/proc/self/exe")
        .args(env::args_os().skip(1))
        .env(VARIABLE, if entered.is_ok() { "own" } else { "shared" })
        .exec();
    skip(&format!("the tests cannot be started again: {error}"));
}

/// Tries to mount in another process, since a process cannot leave a namespace.
fn may_mount() -> bool {
    let mut tried = Command::new("unshare");
    if !geteuid().is_root() {
        tried.args(["--user", "--map-root-user"]);
    }
    tried.args(["--mount", "mount", "-t", "tmpfs", "tmpfs", SHM]);
    let tried = tried.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// Mounts an empty tmpfs on `/dev/shm`, as large as the one that it hides.
fn mount_own() -> io::Result<()> {
    let (user, group) = (geteuid(), getegid());
    let size = nix::sys::statvfs::statvfs(SHM)?;
    let bytes = size.blocks().saturating_mul(size.fragment_size());
    if user.is_root() {
        unshare(CloneFlags::CLONE_NEWNS)?;
    } else {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    let none = None::<&str>;
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)?;
    let options = format!("mode=1777,size={bytes}");
    mount(Some("tmpfs"), SHM, Some("tmpfs"), MsFlags::MS_NOSUID | MsFlags::MS_NODEV, Some(&*options))?;
    Ok(())
}

/// The mount is only visible in this program's namespace.
#[test]
fn tests_have_shared_memory_of_their_own() {
    if env::var_os(VARIABLE).is_none_or(|how| how != "own") {
        return skip("there is no right to mount here");
    }
    let name = format!("{SHM}/own-{}", std::process::id());
    fs::write(&name, "").unwrap();
    let parent = nix::unistd::getppid();
    let metadata = fs::metadata(format!("/proc/{parent}/root{name}"));
    fs::remove_file(&name).unwrap();
    assert!(metadata.is_err(), "the parent program sees the file");
}
