//! Pinning a thread to a core, and reading back where it really is.

use thiserror::Error;

/// Why a thread could not be pinned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PinError {
    /// Outside the affinity mask of this process (a cpuset, a container, taskset).
    #[error("core {core} is not allowed here (allowed: {allowed:?}): choose from these with --cores")]
    NotAllowed {
        /// What was asked for.
        core: u32,
        /// What there is.
        allowed: Vec<u32>,
    },
    /// The kernel took the request and the thread is still elsewhere.
    #[error("core {0}: the kernel accepted the pinning but reads back {1:?}")]
    NotPinned(u32, Vec<u32>),
}

/// The cores that the calling thread may run on, ascending.
pub fn allowed_cores() -> Vec<u32> {
    let mut cores: Vec<u32> =
        core_affinity::get_core_ids().unwrap_or_default().iter().map(|core| core.id as u32).collect();
    cores.sort_unstable();
    cores
}

/// Pins the calling thread to one core and reads its affinity back.
///
/// # Errors
/// See [`PinError`]. `core_affinity` aborts on ids past the size of a CPU set and reports nothing but a bool,
/// so the core is looked up among the allowed ones first and read back afterwards.
pub fn pin_to(core: u32) -> Result<(), PinError> {
    let allowed = allowed_cores();
    if !allowed.contains(&core) {
        return Err(PinError::NotAllowed { core, allowed });
    }
    core_affinity::set_for_current(core_affinity::CoreId { id: core as usize });
    match allowed_cores() {
        now if now == [core] => Ok(()),
        now => Err(PinError::NotPinned(core, now)),
    }
}
