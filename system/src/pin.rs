//! Pinning a thread to a core, and reading back where it really is.

use core_affinity::CoreId;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
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

/// Pins the calling thread to one core that it may run on, and reads its affinity back.
///
/// # Errors
/// See [`PinError`].
pub fn pin_to(core: u32) -> Result<(), PinError> {
    let allowed = allowed_cores();
    if !allowed.contains(&core) {
        return Err(PinError::NotAllowed { core, allowed });
    }
    move_to(core)
}

/// The same for a core that the mask need not hold which the thread began with: whoever chose the
/// core for it may itself keep off it, and the mask is inherited. What a cpuset forbids is
/// forbidden here as well.
///
/// # Errors
/// See [`PinError`].
pub fn move_to(core: u32) -> Result<(), PinError> {
    let id = core as usize;
    // The crate aborts on ids past the size of a CPU set, and says of anything else that went wrong
    // only that it did.
    if id >= CpuSet::count() || !core_affinity::set_for_current(CoreId { id }) {
        return Err(PinError::NotAllowed { core, allowed: allowed_cores() });
    }
    match allowed_cores() {
        now if now == [core] => Ok(()),
        now => Err(PinError::NotPinned(core, now)),
    }
}

/// Lets the calling thread, and those that it starts from then on, run on these cores only.
///
/// # Errors
/// What the system refused: there is none of them, or none that a cpuset allows.
pub fn stay_on(cores: &[u32]) -> std::io::Result<()> {
    let mut mask = CpuSet::new();
    for core in cores {
        mask.set(*core as usize)?;
    }
    // 0: the calling thread.
    Ok(sched_setaffinity(Pid::from_raw(0), &mask)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "Miri has no affinity")]
    fn a_thread_is_pinned_beyond_the_mask_that_it_inherited_only_where_that_is_meant() {
        let allowed = allowed_cores();
        let [first, .., last] = allowed[..] else { return eprintln!("SKIPPED: one core only") };
        let found = std::thread::spawn(move || {
            pin_to(first).unwrap();
            let refused = pin_to(last);
            move_to(last).unwrap();
            let at = allowed_cores();
            stay_on(&[first, last]).unwrap();
            (refused, at, allowed_cores(), move_to(4095), stay_on(&[]).is_err())
        });
        let refused = PinError::NotAllowed { core: last, allowed: vec![first] };
        let both = vec![first, last];
        let nowhere = PinError::NotAllowed { core: 4095, allowed: both.clone() };
        let found = found.join().unwrap();
        assert_eq!(found, (Err(refused), vec![last], both, Err(nowhere), true));
        assert_eq!(allowed_cores(), allowed, "another thread's mask is its own");
    }
}
