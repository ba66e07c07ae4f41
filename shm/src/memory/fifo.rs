//! Named pipes (FIFOs) beside the segments in `/dev/shm`: for techniques that go through the kernel.

use super::{RegionError, SHM_DIR};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

/// Makes a FIFO, mode 0600.
///
/// # Errors
/// What the system refused (the name exists, no permission).
pub fn create(name: &str) -> Result<(), RegionError> {
    let made = mkfifo(format!("{SHM_DIR}/{name}").as_str(), Mode::S_IRUSR | Mode::S_IWUSR);
    made.map_err(|errno| RegionError::Os {
        name: name.into(),
        what: "make a FIFO of that name",
        source: errno.into(),
    })
}
