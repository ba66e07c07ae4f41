//! Named pipes (FIFOs) in `/dev/shm`, for techniques that send through the kernel.

use super::calls::{c_string, checked};
use super::{RegionError, SHM_DIR};

/// Creates a named pipe in `/dev/shm`, mode 0600.
///
/// # Errors
/// What the system refused (the name exists, no permission).
pub fn create(name: &str) -> Result<(), RegionError> {
    let make = |path: std::ffi::CString| {
        // SAFETY: the path ends with a zero byte, and is valid during the call.
        checked(unsafe { libc::mkfifo(path.as_ptr(), 0o600) })
    };
    let made = c_string(format!("{SHM_DIR}/{name}")).and_then(make);
    made.map(drop).map_err(RegionError::os(name, "make a FIFO of that name"))
}
