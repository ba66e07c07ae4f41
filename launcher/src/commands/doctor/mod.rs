//! `launcher doctor`: checks whether this machine is fit for latency figures. Each check reports
//! what it found and how to fix it.
//!
//! A *bad* finding invalidates the figures of the default run; a *note* is a possible improvement.

mod pages;
mod quiet;
mod shared;
mod switch;
mod wake;

use crate::cli::DoctorFlags;
use anyhow::Result;
use catalog::active::ActiveRun;
use planner::config::Settings;
use planner::host::{self, Machine, System};
use protocol::plan::Plan;
use record::cpu_list;
use record::machine_check::{CheckState, MachineCheck as Check};
use record::screen;
use record::switch_price::SwitchPrice;
use record::units::human_bytes;
use record::wake_times::WakeTimes;
use runtime::container::{self, cgroups};
use std::io::Write;
use std::process::ExitCode;
use system::keys;

const fn state_name(state: CheckState) -> &'static str {
    match state {
        CheckState::Ok => "ok",
        CheckState::Note => "note",
        CheckState::Bad => "BAD",
    }
}

/// Runs `launcher doctor`: checks whether this machine is fit for measurements.
pub fn doctor(flags: DoctorFlags) -> Result<ExitCode> {
    let mut checks = check_here();
    let machine = planner::host::machine();
    let page_times = pages::measure(&machine);
    checks.push(pages::check(page_times.as_ref()));
    let prices = switch::measure(&machine);
    checks.push(switch::check(&prices));
    let wakes = wake::measure(&machine);
    checks.push(wake::check(wakes.as_ref()));
    checks.push(protection_keys(keys::missing()));
    let text =
        if flags.json { json(&checks, page_times.as_ref(), &prices, wakes.as_ref()) } else { table(&checks) };
    writeln!(screen::stdout(), "{text}")?;
    Ok(if worst(&checks) < CheckState::Bad { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs all checks on this machine.
fn check_here() -> Vec<Check> {
    let (no_container, unlimited) = (container::missing(false), cgroups::unlimited_text(host::root()));
    let system = System { no_container, unlimited, ..System::read() };
    check(&planner::host::machine(), &system, &ActiveRun::all())
}

/// Checks what may be different in a minute: the quota, the load, and other runs.
fn passing(machine: &Machine, system: &System, active_runs: &[ActiveRun]) -> [Check; 3] {
    [quota(system), shared::load(machine, system), shared::runs(machine, active_runs)]
}

/// Runs the checks; `active_runs` are the active runs.
fn check(machine: &Machine, system: &System, active_runs: &[ActiveRun]) -> Vec<Check> {
    let plan = default_plan(machine);
    let [quota, load, runs] = passing(machine, system, active_runs);
    vec![
        cores(machine),
        quota,
        load,
        runs,
        clock(machine),
        governor(machine),
        siblings(machine),
        isolated(machine),
        nohz(machine),
        quiet::priority(system),
        quiet::partition(machine, system),
        quiet::tracers(system),
        contained(system),
        hypervisor(machine),
        shared::limits(system, plan.as_ref()),
        shared::mount(system),
        shm_space(machine, plan.as_ref()),
        huge_pages(system),
        swap(system),
    ]
}

fn table(checks: &[Check]) -> String {
    let mut table = planner::table();
    for check in checks {
        let text = match &check.fix {
            Some(fix) => format!("{}\n→ {fix}", check.found),
            None => check.found.clone(),
        };
        table.add_row([state_name(check.state), &check.name, &text]);
    }
    let verdict = match worst(checks) {
        CheckState::Ok => "Fit for latency figures.",
        CheckState::Note => "Fit for latency figures; notes name improvements.",
        CheckState::Bad => "Not fit for latency figures until the BAD checks are fixed.",
    };
    format!("{}\n{verdict}\n", planner::trimmed(&table))
}

/// Formats the checks as JSON: `schema`, `fit`, `checks`, the times of `pages`, the price of a
/// `switch` and the times of a `wake`.
fn json(
    checks: &[Check],
    page_times: Option<&pages::PageTimes>,
    prices: &[SwitchPrice],
    wakes: Option<&WakeTimes>,
) -> String {
    let value = serde_json::json!({
        "schema": "bulkhead.doctor/1",
        "fit": worst(checks) < CheckState::Bad,
        "checks": checks,
        "pages": page_times,
        "switch": prices,
        "wake": wakes,
    });
    format!("{value:#}")
}

fn worst(checks: &[Check]) -> CheckState {
    checks.iter().map(|check| check.state).max().unwrap_or(CheckState::Ok)
}

fn ok(name: &str, found: impl Into<String>) -> Check {
    Check { name: name.into(), state: CheckState::Ok, found: found.into(), fix: None }
}

fn note(name: &str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { name: name.into(), state: CheckState::Note, found: found.into(), fix: Some(fix.into()) }
}

fn bad(name: &str, found: impl Into<String>, fix: impl Into<String>) -> Check {
    Check { name: name.into(), state: CheckState::Bad, found: found.into(), fix: Some(fix.into()) }
}

/// Returns whether the machine can separate threads by protection keys, given why it cannot.
fn protection_keys(missing: Option<String>) -> Check {
    match missing {
        None => ok("keys", "protection keys (pku ospke): --isolation keys"),
        Some(why) => note("keys", why, "use --isolation thread or process: no other level needs them"),
    }
}

fn cores(machine: &Machine) -> Check {
    let allowed = machine.cores_allowed.len();
    let list = cpu_list::format(&machine.cores_allowed);
    let found = format!("{list}: {allowed} of {} online", machine.cores_online);
    match allowed {
        0 => bad("cores", "cannot be read", "mount /proc; without it no thread is pinned"),
        1 => bad("cores", found, "allow two cores or more (taskset -c, --cpuset-cpus for a container)"),
        _ if allowed < machine.cores_online as usize => {
            note("cores", found, "a cpuset or affinity mask hides the others: taskset -c, or --cpuset-cpus")
        }
        _ => ok("cores", found),
    }
}

/// Checks whether strategies can be contained, and what would not be limited.
fn contained(system: &System) -> Check {
    match (&system.no_container, &system.unlimited) {
        (Some(why), _) => {
            let (found, fix) = why.split_once('\n').unwrap_or((why, "see docs/src/isolation.md"));
            note("container", found, fix)
        }
        (None, Some(what)) => note(
            "container",
            format!("--isolation container can be had; {what}"),
            "hand the controllers pids, memory and cpu on to a group that may be written (systemd: Delegate=yes)",
        ),
        (None, None) => ok("container", "--isolation container can be had"),
    }
}

fn quota(system: &System) -> Check {
    match system.cpu_quota {
        None => ok("cpu quota", "none"),
        Some(cores) => bad(
            "cpu quota",
            format!("{cores:.1} CPUs: spinning threads will be stopped for milliseconds"),
            "lift cpu.max of the cgroup (a container: start it without --cpus)",
        ),
    }
}

fn clock(machine: &Machine) -> Check {
    let source = if machine.clocksource.is_empty() { "unknown" } else { &machine.clocksource };
    if machine.tsc_invariant {
        let counter = if source == "tsc" { "invariant TSC" } else { source };
        return ok("clock", format!("{counter}, trusted by the kernel"));
    }
    bad(
        "clock",
        format!("clock source {source}, no invariant TSC: stamps come from the kernel's clock and cost more"),
        "see `dmesg | grep -i tsc`; boot with tsc=reliable only if it is so, or use another machine",
    )
}

fn governor(machine: &Machine) -> Check {
    match machine.governor.as_deref() {
        None => ok("governor", "not shown here"),
        Some("performance") => ok("governor", "performance"),
        Some(other) => bad("governor", other, "cpupower frequency-set -g performance"),
    }
}

fn siblings(machine: &Machine) -> Check {
    let groups = machine.smt_siblings.len();
    if groups == 0 {
        return ok("smt", "no two allowed cores are hardware threads of one");
    }
    note(
        "smt",
        format!("{groups} cores show as two or more hardware threads each"),
        "echo off > /sys/devices/system/cpu/smt/control, or name whole cores with --cores",
    )
}

fn isolated(machine: &Machine) -> Check {
    let list = cpu_list::format(&machine.isolated);
    let mut mask = [machine.cores_allowed.as_slice(), &machine.isolated].concat();
    mask.sort_unstable();
    let usable = machine.isolated.iter().filter(|core| machine.cores_allowed.contains(core)).count();
    match (machine.isolated.len(), usable) {
        (0, _) => note(
            "isolcpus",
            "no core is kept free of other work",
            "boot with isolcpus=domain,managed_irq,LIST and start with taskset -c",
        ),
        (_, 0) => note(
            "isolcpus",
            format!("{list} isolated, but not in this process's mask"),
            format!("start with `taskset -c {} launcher …`", cpu_list::format(&mask)),
        ),
        _ => ok("isolcpus", list),
    }
}

fn nohz(machine: &Machine) -> Check {
    if machine.nohz_full.is_empty() {
        note("nohz_full", "every core is interrupted by the scheduler's tick", "boot with nohz_full=LIST")
    } else {
        ok("nohz_full", cpu_list::format(&machine.nohz_full))
    }
}

fn hypervisor(machine: &Machine) -> Check {
    match &machine.hypervisor {
        None => ok("hypervisor", "none"),
        Some(name) => note(
            "hypervisor",
            format!("{name}: it may stop a core at any time, and the tail will show it"),
            "quote tails from bare metal, or from a machine with dedicated CPUs",
        ),
    }
}

/// Returns the default run's plan on this machine, before it has a schedule.
fn default_plan(machine: &Machine) -> Option<Plan> {
    let resolved = planner::resolve(&Settings::default(), machine).ok()?;
    planner::preview(&resolved, machine).ok().map(|(plan, _)| plan)
}

fn shm_space(machine: &Machine, plan: Option<&Plan>) -> Check {
    let (free, total) = (machine.shm_free_bytes, machine.shm_total_bytes);
    if total == 0 {
        return bad("/dev/shm", "not there", "mount -t tmpfs tmpfs /dev/shm");
    }
    let needed = plan.map_or(0, planner::bytes_needed);
    let found = format!("{} free, the default run needs {}", human_bytes(free), human_bytes(needed));
    if needed <= free {
        return ok("/dev/shm", found);
    }
    let size = total.saturating_sub(free).saturating_add(needed).div_ceil(1 << 20);
    bad(
        "/dev/shm",
        found,
        format!(
            "mount -o remount,size={size}m /dev/shm (a container: --shm-size={size}m), or a smaller --capacity"
        ),
    )
}

fn huge_pages(system: &System) -> Check {
    match system.huge_pages.as_deref() {
        Some("always") => note(
            "huge pages",
            "always: the kernel may merge pages, and stop a thread, while a run lasts",
            "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        ),
        Some(mode) => ok("huge pages", mode),
        None => ok("huge pages", "not shown here"),
    }
}

fn swap(system: &System) -> Check {
    match system.swap_bytes {
        0 => ok("swap", "none"),
        bytes => {
            note("swap", format!("{}: shared memory may be swapped out", human_bytes(bytes)), "swapoff -a")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insta::assert_snapshot;
    use planner::host::fake;
    use proptest::prelude::*;

    fn checked(tree: &fake::FakeHost) -> Vec<Check> {
        check(&tree.machine(), &System::read_at(tree.root()), &[])
    }

    fn states(checks: &[Check]) -> Vec<&str> {
        checks.iter().filter(|check| check.state == CheckState::Bad).map(|check| &*check.name).collect()
    }

    #[test]
    fn small_virtual_machine_report_matches_snapshot() {
        assert_snapshot!(table(&checked(&fake::two_core_vm())), @"
        ok    cores       0,1: 2 of 2 online
        ok    cpu quota   none
        ok    load        0.1 in the last minute, on 2 CPUs
        ok    other runs  none
        ok    clock       invariant TSC, trusted by the kernel
        ok    governor    not shown here
        ok    smt         no two allowed cores are hardware threads of one
        note  isolcpus    no core is kept free of other work
                          → boot with isolcpus=domain,managed_irq,LIST and start with
                          taskset -c
        note  nohz_full   every core is interrupted by the scheduler's tick
                          → boot with nohz_full=LIST
        note  priority    no SCHED_FIFO: `ulimit -r` is 0, and CAP_SYS_NICE is missing
                          → raise ulimit -r (rtprio in /etc/security/limits.conf), or
                          setcap cap_sys_nice+ep LAUNCHER (a container: --cap-add
                          SYS_NICE)
        note  partition   cores cannot be isolated: no cgroup v2 with the cpuset
                          controller here
                          → use cgroup v2, on the host
        note  tracers     tracefs is not mounted, or not for you to read: osnoise and
                          timerlat cannot be looked for
                          → mount -t tracefs tracefs /sys/kernel/tracing, as root
        ok    container   --isolation container can be had
        note  hypervisor  unknown: it may stop a core at any time, and the tail will
                          show it
                          → quote tails from bare metal, or from a machine with
                          dedicated CPUs
        ok    ulimit      -n 4096, -u unlimited, -l 8.0 MiB (nothing is locked)
        ok    shm mount   tmpfs rw,nosuid
        ok    /dev/shm    23.4 GiB free, the default run needs 32 MiB
        ok    huge pages  madvise
        ok    swap        none

        Fit for latency figures; notes name improvements.
        ");
    }

    #[test]
    fn unfit_container_report_matches_snapshot() {
        let tree = fake::container();
        tree.put("proc/self/status", "Cpus_allowed_list:\t3\n");
        tree.put("proc/swaps", "Filename Type Size Used Priority\n/swap file 1048576 0 -2\n");
        tree.put("sys/fs/cgroup/cpu.max", "150000 100000\n");
        tree.put("sys/kernel/mm/transparent_hugepage/enabled", "[always] madvise never\n");
        tree.put("sys/devices/system/cpu/isolated", "1-2\n");
        let mut checks = checked(&tree);
        let shown = ["cores", "cpu quota", "clock", "isolcpus", "/dev/shm", "huge pages", "swap"];
        checks.retain(|check| shown.contains(&check.name.as_str()));
        assert_snapshot!(table(&checks), @"
        BAD   cores       3: 1 of 4 online
                          → allow two cores or more (taskset -c, --cpuset-cpus for a
                          container)
        BAD   cpu quota   1.5 CPUs: spinning threads will be stopped for milliseconds
                          → lift cpu.max of the cgroup (a container: start it without
                          --cpus)
        BAD   clock       clock source hpet, no invariant TSC: stamps come from the
                          kernel's clock and cost more
                          → see `dmesg | grep -i tsc`; boot with tsc=reliable only if
                          it is so, or use another machine
        note  isolcpus    1,2 isolated, but not in this process's mask
                          → start with `taskset -c 1-3 launcher …`
        ok    /dev/shm    63 MiB free, the default run needs 39 MiB
        note  huge pages  always: the kernel may merge pages, and stop a thread, while
                          a run lasts
                          → echo madvise > /sys/kernel/mm/transparent_hugepage/enabled
        note  swap        1024 MiB: shared memory may be swapped out
                          → swapoff -a

        Not fit for latency figures until the BAD checks are fixed.
        ");
    }

    #[test]
    fn benchmarks_get_current_reasons_of_unfitness() {
        let machine = fake::two_core_vm().machine();
        let unfit_at_load = |load| -> Vec<String> {
            let checks = check(&machine, &System { load: Some(load), ..System::default() }, &[]);
            checks.iter().filter(|check| check.is_temporary()).filter_map(Check::reason).collect()
        };
        assert_eq!(unfit_at_load(14.0), ["doctor: load: 14.0 in the last minute, on 2 CPUs"]);
        assert_eq!(unfit_at_load(0.6), [""; 0], "a note is no reason");
    }

    #[test]
    fn bad_checks_are_named() {
        assert_eq!(states(&checked(&fake::server())), ["governor"]);
        assert_eq!(states(&checked(&fake::container())), ["clock"]);
        assert_eq!(states(&checked(&fake::plain(32))), [""; 0]);
        let checks_of_empty_host = check(&Machine::default(), &System::default(), &[]);
        assert_eq!(states(&checks_of_empty_host), ["cores", "clock", "/dev/shm"]);
    }

    #[test]
    fn too_little_shm_for_default_run_is_bad() {
        let machine =
            Machine { shm_free_bytes: 1 << 20, shm_total_bytes: 64 << 20, ..fake::plain(2).machine() };
        let checks = check(&machine, &System::default(), &[]);
        let shm_space = checks.iter().find(|check| check.name == "/dev/shm").unwrap();
        assert_eq!(shm_space.state, CheckState::Bad);
        assert!(shm_space.fix.as_ref().unwrap().contains("remount,size="), "{shm_space:?}");
    }

    #[test]
    fn json_has_the_checks_of_the_table() {
        let checks = checked(&fake::two_core_vm());
        let value: serde_json::Value = serde_json::from_str(&json(&checks, None, &[], None)).unwrap();
        assert_eq!(value["fit"], true);
        assert_eq!(value["checks"].as_array().unwrap().len(), checks.len());
        assert_eq!(value["checks"][0]["name"], "cores");
        assert_eq!(value["checks"][0]["state"], "ok");
    }

    proptest! {
        #[test]
        fn every_table_fits_the_page(cores in 0u32..500, name in "[ -~]{0,90}", swap: u64, quota: f64) {
            let machine = Machine {
                cores_allowed: (0..cores).map(|core| core * 2).collect(),
                hypervisor: Some(name.clone()),
                governor: Some(name),
                ..Machine::default()
            };
            let system = System {
                swap_bytes: swap,
                cpu_quota: Some(quota.abs().min(1e4)),
                load: Some(quota.abs()),
                ..System::default()
            };
            for line in table(&check(&machine, &system, &[])).lines() {
                prop_assert!(line.chars().count() <= 80, "{}", line);
            }
        }
    }
}
