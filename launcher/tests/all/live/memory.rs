//! What strategies walk and run from: working sets, and executables of their own.

use crate::common::{
    LONG, Launcher, Running, SHORT, assert_no_allocations, assert_nothing_left, entries, list,
    newest_process, number, proc, signal, skip, wait_for, wait_until,
};
use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// Returns the inode that a process runs from; `None` if it is gone.
fn executable(pid: u32) -> Option<u64> {
    Some(std::fs::metadata(format!("/proc/{pid}/exe")).ok()?.ino())
}

/// Returns a field of a file of a process in bytes, such as `VmLck` of `status`.
fn bytes_of(pid: u32, file: &str, field: &str) -> u64 {
    let text = proc(pid, file);
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap_or("0 kB");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}

/// The level's name, and a launcher if the machine has it.
fn levels() -> Vec<(&'static str, Launcher)> {
    let all = [
        ("thread", Some(Launcher::new())),
        ("process", Some(Launcher::new())),
        ("container", Launcher::contained()),
        ("sandbox", Launcher::sandboxed()),
    ];
    all.into_iter().filter_map(|(level, launcher)| Some((level, launcher?))).collect()
}

/// Also, the costs of the strategies are reported by level.
#[test]
fn working_set_is_walked_for_each_order() {
    for (level, launcher) in levels() {
        let summary = launcher.summary(&format!("{SHORT} --isolation {level} --working-set 1MiB"));
        let set = &summary["working_set"];
        assert_eq!((number(&set["bytes"]), number(&set["lines_per_order"])), (1 << 20, 64), "{level}");
        // At the end each of two strategies owes the walks of 16 orders at most.
        let (lines, sent) = (number(&set["lines"]), number(&summary["orders"]["sent"]));
        assert!((64 * (sent - 2 * 16)..=64 * sent).contains(&lines), "{level}: {lines} lines, {sent} orders");
        for key in ["walk_ns", "walk_p50_ns", "walk_p99_ns"] {
            assert!(set[key].as_f64() > Some(0.0), "{key}: {set:#}");
        }
        assert_no_allocations(&summary);
        assert_costs_reported(level, &summary);
    }
}

/// Checks the costs of two strategies, each with a working set of 1 MiB.
fn assert_costs_reported(level: &str, summary: &Value) {
    let [costs] = list(&summary["costs"]) else { panic!("{level}: {:#}", summary["costs"]) };
    assert_eq!((&costs["isolation"], number(&costs["strategies"])), (&level.into(), 2));
    assert!(costs["cpu_s_per_million"].as_f64() > Some(0.0), "{level}: {costs:#}");
    for key in ["private_bytes", "shared_bytes", "page_table_bytes", "startup_ns"] {
        assert_eq!(costs[key].as_f64() > Some(0.0), level != "thread", "{level}: {key}: {costs:#}");
    }
    let has_set = costs["private_bytes"].as_f64() > Some(f64::from(1 << 20));
    assert_eq!(has_set, level != "thread", "{level}: {costs:#}");
    assert_eq!(summary["misses_absent"].is_null(), !costs["dtlb_misses"].is_null(), "{level}: {costs:#}");
}

#[test]
fn working_set_is_resident_at_the_start() {
    for level in ["thread", "process"] {
        let anonymous = |flags: &str| {
            let launcher = Launcher::new();
            let running = launcher.start(&format!("{LONG} --isolation {level} {flags}"));
            let name = if level == "thread" { "all" } else { "strategy-0" };
            let bytes = bytes_of(running.process(name), "status", "RssAnon");
            running.interrupt();
            bytes
        };
        let strategies = if level == "thread" { 2 } else { 1 };
        let (without, with) = (anonymous(""), anonymous("--working-set 16MiB"));
        // Two runs of one process differ by a few pages.
        assert!(with + (1 << 20) >= without + strategies * (16 << 20), "{level}: {without} and {with}");
        assert!(with < without + (strategies + 1) * (16 << 20), "{level}: {without} and {with}");
    }
}

