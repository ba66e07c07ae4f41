//! Opening the ends of named pipes (FIFOs) in `/dev/shm`.

use super::os;
use nix::fcntl::{FcntlArg, fcntl};
use shm::memory::RegionError;
use shm::memory::SHM_DIR;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};

/// The kernel's default size of a pipe, in bytes.
const DEFAULT_BYTES: i32 = 65_536;

/// Opens the reading end of a named pipe, non-blocking. Does not wait for a writer.
pub(crate) fn open_reader(name: &str) -> Result<File, RegionError> {
    open(name, OpenOptions::new().read(true))
}

/// Opens the writing end of a named pipe, non-blocking and write-only. Does not wait for a reader;
/// writes fail while there is none.
///
/// # Errors
/// An error of the system; a file that is not a FIFO.
pub fn open_writer(name: &str) -> Result<File, RegionError> {
    // Linux opens a FIFO write-only only if it has a reader, but read-write always. So the order of
    // the processes does not matter.
    let _reader = open(name, OpenOptions::new().read(true).write(true))?;
    open(name, OpenOptions::new().write(true))
}

fn open(name: &str, options: &mut OpenOptions) -> Result<File, RegionError> {
    let path = format!("{SHM_DIR}/{name}");
    let file =
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOFOLLOW).open(path).map_err(os(name, "open it"))?;
    let is_fifo = file.metadata().is_ok_and(|metadata| metadata.file_type().is_fifo());
    if !is_fifo {
        return Err(os(name, "use it as a FIFO")(io::Error::from(io::ErrorKind::InvalidInput)));
    }
    enlarge(&file);
    Ok(file)
}

/// Enlarges the pipe to the maximum for ordinary users (`/proc/sys/fs/pipe-max-size`), or less if
/// the user's quota is used up.
fn enlarge(pipe: &File) {
    let max = std::fs::read_to_string("/proc/sys/fs/pipe-max-size").ok();
    let mut bytes = max.and_then(|text| text.trim().parse::<i32>().ok()).unwrap_or(1 << 20);
    while bytes > DEFAULT_BYTES && fcntl(pipe, FcntlArg::F_SETPIPE_SZ(bytes)).is_err() {
        bytes /= 2;
    }
}
