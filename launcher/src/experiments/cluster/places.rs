//! Where what is in the folder of a planned sweep.
//!
//! ```text
//! plan.json                 what is planned
//! claims/0007/holder        whoever makes run 7 now: its host and its process; locked for as long as that lives
//! claims/0007/NAME/…        the run's folder in the making
//! runs/0007/result.json     run 7, finished: moved there as a whole
//! ```

use std::path::{Path, PathBuf};

/// The folder of claims.
pub(super) const CLAIMS: &str = "claims";
/// The folder of finished runs.
pub(super) const RUNS: &str = "runs";

/// What a run is called in both.
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

/// The folder of a run in the making.
pub(super) fn claim(folder: &Path, index: u32) -> PathBuf {
    folder.join(CLAIMS).join(name(index))
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