#[test]
fn own_binary_is_another_inode_for_each_strategy() {
    for (level, launcher) in levels().into_iter().filter(|(level, _)| *level != "thread") {
        let flags = format!("{LONG} --isolation {level} --binary own --on-death restart");
        let mut running = launcher.start(&flags);
        let pid = running.pid();
        let of = |running: &Running, name| executable(running.process(name)).unwrap();
        let [first, second, engine] = ["strategy-0", "strategy-1", "engine"].map(|name| of(&running, name));
        assert!(first != second && first != engine && second != engine, "{level}");
        assert_eq!(executable(pid), Some(engine), "{level}: the engine runs from the launcher's");
        let dead = running.process("strategy-0");
        signal(dead, "KILL");
        let next = wait_for("the strategy is restarted", || {
            newest_process(pid, "strategy-0", dead).and_then(executable)
        });
        assert_eq!(next, first, "{level}: from its own copy again");
        running.kill();
        assert_nothing_left(pid);
        let folder = launcher.folder();
        let copies = entries(&folder)
            .into_iter()
            .filter(|path| std::fs::read(path).is_ok_and(|bytes| bytes.starts_with(b"\x7fELF")));
        assert_eq!(copies.count(), 0, "{level}: no copy has a name");
    }
}

#[test]
fn own_binary_makes_a_valid_run() {
    let launcher = Launcher::new();
    let summary = launcher.summary(&format!("{SHORT} --binary own"));
    assert_eq!(summary["plan"]["workload"]["trading"]["memory"]["binary"], "own");
    for thread in list(&summary["processes"]) {
        assert_eq!(thread["allocations"], 0, "{thread:#}");
    }
    launcher.result(&format!("{SHORT} --binary own --isolation thread")).fails(2, &["--binary own"]);
}

#[test]
fn locked_memory_is_locked_at_every_level() {
    for (level, _) in levels() {
        let launcher = Launcher::new();
        let flags = format!("{LONG} --isolation {level} --working-set 1MiB --lock-memory on");
        let dry_run = launcher.result(&format!("{flags} --dry-run"));
        if dry_run.stderr.contains("--lock-memory") {
            skip(&format!("locked_memory_is_locked_at_every_level: {level}: {}", dry_run.stderr));
            continue;
        }
        let running = launcher.start(&flags);
        let names: &[&str] = if level == "thread" { &["all"] } else { &["strategy-0", "engine"] };
        for name in names {
            let locked = bytes_of(running.process(name), "status", "VmLck");
            assert!(locked > 1 << 20, "{level}: {name} has {locked} bytes locked");
        }
        running.interrupt();
    }
}

#[test]
fn huge_pages_are_mapped_where_the_mount_has_them() {
    let launcher = Launcher::new();
    let out = launcher.out.path().display();
    let large = "--capacity 65536 --huge-pages on";
    let run = format!("{} run --out {out} {LONG} {large}", env!("CARGO_BIN_EXE_launcher"));
    let mount = "mount -t tmpfs -o huge=always,size=2g tmpfs /dev/shm 2>/dev/null";
    let shell = format!("{mount} || exit 77; exec {run}");
    let mut running = Running::spawn(Command::new("unshare").args(["--mount", "sh", "-c", &shell]));
    let mut has_ended = false;
    wait_until("the run has begun or cannot", || {
        has_ended = !matches!(running.child.try_wait(), Ok(None));
        has_ended || launcher.has_begun()
    });
    if has_ended {
        let result = running.end();
        return skip(&format!("huge_pages_are_mapped_where_the_mount_has_them: {}", result.all_output()));
    }
    let huge = bytes_of(running.process("strategy-0"), "smaps_rollup", "ShmemPmdMapped");
    assert!(huge >= 2 << 20, "{huge} bytes by huge pages");
    running.interrupt();
    let without = launcher.result(&format!("{SHORT} {large}"));
    // The tests' own /dev/shm is mounted without them.
    if without.code != Some(0) {
        without.fails(2, &["--huge-pages on", "huge=within_size"]);
    }
}
