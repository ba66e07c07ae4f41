//! Reads the facts of the host from `/proc` and `/sys`.
//!
//! Every file may be missing, empty or malformed (containers hide some, other architectures lack
//! some): then its fact stays empty. Functions take the root of the tree, so that tests read
//! recorded ones.

use super::Machine;
use super::files::{field, list, text};
use record::cpu_list;
use std::collections::BTreeSet;
use std::path::Path;

/// Size and free space of a file system, in bytes; both are 0 if they cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FsSpace {
    /// Size of the file system, in bytes.
    pub total_bytes: u64,
    /// Free space that this user can still allocate, in bytes.
    pub free_bytes: u64,
}

impl FsSpace {
    /// Reads size and free space, in bytes, of the file system at `path`; zeros if they cannot be
    /// read.
    pub fn at(path: &Path) -> FsSpace {
        nix::sys::statvfs::statvfs(path).map_or(FsSpace::default(), |space| {
            // The field's types differ between platforms.
            #[allow(clippy::useless_conversion, clippy::unnecessary_cast)]
            let bytes = |blocks| (blocks as u64).saturating_mul(space.fragment_size() as u64);
            FsSpace { total_bytes: bytes(space.blocks()), free_bytes: bytes(space.blocks_available()) }
        })
    }
}

/// Reads the facts of this machine (CPUs, caches, memory); the variable `BULKHEAD_HOST` overrides
/// its host name.
pub fn machine() -> Machine {
    let root = Path::new("/");
    let mut machine = machine_at(root, FsSpace::at(&root.join("dev/shm")));
    if let Some(host) = std::env::var(HOST).ok().filter(|host| !host.trim().is_empty()) {
        machine.hostname = host.trim().to_owned();
    }
    machine
}

/// Overrides the host name, for containers that get another one at every start.
const HOST: &str = "BULKHEAD_HOST";

/// Reads CPUs, caches and memory of the machine described by the `proc` and `sys` under `root`.
pub fn machine_at(root: &Path, shm: FsSpace) -> Machine {
    let cpuinfo = text(root, "proc/cpuinfo");
    let clocksource = text(root, "sys/devices/system/clocksource/clocksource0/current_clocksource");
    let allowed = allowed(root, &cpuinfo);
    Machine {
        hostname: text(root, "proc/sys/kernel/hostname"),
        cpu_model: field(&cpuinfo, "model name").or_else(|| field(&cpuinfo, "Model")).unwrap_or_default(),
        hypervisor: hypervisor(root, &cpuinfo),
        cores_online: u32::try_from(online(root, &cpuinfo).len()).unwrap_or(u32::MAX),
        smt_siblings: groups(&allowed, 2, |core| {
            let topology = format!("sys/devices/system/cpu/cpu{core}/topology");
            list(root, &format!("{topology}/core_cpus_list"))
                .or_else(|| list(root, &format!("{topology}/thread_siblings_list")))
        }),
        llc_groups: groups(&allowed, 1, |core| last_level_cache(root, core)),
        numa_nodes: numa_nodes(root, &allowed),
        isolated: list(root, "sys/devices/system/cpu/isolated").unwrap_or_default(),
        nohz_full: list(root, "sys/devices/system/cpu/nohz_full").unwrap_or_default(),
        governor: governor(root, &allowed),
        // The generic timer of aarch64 goes on at one rate by its definition.
        tsc_invariant: clocksource == "arch_sys_counter"
            || clocksource == "tsc"
                && ["constant_tsc", "nonstop_tsc"].iter().all(|flag| has_flag(&cpuinfo, flag)),
        clocksource,
        kernel: text(root, "proc/sys/kernel/osrelease"),
        memory_bytes: memory(root),
        shm_free_bytes: shm.free_bytes,
        shm_total_bytes: shm.total_bytes,
        switching: super::switching::read(root, &cpuinfo),
        cores_allowed: allowed,
    }
}

