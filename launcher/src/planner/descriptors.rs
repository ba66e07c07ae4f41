//! How many files a run has open at once, and what to do if that is more than is allowed.

use anyhow::{Context, Result, bail};
use protocol::plan::{Isolation, Plan};
use protocol::topology;
use system::descriptors;

/// What the launcher and each role have open beside what grows with the run: terminal, files being written, pipes.
const SPARE: u64 = 64;

/// The most descriptors that one process of the run has at once: the launcher, which watches every process and, where memory
/// is handed over, holds each segment twice; or the engine, which has a connection to each strategy and gateway in the
/// techniques that go through the kernel.
pub fn descriptors_needed(plan: &Plan) -> u64 {
    let sealed = || 2 * topology::segments(plan).iter().filter(|segment| segment.is_sealed(plan)).count();
    let segments = match plan.isolation {
        Isolation::Sandbox => 2 * topology::segments(plan).len(),
        // Of each container it watches the first process and the strategy as well.
        Isolation::Container => sealed() + 2 * usize::from(plan.trading().strategies),
        Isolation::Thread | Isolation::Process => 0,
    };
    let ends = 2 * (usize::from(plan.trading().strategies) + usize::from(plan.trading().gateways()));
    (segments + ends.max(plan.processes.len() + 1)) as u64 + SPARE
}

/// Raises this process's limit of open files to what the plan needs.
///
/// # Errors
/// How many are needed and how many the hard limit allows, and the way out.
pub fn allow_descriptors(plan: &Plan) -> Result<()> {
    let needed = descriptors_needed(plan);
    let allowed = descriptors::allow(needed).context("cannot raise the limit of open files")?;
    if allowed < needed {
        let process = match plan.isolation {
            Isolation::Container | Isolation::Sandbox => ", --isolation process",
            Isolation::Thread | Isolation::Process => "",
        };
        bail!(
            "this run has {needed} files open at once and {allowed} are allowed (ulimit -Hn).\n\
             Use fewer --strategies{process}, or raise the hard limit (in a container: --ulimit nofile={needed})"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::tests::planned;
    use super::*;
    use crate::host::fake;

    #[test]
    fn only_memory_that_is_handed_over_takes_descriptors() {
        let machine = fake::two_core_vm().machine();
        let needed = |words: &str| descriptors_needed(&planned(words, &machine).unwrap().1);
        assert!(needed("strategies=70 isolation=sandbox") > 1024);
        assert!(needed("strategies=70 isolation=container") > 512);
        assert!(needed("strategies=70") < 256 && needed("strategies=256 venues=64") < 1024);
        assert!(needed("strategies=70 isolation=thread") < 256);
    }
}
