//! The mounts of a container: the host's file systems read-only, and a few private ones.

use super::{ContainerContents, ContainerError, ContainerPart};
use nix::fcntl::{OFlag, open};
use nix::mount::{MsFlags, mount};
use nix::sys::stat::Mode;
use shm::memory::SHM_DIR;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The writable directory of a container: in memory, empty at the start.
pub const TMP: &str = "/tmp";
/// Directories with sockets and files of other programs, which are empty in a container.
pub const HIDDEN: [&str; 2] = [TMP, "/run"];
/// Names of the device files that a container has in `/dev`.
pub const DEVICES: [&str; 5] = ["null", "zero", "full", "random", "urandom"];

/// The directory where `/dev` is assembled.
const STAGE: &str = "/tmp/.dev";
const DEV: &str = "/dev";

/// The kernel's `struct mount_attr`.
#[repr(C)]
struct MountAttr {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

const READ_ONLY: u64 = 1;
const NO_SUID: u64 = 2;
const NO_DEV: u64 = 4;

fn mount_error(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> ContainerError {
    let path = path.into();
    move |error| ContainerError::Mount(what, path, error)
}

/// Sets and clears attributes of the mount at a path, and with `is_recursive` of those below it.
fn set_attributes(path: &Path, set: u64, clear: u64, is_recursive: bool) -> io::Result<()> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    let attributes = MountAttr { set, clear, propagation: 0, user_namespace: 0 };
    let flags = if is_recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the kernel reads a path that ends with a zero byte and a structure of the given size;
    // both live until the call has returned, and it writes neither.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            name.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<MountAttr>(),
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn bind(from: &Path, to: &Path, with_submounts: bool) -> io::Result<()> {
    let recursive = if with_submounts { MsFlags::MS_REC } else { MsFlags::empty() };
    Ok(mount(Some(from), to, None::<&str>, MsFlags::MS_BIND | recursive, None::<&str>)?)
}

fn mount_tmpfs(at: &Path, options: &str) -> Result<(), ContainerError> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    mount(Some("tmpfs"), at, Some("tmpfs"), flags, Some(options))
        .map_err(|error| mount_error("mount memory at", at)(error.into()))
}

/// Mounts the `/proc` of the container's processes, read-only. It also has settings of the whole
/// machine, which root may write even without capabilities. Allocates nothing.
pub(super) fn proc() -> io::Result<()> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC | MsFlags::MS_RDONLY;
    Ok(mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)?)
}

/// Sets up all mounts of a container except `/proc`.
pub(super) fn arrange(contents: &ContainerContents, parts: &[ContainerPart]) -> Result<(), ContainerError> {
    let folder = std::env::current_dir().unwrap_or_else(|_| "/".into());
    let root = Path::new("/");
    mount(None::<&str>, root, None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)
        .map_err(|error| mount_error("keep mounts to itself below", root)(error.into()))?;
    let shown_folders = open_hidden(&contents.folders)?;
    if parts.contains(&ContainerPart::Root) {
        set_attributes(root, READ_ONLY | NO_SUID | NO_DEV, 0, true)
            .map_err(mount_error("make everything read-only below", root))?;
    }
    cover_hidden(&shown_folders)?;
    contents.hidden.iter().filter(|folder| folder.is_dir()).try_for_each(|folder| cover(folder))?;
    if parts.contains(&ContainerPart::Memory) {
        devices(&contents.memory)?;
    }
    // The working directory is still the host's, which may be covered now.
    std::env::set_current_dir(&folder)
        .or_else(|_| std::env::set_current_dir(root))
        .map_err(mount_error("go to", root))
}

/// Opens the directories that are about to be hidden.
fn open_hidden(folders: &[PathBuf]) -> Result<Vec<(PathBuf, OwnedFd)>, ContainerError> {
    let is_hidden = |folder: &&PathBuf| {
        HIDDEN.iter().any(|hidden| folder.starts_with(hidden) && folder.as_path() != Path::new(hidden))
    };
    let open = |folder: &PathBuf| {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let file =
            open(folder, flags, Mode::empty()).map_err(|error| mount_error("find", folder)(error.into()))?;
        Ok((folder.clone(), file))
    };
    folders.iter().filter(is_hidden).map(open).collect()
}

/// Covers the hidden directories, and shows the kept ones in them.
fn cover_hidden(shown_folders: &[(PathBuf, OwnedFd)]) -> Result<(), ContainerError> {
    for hidden in HIDDEN.map(Path::new).into_iter().filter(|hidden| hidden.is_dir()) {
        let options = if hidden == Path::new(TMP) {
            format!("size={},nr_inodes=16k,mode=1777", super::TMP_BYTES)
        } else {
            "size=4k,nr_inodes=1k,mode=755".to_owned()
        };
        mount_tmpfs(hidden, &options)?;
    }
    for (folder, file) in shown_folders {
        fs::create_dir_all(folder).map_err(mount_error("make", folder))?;
        let from = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
        bind(&from, folder, true).map_err(mount_error("show", folder))?;
    }
    for hidden in
        HIDDEN.map(Path::new).into_iter().filter(|hidden| hidden.is_dir() && *hidden != Path::new(TMP))
    {
        set_attributes(hidden, READ_ONLY, 0, false).map_err(mount_error("make read-only", hidden))?;
    }
    Ok(())
}

/// Covers a directory with an empty one that cannot be written.
fn cover(folder: &Path) -> Result<(), ContainerError> {
    mount_tmpfs(folder, "size=4k,nr_inodes=1,mode=755")?;
    set_attributes(folder, READ_ONLY, 0, false).map_err(mount_error("make read-only", folder))
}

/// Makes a new `/dev` with a few devices and the files of `/dev/shm` that are handed over.
fn devices(handed: &[(String, bool)]) -> Result<(), ContainerError> {
    let stage = Path::new(STAGE);
    fs::create_dir(stage).map_err(mount_error("make", stage))?;
    mount_tmpfs(stage, "size=64k,nr_inodes=8k,mode=755")?;
    for device in DEVICES {
        let (from, to) = (Path::new(DEV).join(device), stage.join(device));
        fs::write(&to, "").map_err(mount_error("make", &to))?;
        bind(&from, &to, false).map_err(mount_error("show", &from))?;
        set_attributes(&to, 0, NO_DEV, false).map_err(mount_error("allow the use of", &from))?;
    }
    for (name, target) in [("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")] {
        let to = stage.join(name);
        symlink(format!("/proc/self/fd{target}"), &to).map_err(mount_error("make", &to))?;
    }
    let memory_stage = stage.join("shm");
    fs::create_dir(&memory_stage).map_err(mount_error("make", &memory_stage))?;
    for (name, is_writable) in handed {
        let (from, to) = (Path::new(SHM_DIR).join(name), memory_stage.join(name));
        fs::write(&to, "").map_err(mount_error("make", &to))?;
        bind(&from, &to, false).map_err(mount_error("hand over", &from))?;
        let (set, clear) = if *is_writable { (0, READ_ONLY) } else { (READ_ONLY, 0) };
        set_attributes(&to, set, clear, false).map_err(mount_error("give the rights to", &from))?;
    }
    let dev = Path::new(DEV);
    mount(Some(stage), dev, None::<&str>, MsFlags::MS_MOVE, None::<&str>)
        .map_err(|error| mount_error("put in its place", dev)(error.into()))?;
    set_attributes(dev, READ_ONLY, 0, false).map_err(mount_error("make read-only", dev))?;
    fs::remove_dir(stage).map_err(mount_error("remove", stage))
}
