//! Where what is in the folder of a planned sweep.
//!
//! ```text
//! plan.json                 what is planned
//! making/HOST-PID-NANOS/…   a run's folder in the making; left there by a launcher that was killed
//! runs/0007/result.json     run 7, finished: moved there as a whole
//! ```

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The folder of runs in the making.
pub(super) const MAKING: &str = "making";
/// The folder of finished runs.
pub(super) const RUNS: &str = "runs";

/// What a finished run is called.
pub(super) fn name(index: u32) -> String {
    format!("{index:04}")
}

/// The number of a run that is called so; `None`: no run is.
pub(super) fn index(text: &str) -> Option<u32> {
    text.parse().ok().filter(|index| name(*index) == text)
}

/// The folder of a finished run.
pub(super) fn run(folder: &Path, index: u32) -> PathBuf {
    folder.join(RUNS).join(name(index))
}

/// A folder for a run in the making, whose name no other process of any host has.
pub(super) fn draft(folder: &Path, host: &str) -> PathBuf {
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let plain: String = host.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    folder.join(MAKING).join(format!("{plain}-{}-{nanos}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_run_has_the_name_of_one() {
        assert_eq!((name(7), name(12_345)), ("0007".into(), "12345".into()));
        assert_eq!((index("0007"), index("12345")), (Some(7), Some(12_345)));
        for other in ["7", "00007", "+007", "", "0007.old", "../0"] {
            assert_eq!(index(other), None, "{other:?}");
        }
    }
}