fn has_flag(cpuinfo: &str, flag: &str) -> bool {
    field(cpuinfo, "flags").is_some_and(|flags| flags.split_whitespace().any(|f| f == flag))
}

fn online(root: &Path, cpuinfo: &str) -> Vec<u32> {
    list(root, "sys/devices/system/cpu/online").unwrap_or_else(|| {
        let numbers = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        numbers
            .filter(|(key, _)| key.trim() == "processor")
            .filter_map(|(_, n)| n.trim().parse().ok())
            .collect()
    })
}

/// Returns the affinity mask without CPUs that are possible but not online.
fn allowed(root: &Path, cpuinfo: &str) -> Vec<u32> {
    let online = online(root, cpuinfo);
    let mask =
        field(&text(root, "proc/self/status"), "Cpus_allowed_list").and_then(|list| cpu_list::parse(&list));
    match mask {
        Some(mask) if online.is_empty() => mask,
        Some(mask) => mask.into_iter().filter(|core| online.contains(core)).collect(),
        None => online,
    }
}

/// Returns the groups of allowed cores by `members`, with at least `min` cores each; each core in
/// one group.
fn groups(allowed: &[u32], min_size: usize, members: impl Fn(u32) -> Option<Vec<u32>>) -> Vec<Vec<u32>> {
    let mut visited = BTreeSet::new();
    let mut groups = Vec::new();
    for &core in allowed {
        if visited.contains(&core) {
            continue;
        }
        let Some(group) = members(core) else { continue };
        let group: Vec<u32> =
            group.into_iter().filter(|other| allowed.contains(other) && visited.insert(*other)).collect();
        if group.len() >= min_size {
            groups.push(group);
        }
    }
    groups
}

fn last_level_cache(root: &Path, core: u32) -> Option<Vec<u32>> {
    (0..8)
        .filter_map(|index| {
            let cache = format!("sys/devices/system/cpu/cpu{core}/cache/index{index}");
            let level: u32 = text(root, &format!("{cache}/level")).parse().ok()?;
            Some((level, list(root, &format!("{cache}/shared_cpu_list"))?))
        })
        .max_by_key(|(level, _)| *level)
        .map(|(_, sharers)| sharers)
}

fn numa_nodes(root: &Path, allowed: &[u32]) -> Vec<Vec<u32>> {
    let nodes = list(root, "sys/devices/system/node/online").unwrap_or_default();
    let cores = |node: u32| list(root, &format!("sys/devices/system/node/node{node}/cpulist"));
    nodes
        .into_iter()
        .filter_map(cores)
        .map(|cores| cores.into_iter().filter(|core| allowed.contains(core)).collect::<Vec<_>>())
        .filter(|cores| !cores.is_empty())
        .collect()
}

/// Returns the frequency governor of the allowed cores; several are joined with a comma.
fn governor(root: &Path, allowed: &[u32]) -> Option<String> {
    let names: BTreeSet<String> = allowed
        .iter()
        .map(|core| text(root, &format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor")))
        .filter(|name| !name.is_empty())
        .collect();
    let names: Vec<String> = names.into_iter().collect();
    if names.is_empty() { None } else { Some(names.join(", ")) }
}

/// Returns the hypervisor's name, or `unknown` if only the CPU flag shows one.
fn hypervisor(root: &Path, cpuinfo: &str) -> Option<String> {
    let xen = text(root, "sys/hypervisor/type");
    if !xen.is_empty() {
        return Some(xen);
    }
    if !has_flag(cpuinfo, "hypervisor") {
        return None;
    }
    let vendor = text(root, "sys/class/dmi/id/sys_vendor");
    Some(if vendor.is_empty() { "unknown".into() } else { vendor })
}

fn memory(root: &Path) -> u64 {
    let total = field(&text(root, "proc/meminfo"), "MemTotal").unwrap_or_default();
    let kilobytes = total.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    kilobytes.saturating_mul(1024)
}
