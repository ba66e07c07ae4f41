//! Picks the cores for the threads of a run.
//!
//! By priority: isolated cores if there are enough; the first ones left to the launcher and the
//! operating system if enough remain; whole cores before the second hardware threads of used ones;
//! all under one last-level cache, otherwise on one NUMA node, otherwise on as few groups as
//! possible.

use crate::host::Machine;
use std::cmp::Reverse;

/// Maximum number of cores left to the launcher and the operating system.
const RESERVED: usize = 2;

/// Picks `count` cores of the usable ones, or all of them if there are fewer.
///
/// The order is meant for threads with the strategies first and the engine last: cores that share a
/// physical core with another picked one come first, so the engine at the end gets a whole one if
/// any thread does. On two cores that is core 0 for the strategy and core 1 for the engine, away
/// from where most interrupts arrive.
pub(super) fn pick(count: usize, usable: &[u32], machine: &Machine) -> Vec<u32> {
    let count = count.min(usable.len());
    let isolated: Vec<u32> = usable.iter().copied().filter(|core| machine.isolated.contains(core)).collect();
    let isolated = if isolated.len() >= count { isolated } else { Vec::new() };
    // A role on a sibling of another costs more than a launcher without its own core. Of equal
    // choices the last one wins, which leaves the most cores.
    let count_unshared = |ranked: &Ranked| ranked.iter().filter(|(rank, _)| *rank == 0).count().min(count);
    let candidates = (0..=RESERVED.min(usable.len() - count))
        .map(|reserve| ranked(&isolated, usable, reserve, machine))
        .max_by_key(count_unshared)
        .unwrap_or_default();
    let mut picked = pick_near(count, &candidates, machine);
    let all = picked.clone();
    let paired = |core: u32| siblings(core, machine).any(|other| all.contains(&other));
    picked.sort_by_key(|core| (!paired(*core), group_of(*core, machine), *core));
    picked
}

pub(super) fn count_physical(cores: &[u32], machine: &Machine) -> usize {
    let first =
        |core: &&u32| !siblings(**core, machine).any(|other| other < **core && cores.contains(&other));
    cores.iter().filter(first).count()
}

/// Candidates with how many of their siblings are taken before them (whole cores have none), fewest
/// first.
type Ranked = Vec<(usize, u32)>;

/// The isolated cores if there are any, else the usable ones without the first `reserve`.
fn ranked(isolated: &[u32], usable: &[u32], reserve: usize, machine: &Machine) -> Ranked {
    let (reserved, candidates) =
        if isolated.is_empty() { usable.split_at(reserve) } else { (&usable[..0], isolated) };
    let rank = |core: u32| {
        let before = |other: &u32| reserved.contains(other) || (candidates.contains(other) && *other < core);
        siblings(core, machine).filter(before).count()
    };
    let mut ranked: Ranked = candidates.iter().map(|core| (rank(*core), *core)).collect();
    ranked.sort_unstable();
    ranked
}

/// The other hardware threads of a core.
fn siblings(core: u32, machine: &Machine) -> impl Iterator<Item = u32> {
    let group = machine.smt_siblings.iter().find(move |group| group.contains(&core));
    group.into_iter().flatten().copied().filter(move |other| *other != core)
}

/// Picks `count` whole cores of one cache group or node that has enough, otherwise of as few
/// groups as possible; second hardware threads only when all whole cores are used.
fn pick_near(count: usize, candidates: &Ranked, machine: &Machine) -> Vec<u32> {
    let unshared: Vec<u32> =
        candidates.iter().filter(|(rank, _)| *rank == 0).map(|(_, core)| *core).collect();
    for group in machine.llc_groups.iter().chain(&machine.numa_nodes) {
        let inside: Vec<u32> = unshared.iter().copied().filter(|core| group.contains(core)).collect();
        if inside.len() >= count {
            return inside.into_iter().take(count).collect();
        }
    }
    let size = |group| candidates.iter().filter(|(_, core)| group_of(*core, machine) == group).count();
    let mut sorted: Vec<_> = candidates
        .iter()
        .map(|&(rank, core)| {
            let group = group_of(core, machine);
            (rank, Reverse(size(group)), group, core)
        })
        .collect();
    sorted.sort_unstable();
    sorted.into_iter().take(count).map(|(.., core)| core).collect()
}

fn group_of(core: u32, machine: &Machine) -> Option<usize> {
    machine.llc_groups.iter().position(|group| group.contains(&core))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake;
    use proptest::prelude::*;

    #[test]
    fn cores_are_picked_by_priority() {
        let (server, plain) = (fake::server().machine(), |cores| fake::plain(cores).machine());
        let isolated = Machine { isolated: vec![5, 6, 7], ..plain(8) };
        for (count, machine, cores) in [
            // The first ones are reserved if enough remain.
            (2, &plain(2), &[0, 1][..]),
            (2, &plain(3), &[1, 2]),
            (2, &plain(8), &[2, 3]),
            (9, &plain(2), &[0, 1]),
            (3, &Machine::default(), &[]),
            // Whole cores left of one cache after 0 and 1 are reserved: 2, 3 on the first; 4 to 7
            // on the second.
            (2, &server, &[2, 3]),
            (4, &server, &[4, 5, 6, 7]),
            // All whole ones, grouped by cache; then the launcher gives up its core.
            (6, &server, &[2, 3, 4, 5, 6, 7]),
            (7, &server, &[1, 2, 3, 4, 5, 6, 7]),
            // Isolated ones, if there are enough.
            (3, &isolated, &[5, 6, 7]),
            (4, &isolated, &[2, 3, 4, 5]),
        ] {
            assert_eq!(pick(count, &machine.cores_allowed, machine), cores, "{count}");
        }
        let pair = pick(9, &server.cores_allowed, &server);
        assert_eq!(pair[..3], [0, 8, 1], "one pair, and it is not the engine's at the end");
        assert_eq!(pick(3, &[2, 3, 10], &server), [2, 10, 3], "the engine has an unshared core first");
    }

    #[test]
    fn hardware_threads_of_one_core_count_once() {
        let server = fake::server().machine();
        assert_eq!(count_physical(&server.cores_allowed, &server), 8);
        assert_eq!(count_physical(&[1, 9, 10, 3], &server), 3);
    }

    proptest! {
        #[test]
        fn each_core_is_picked_once(
            count in 1usize..40, cores in 1u32..40, smt: bool, split in 1u32..40,
            isolated in proptest::collection::btree_set(0u32..40, 0..10),
        ) {
            let all: Vec<u32> = (0..cores).collect();
            let (low, high): (Vec<u32>, Vec<u32>) = all.iter().partition(|core| **core < split);
            let machine = Machine {
                cores_allowed: all.clone(),
                smt_siblings: if smt { all.chunks_exact(2).map(<[u32]>::to_vec).collect() } else { vec![] },
                llc_groups: vec![low, high],
                isolated: isolated.into_iter().collect(),
                ..Machine::default()
            };
            let mut picked = pick(count, &all, &machine);
            prop_assert_eq!(picked.len(), count.min(all.len()));
            picked.sort_unstable();
            picked.dedup();
            prop_assert_eq!(picked.len(), count.min(all.len()));
            prop_assert!(picked.iter().all(|core| all.contains(core)));
        }
    }
}
