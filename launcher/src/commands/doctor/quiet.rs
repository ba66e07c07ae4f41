//! What would keep others off the measured cores, and what would tell who was there: real-time priority, isolated cores, the
//! kernel's tracers.

use super::{Check, note, ok};
use crate::host::{Machine, RealTime, System};

/// A priority in the middle of those that there are: what people take.
const USUAL: u8 = 50;

/// Whether `--priority` can be had, and what it would bring.
pub fn priority(system: &System) -> Check {
    let found: &RealTime = &system.real_time;
    if let Some((why, fix)) = found.obstacle(USUAL) {
        return note("priority", format!("no SCHED_FIFO: {why}"), fix);
    }
    let brings = format!("--priority fifo:{USUAL} keeps ordinary threads off the measured cores");
    match found.taken() {
        None => ok("priority", brings),
        Some(taken) => note(
            "priority",
            format!("{brings}; the kernel takes such threads away {taken}"),
            "leave a core for the rest, then sysctl kernel.sched_rt_runtime_us=-1",
        ),
    }
}

/// Whether `--isolate` can be had, and what it would bring.
pub fn isolate(machine: &Machine, system: &System) -> Check {
    match &system.no_partition {
        Some(why) => {
            note("isolate", format!("cores cannot be isolated: {why}"), "root, with cgroup v2, on the host")
        }
        None if machine.cores_allowed.len() < 2 => {
            note("isolate", "a core must be left for everything else", "allow two cores or more")
        }
        None => ok(
            "isolate",
            "--isolate keeps other programs, the scheduler's balancing and most interrupts off the measured cores",
        ),
    }
}

/// Whether the kernel can tell interrupts, soft interrupts, threads and the hypervisor apart.
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

    #[test]
    fn priority_is_told_with_what_it_brings_and_what_it_lacks() {
        let of = |real_time| priority(&System { real_time, ..System::default() });
        let missing = of(RealTime::default());
        assert!(missing.state == Note && missing.found.contains("no SCHED_FIFO"), "{missing:?}");
        let free = RealTime { is_capable: true, runtime_us: Some(-1), ..RealTime::default() };
        assert_eq!(of(free.clone()).state, Fine);
        let throttled = of(RealTime { runtime_us: Some(950_000), period_us: Some(1_000_000), ..free });
        assert!(throttled.found.contains("away for up to 50 ms each second"), "{throttled:?}");
        assert!(throttled.fix.unwrap().contains("sched_rt_runtime_us=-1"));
    }

    #[test]
    fn isolation_needs_a_partition_and_a_core_for_the_rest() {
        let of = |cores: u32, why: Option<&str>| {
            let machine = Machine { cores_allowed: (0..cores).collect(), ..Machine::default() };
            isolate(&machine, &System { no_partition: why.map(str::to_owned), ..System::default() })
        };
        assert_eq!(of(2, None).state, Fine);
        assert_eq!(of(1, None).state, Note);
        assert!(of(2, Some("no such thing")).found.contains("isolated: no such thing"));
    }

    #[test]
    fn tracers_are_looked_for_where_they_may_be_read() {
        let of = |list: Option<&str>| {
            let tracers = list.map(|list| list.split(' ').map(str::to_owned).collect());
            tracers_check(&System { tracers, ..System::default() })
        };
        fn tracers_check(system: &System) -> (super::super::CheckState, String) {
            let check = tracers(system);
            (check.state, check.found)
        }
        assert_eq!(of(Some("timerlat osnoise blk nop")).0, Fine);
        assert!(of(Some("blk nop")).1.contains("only: blk nop"));
        assert!(of(None).1.contains("not mounted"));
    }
}
