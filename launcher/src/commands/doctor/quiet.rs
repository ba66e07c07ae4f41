//! Doctor checks of isolation: real-time priority, isolated cores, kernel tracers.

use super::{Check, note, ok};
use planner::host::{Machine, RealTime, System};
use record::cpu_list;

const USUAL_PRIORITY: u8 = 50;

/// Checks for `launcher doctor` whether real-time scheduling (`--priority`) is available, and what
/// it would improve.
pub fn priority(system: &System) -> Check {
    let found: &RealTime = &system.real_time;
    if let Some((why, fix)) = found.obstacle(USUAL_PRIORITY) {
        return note("priority", format!("no SCHED_FIFO: {why}"), fix);
    }
    let brings = format!("--priority fifo:{USUAL_PRIORITY} keeps ordinary threads off the measured cores");
    match found.describe_withheld() {
        None => ok("priority", brings),
        Some(taken) => note(
            "priority",
            format!("{brings}; the kernel takes such threads away {taken}"),
            "leave a core for the rest, then sysctl kernel.sched_rt_runtime_us=-1",
        ),
    }
}

/// Checks for `launcher doctor` whether all cores but the first can be reserved by an isolated
/// cpuset partition and by moving interrupts.
pub fn partition(machine: &Machine, system: &System) -> Check {
    let mount = match (&system.partitions, machine.cores_allowed.len()) {
        (None, _) => {
            let found = "cores cannot be isolated: no cgroup v2 with the cpuset controller here";
            return note("partition", found, "use cgroup v2, on the host");
        }
        (Some(_), ..2) => {
            return note("partition", "a core must be left for everything else", "allow two cores or more");
        }
        (Some(mount), _) => mount.display(),
    };
    let (rest, cores) = machine.cores_allowed.split_at(1);
    let (rest, cores) = (cpu_list::format(rest), cpu_list::format(cores));
    note(
        "partition",
        "by hand, as root, other programs and interrupts can be kept off the measured cores",
        format!(
            "in the shell that starts the launcher: `cd {mount} && echo +cpuset >cgroup.subtree_control; mkdir quiet && cd quiet && \
             echo {cores} >cpuset.cpus && echo isolated >cpuset.cpus.partition && echo $$ >cgroup.procs && cd -`, and `for irq in \
             /proc/irq/*/smp_affinity_list; do echo {rest} >$irq; done`"
        ),
    )
}

/// Checks for `launcher doctor` whether the kernel has the tracers `osnoise` and `timerlat`, which
/// show what interrupted a thread: interrupts, other threads or the hypervisor.
pub fn tracers(system: &System) -> Check {
    let Some(tracers) = &system.tracers else {
        return note(
            "tracers",
            "tracefs is not mounted, or not for you to read: osnoise and timerlat cannot be looked for",
            "mount -t tracefs tracefs /sys/kernel/tracing, as root",
        );
    };
    let has = |name: &str| tracers.iter().any(|tracer| tracer == name);
    if has("osnoise") && has("timerlat") {
        return ok("tracers", "osnoise and timerlat: `rtla osnoise top -c CORES` tells whose work a gap was");
    }
    note(
        "tracers",
        format!("tracefs has no osnoise and timerlat, only: {}", tracers.join(" ")),
        "a kernel with CONFIG_OSNOISE_TRACER and CONFIG_TIMERLAT_TRACER",
    )
}

#[cfg(test)]
mod tests {
    use super::super::CheckState::{Note, Ok as Fine};
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn priority_check_names_benefit_and_obstacle() {
        let check_of = |real_time| priority(&System { real_time, ..System::default() });
        let missing = check_of(RealTime::default());
        assert!(missing.state == Note && missing.found.contains("no SCHED_FIFO"), "{missing:?}");
        let free = RealTime { is_capable: true, runtime_us: Some(-1), ..RealTime::default() };
        assert_eq!(check_of(free.clone()).state, Fine);
        let throttled = check_of(RealTime { runtime_us: Some(950_000), period_us: Some(1_000_000), ..free });
        assert!(throttled.found.contains("away for up to 50 ms each second"), "{throttled:?}");
        assert!(throttled.fix.unwrap().contains("sched_rt_runtime_us=-1"));
    }

    #[test]
    fn partition_check_shows_commands() {
        let check_of = |cores: u32, mount: Option<&str>| {
            let machine = Machine { cores_allowed: (0..cores).collect(), ..Machine::default() };
            let partitions = mount.map(PathBuf::from);
            partition(&machine, &System { partitions, ..System::default() })
        };
        let fix = check_of(4, Some("/sys/fs/cgroup")).fix.unwrap();
        assert!(fix.contains("cd /sys/fs/cgroup &&") && fix.contains("echo 1-3 >cpuset.cpus"), "{fix}");
        assert!(fix.contains("smp_affinity_list; do echo 0 >"), "{fix}");
        assert!(check_of(1, Some("/sys/fs/cgroup")).found.contains("a core must be left"));
        assert!(check_of(2, None).found.contains("cannot be isolated"));
    }

    #[test]
    fn tracers_are_reported_only_if_readable() {
        for (list, state, expected) in [
            (Some("timerlat osnoise blk nop"), Fine, "osnoise and timerlat"),
            (Some("blk nop"), Note, "only: blk nop"),
            (None, Note, "not mounted"),
        ] {
            let list = list.map(|list| list.split(' ').map(str::to_owned).collect());
            let check = tracers(&System { tracers: list, ..System::default() });
            assert!(check.state == state && check.found.contains(expected), "{check:?}");
        }
    }
}
