//! Recorded `proc` and `sys` trees of other machines, for tests.

use super::Machine;
use super::read::{FsSpace, machine_at};
use tempfile::TempDir;

/// A test's imitation of a machine's `proc` and `sys` in a temporary folder.
pub struct FakeHost {
    dir: TempDir,
    shm: FsSpace,
}

/// Files of the imitated machine whose contents a test may corrupt.
pub const PATHS: [&str; 8] = [
    "proc/cpuinfo",
    "proc/self/status",
    "proc/meminfo",
    "sys/devices/system/cpu/online",
    "sys/devices/system/cpu/isolated",
    "sys/devices/system/cpu/cpu0/cache/index3/level",
    "sys/devices/system/cpu/cpu0/cache/index3/shared_cpu_list",
    "sys/devices/system/node/online",
];

impl FakeHost {
    fn new(free_mib: u64, total_mib: u64) -> FakeHost {
        let shm = FsSpace { total_bytes: total_mib << 20, free_bytes: free_mib << 20 };
        FakeHost { dir: tempfile::tempdir().unwrap(), shm }
    }

    /// Writes a file of the imitated tree at a path relative to its root.
    pub fn put(&self, path: &str, contents: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    /// Returns the directory with the imitated `proc` and `sys`.
    pub fn root(&self) -> &std::path::Path {
        self.dir.path()
    }

    /// Reads the facts of the imitated machine from its files.
    pub fn machine(&self) -> Machine {
        machine_at(self.dir.path(), self.shm)
    }

    fn common(&self, cores: u32, allowed: &str, flags: &str, clocksource: &str) {
        let cpu = format!("model name\t: Fake CPU 2.6GHz\nflags\t\t: fpu tsc {flags}\n\n");
        let cpuinfo: String = (0..cores).map(|n| format!("processor\t: {n}\n{cpu}")).collect();
        self.put("proc/cpuinfo", &cpuinfo);
        self.put(
            "proc/self/status",
            &format!("Name:\tlauncher\nCpus_allowed:\tff\nCpus_allowed_list:\t{allowed}\n"),
        );
        self.put("proc/meminfo", "MemTotal:       24684084 kB\nMemFree:        22530808 kB\n");
        self.put("proc/sys/kernel/hostname", "box\n");
        self.put("proc/sys/kernel/osrelease", "6.18.44\n");
        self.put("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
        self.put("proc/loadavg", "0.12 0.08 0.01 1/345 6789\n");
        self.put(
            "proc/self/limits",
            "Limit                     Soft Limit           Hard Limit           Units     \n\
             Max processes             unlimited            unlimited            processes \n\
             Max open files            1024                 4096                 files     \n\
             Max locked memory         8388608              8388608              bytes     \n",
        );
        self.put(
            "proc/self/mounts",
            "overlay / overlay rw 0 0\ntmpfs /dev/shm tmpfs rw,nosuid,size=24684092k 0 0\n",
        );
        self.put("sys/devices/system/cpu/online", &format!("0-{}\n", cores - 1));
        self.put("sys/devices/system/cpu/isolated", "\n");
        self.put(
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            &format!("{clocksource}\n"),
        );
        self.put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
    }

    fn core(&self, core: u32, siblings: &str, llc: &str) {
        let cpu = format!("sys/devices/system/cpu/cpu{core}");
        self.put(&format!("{cpu}/topology/thread_siblings_list"), siblings);
        for (index, level, sharers) in [(0, 1, siblings), (2, 2, siblings), (3, 3, llc)] {
            self.put(&format!("{cpu}/cache/index{index}/level"), &format!("{level}\n"));
            self.put(&format!("{cpu}/cache/index{index}/shared_cpu_list"), &format!("{sharers}\n"));
        }
    }
}

/// Creates an imitated machine with two virtual cores, one cache and a trusted TSC.
pub fn two_core_vm() -> FakeHost {
    let tree = FakeHost::new(24_000, 24_105);
    tree.common(2, "0-1", "constant_tsc nonstop_tsc hypervisor", "tsc");
    for core in 0..2 {
        tree.core(core, &core.to_string(), "0-1");
    }
    tree.put("sys/devices/system/node/online", "0\n");
    tree.put("sys/devices/system/node/node0/cpulist", "0-1\n");
    tree
}

/// Creates an imitated server with sixteen hardware threads of eight cores on two nodes; N and N +
/// 8 are siblings.
pub fn server() -> FakeHost {
    let tree = FakeHost::new(32_000, 32_000);
    tree.common(16, "0-15", "constant_tsc nonstop_tsc", "tsc");
    let nodes = ["0-3,8-11", "4-7,12-15"];
    for core in 0..16 {
        let first = core % 8;
        tree.core(core, &format!("{first},{}", first + 8), nodes[(first / 4) as usize]);
        tree.put(&format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor"), "powersave\n");
    }
    tree.put("sys/devices/system/node/online", "0-1\n");
    for (node, cores) in nodes.iter().enumerate() {
        tree.put(&format!("sys/devices/system/node/node{node}/cpulist"), cores);
    }
    tree
}

/// Creates an imitated container with two of four cores and a `/dev/shm` of 64 MiB.
pub fn container() -> FakeHost {
    let tree = FakeHost::new(63, 64);
    tree.common(4, "2-3", "constant_tsc nonstop_tsc", "hpet");
    for core in 0..4 {
        tree.core(core, &core.to_string(), "0-3");
    }
    tree
}

/// Creates an imitated machine of physical cores with one cache, on which the `launcher doctor`
/// check finds no problem.
pub fn plain(cores: u32) -> FakeHost {
    let tree = FakeHost::new(64_000, 64_000);
    let all = format!("0-{}", cores - 1);
    tree.common(cores, &all, "constant_tsc nonstop_tsc", "tsc");
    for core in 0..cores {
        tree.core(core, &core.to_string(), &all);
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_small_virtual_machine_is_read() {
        let machine = two_core_vm().machine();
        assert_eq!((machine.cores_online, machine.cores_allowed), (2, vec![0, 1]));
        assert_eq!(machine.cpu_model, "Fake CPU 2.6GHz");
        assert_eq!(machine.hypervisor.as_deref(), Some("unknown"));
        assert_eq!((machine.smt_siblings, machine.llc_groups), (vec![], vec![vec![0, 1]]));
        assert_eq!(machine.numa_nodes, [vec![0, 1]]);
        assert_eq!((machine.isolated, machine.nohz_full, machine.governor), (vec![], vec![], None));
        assert!(machine.tsc_invariant);
        assert_eq!(machine.memory_bytes, 24_684_084 * 1024);
        assert_eq!(machine.kernel, "6.18.44");
    }

    #[test]
    fn a_server_with_smt_and_two_nodes_is_read() {
        let machine = server().machine();
        assert_eq!(machine.cores_allowed, (0..16).collect::<Vec<_>>());
        assert_eq!(machine.smt_siblings.len(), 8);
        assert_eq!(machine.smt_siblings[1], [1, 9]);
        assert_eq!(machine.llc_groups, [vec![0, 1, 2, 3, 8, 9, 10, 11], vec![4, 5, 6, 7, 12, 13, 14, 15]]);
        assert_eq!(machine.numa_nodes, machine.llc_groups);
        assert_eq!(machine.governor.as_deref(), Some("powersave"));
        assert_eq!(machine.hypervisor, None);
    }

    #[test]
    fn a_container_sees_only_its_cpuset() {
        let machine = container().machine();
        assert_eq!((machine.cores_online, machine.cores_allowed), (4, vec![2, 3]));
        assert_eq!(machine.llc_groups, [vec![2, 3]]);
        assert_eq!((machine.shm_total_bytes, machine.shm_free_bytes), (64 << 20, 63 << 20));
        assert!(!machine.tsc_invariant, "its clock source is hpet");
    }

    #[test]
    fn missing_files_leave_facts_empty() {
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(machine_at(empty.path(), FsSpace::default()), Machine::default());
        assert_eq!(FsSpace::at(&empty.path().join("none")), FsSpace::default());
    }

    #[test]
    fn offline_cores_are_left_out() {
        let tree = two_core_vm();
        tree.put("proc/self/status", "Cpus_allowed_list:\t0-127\n");
        assert_eq!(tree.machine().cores_allowed, [0, 1]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn odd_files_never_panic(contents in "\\PC{0,60}|[0-9:,-]{0,20}") {
            let tree = two_core_vm();
            for path in PATHS {
                tree.put(path, &contents);
                let _ = tree.machine();
            }
        }
    }

    #[test]
    fn mitigations_and_ids_of_address_spaces_are_read() {
        let host = two_core_vm();
        assert_eq!(host.machine().switching.mitigations.len(), 0);
        for (path, content) in [
            (
                "sys/devices/system/cpu/vulnerabilities/spectre_v2",
                "Mitigation: Retpolines; STIBP: disabled\n",
            ),
            ("sys/devices/system/cpu/vulnerabilities/meltdown", "Not affected\n"),
            ("sys/devices/system/cpu/smt/control", "on\n"),
            ("sys/kernel/debug/sched/base_slice_ns", "2800000\n"),
            ("proc/cpuinfo", "processor : 0\nflags : fpu pcid tsc\nprocessor : 1\n"),
            ("proc/self/status", "Name:\tlauncher\nSpeculationIndirectBranch:\tconditional enabled\n"),
        ] {
            host.put(path, content);
        }
        let found = host.machine().switching;
        assert_eq!(found.mitigations["spectre_v2"], "Mitigation: Retpolines; STIBP: disabled");
        assert!(!found.mitigations.contains_key("meltdown") && found.pcid);
        assert_eq!(found.branch_speculation.as_deref(), Some("conditional enabled"));
        assert_eq!((found.smt.as_deref(), found.slice_ns), (Some("on"), Some(2_800_000)));
        assert_eq!(found.huge_pages.as_deref(), Some("madvise"));
    }
}
