//! Doctor checks of shared resources: load, other runs, user limits, `/dev/shm`.

use super::{Check, bad, note, ok};
use catalog::active::ActiveRun;
use planner::host::{Machine, System};
use protocol::plan::Plan;
use record::units::human_bytes;
use std::collections::BTreeSet;

/// Share of the CPUs from which the load is worth a note; a load of all CPUs invalidates figures.
const SOME_LOAD: f64 = 0.25;

/// Checks for `launcher doctor` the load of the machine by other programs.
pub fn load(machine: &Machine, system: &System) -> Check {
    let Some(load) = system.load else { return ok("load", "not shown here") };
    let cores = machine.cores_online.max(1);
    let found = format!("{load:.1} in the last minute, on {cores} CPUs");
    let fix = "see `top`: end what else runs, and wait a minute";
    if load >= f64::from(cores) {
        bad("load", found, fix)
    } else if load >= f64::from(cores) * SOME_LOAD {
        note("load", found, fix)
    } else {
        ok("load", found)
    }
}

/// Checks for `launcher doctor` whether active runs hold the cores that a run may use.
pub fn runs(machine: &Machine, active_runs: &[ActiveRun]) -> Check {
    let allowed: BTreeSet<u32> = machine.cores_allowed.iter().copied().collect();
    if active_runs.is_empty() {
        return ok("other runs", "none");
    }
    let describe = |run: &ActiveRun| match run.cores.is_empty() {
        true => format!("run {} (pid {}) uses cores that could not be determined", run.run, run.pid),
        false => run.describe_cores(&run.cores.iter().copied().collect::<Vec<_>>()),
    };
    let found: Vec<String> = active_runs.iter().map(describe).collect();
    let found = found.join("; ");
    let fix = "wait for the end, or measure on other cores with --cores";
    if active_runs.iter().any(|run| run.cores.is_empty() || !run.shared_cores(&allowed).is_empty()) {
        bad("other runs", found, fix)
    } else {
        note("other runs", found, "they share caches and memory with you: wait for the end to be sure")
    }
}

/// Checks for `launcher doctor` whether shared memory can be written, and how it is mounted.
pub fn mount(system: &System) -> Check {
    let Some(mount) = &system.shm_mount else {
        return note("shm mount", "/dev/shm is not a separate mount", "mount -t tmpfs tmpfs /dev/shm");
    };
    let found = format!("{} {}", mount.kind, mount.flags.join(","));
    if mount.flags.iter().any(|flag| flag == "ro") {
        return bad(
            "shm mount",
            format!("{found}: read-only, no run can start"),
            "mount -o remount,rw /dev/shm",
        );
    }
    if mount.kind != "tmpfs" {
        let why = format!("{found}: not tmpfs, the kernel may write pages to a disk");
        return note("shm mount", why, "mount -t tmpfs tmpfs /dev/shm");
    }
    ok("shm mount", found)
}

/// Checks for `launcher doctor` the limits of open files, processes and locked memory against what
/// the default run needs.
pub fn limits(system: &System, plan: Option<&Plan>) -> Check {
    let describe_limit = |name: &str, limit: Option<u64>| match limit {
        None => format!("{name} unlimited"),
        Some(limit) => format!("{name} {limit}"),
    };
    let limits = &system.limits;
    let locked = limits.locked_bytes.map_or_else(|| "unlimited".into(), human_bytes);
    let found = format!(
        "{}, {}, -l {locked} (nothing is locked)",
        describe_limit("-n", limits.files),
        describe_limit("-u", limits.processes)
    );
    let is_too_low = |limit: Option<u64>, needed: u64| limit.is_some_and(|limit| limit < needed);
    let files = plan.map_or(0, planner::descriptors_needed);
    // Each process and thread counts, with the launcher, its reaper and the saving thread.
    let tasks = plan.map_or(0, |plan| (plan.processes.len() + plan.threads.len()) as u64 + 3);
    if is_too_low(limits.files, files) {
        return bad(
            "ulimit",
            format!("{found}; the default run opens {files} files"),
            "ulimit -Hn, and raise it",
        );
    }
    if is_too_low(limits.processes, tasks) {
        let why = format!("{found}; the default run has {tasks} processes and threads");
        return bad("ulimit", why, "raise ulimit -u (in a container: --pids-limit)");
    }
    ok("ulimit", found)
}

#[cfg(test)]
mod tests {
    use super::super::CheckState::{Bad, Note, Ok as Fine};
    use super::*;
    use planner::host::{Limits, Mount, fake};

    #[test]
    fn a_busy_machine_is_not_fit() {
        let machine = fake::two_core_vm().machine();
        for (load, state) in [(None, Fine), (Some(0.1), Fine), (Some(0.6), Note), (Some(2.0), Bad)] {
            let check = super::load(&machine, &System { load, ..System::default() });
            assert_eq!(check.state, state, "{load:?}");
        }
    }

    #[test]
    fn run_on_the_same_cores_is_named_with_them() {
        let machine = fake::two_core_vm().machine();
        // Nobody knows where a run without cores is.
        for (cores, state) in [(&[4, 5][..], Note), (&[], Bad), (&[0, 1], Bad)] {
            let run = "20260101-000000000-1-2".into();
            let found = runs(&machine, &[ActiveRun { run, pid: 2, cores: cores.iter().copied().collect() }]);
            assert_eq!(found.state, state, "{found:?}");
            let named = "run 20260101-000000000-1-2 (pid 2) holds cores 0,1";
            assert!(cores != [0, 1] || found.found == named, "{found:?}");
        }
        assert_eq!(runs(&machine, &[]).state, Fine);
    }

    #[test]
    fn unwritable_mount_is_bad() {
        let shm = |kind: &str, flags: &str| {
            Some(Mount { kind: kind.into(), flags: flags.split(',').map(str::to_owned).collect() })
        };
        for (shm_mount, state) in [
            (shm("tmpfs", "rw,nosuid"), Fine),
            (shm("tmpfs", "ro,nosuid"), Bad),
            (shm("overlay", "rw"), Note),
            (None, Note),
        ] {
            let check = mount(&System { shm_mount, ..System::default() });
            assert_eq!(check.state, state, "{check:?}");
        }
    }

    #[test]
    fn limits_below_default_run_are_bad() {
        let plan = super::super::default_plan(&fake::two_core_vm().machine()).unwrap();
        for (files, processes, state) in
            [(None, None, Fine), (Some(1024), Some(1000), Fine), (Some(20), None, Bad), (None, Some(3), Bad)]
        {
            let limits = Limits { files, processes, locked_bytes: Some(8 << 20) };
            let check = super::limits(&System { limits, ..System::default() }, Some(&plan));
            assert_eq!(check.state, state, "{check:?}");
        }
    }
}
