//! Pinning a thread to a core, and verifying its affinity.

use core_affinity::CoreId;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use thiserror::Error;

/// The error that a thread could not be pinned to a core.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PinError {
    /// The core is outside the affinity mask of this process (a cpuset, a container, taskset).
    #[error("core {core} is not allowed here (allowed: {allowed:?}): choose from these with --cores")]
    NotAllowed {
        /// The requested core.
        core: u32,
        /// The allowed cores.
        allowed: Vec<u32>,
    },
    /// The kernel accepted the request, but the thread's affinity is different.
    #[error("core {0}: the kernel accepted the pinning but reads back {1:?}")]
    NotPinned(u32, Vec<u32>),
}

/// Returns the cores that the calling thread may run on, ascending.
pub fn allowed_cores() -> Vec<u32> {
    let mut cores: Vec<u32> =
        core_affinity::get_core_ids().unwrap_or_default().iter().map(|core| core.id as u32).collect();
    cores.sort_unstable();
    cores
}

/// Pins the calling thread to one core that it may run on, and reads its affinity back.
pub fn pin_to(core: u32) -> Result<(), PinError> {
    let allowed = allowed_cores();
    if !allowed.contains(&core) {
        return Err(PinError::NotAllowed { core, allowed });
    }
    pin_beyond_mask(core)
}

/// Pins the calling thread to a core even if its inherited affinity mask excludes the core. The
/// parent may avoid the cores that it assigns. A cpuset still applies.
pub fn pin_beyond_mask(core: u32) -> Result<(), PinError> {
    let id = core as usize;
    // The crate aborts on ids past the size of a CPU set, and returns no reason for other failures.
    if id >= CpuSet::count() || !core_affinity::set_for_current(CoreId { id }) {
        return Err(PinError::NotAllowed { core, allowed: allowed_cores() });
    }
    match allowed_cores() {
        now if now == [core] => Ok(()),
        now => Err(PinError::NotPinned(core, now)),
    }
}

/// Restricts the calling thread, and threads that it starts later, to these cores.
///
/// # Errors
/// An error of the system: none of the cores exists or is allowed by the cpuset.
pub fn restrict_to(cores: &[u32]) -> std::io::Result<()> {
    // The calling thread.
    allow_on(0, cores)
}

/// Sets the cores that a thread, by id, may run on.
pub(crate) fn allow_on(thread: u32, cores: &[u32]) -> std::io::Result<()> {
    let mut mask = CpuSet::new();
    for core in cores {
        mask.set(*core as usize)?;
    }
    Ok(sched_setaffinity(Pid::from_raw(thread.cast_signed()), &mask)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no affinity")]
    fn only_pin_beyond_mask_ignores_inherited_mask() {
        let allowed = allowed_cores();
        let [first, .., last] = allowed[..] else { return eprintln!("SKIPPED: one core only") };
        let results = std::thread::spawn(move || {
            pin_to(first).unwrap();
            let refused = pin_to(last);
            pin_beyond_mask(last).unwrap();
            let cores_after_pin = allowed_cores();
            restrict_to(&[first, last]).unwrap();
            (refused, cores_after_pin, allowed_cores(), pin_beyond_mask(4095), restrict_to(&[]).is_err())
        });
        let refused = PinError::NotAllowed { core: last, allowed: vec![first] };
        let both = vec![first, last];
        let nowhere = PinError::NotAllowed { core: 4095, allowed: both.clone() };
        let results = results.join().unwrap();
        assert_eq!(results, (Err(refused), vec![last], both, Err(nowhere), true));
        assert_eq!(allowed_cores(), allowed, "the mask of this thread is unchanged");
    }
}
