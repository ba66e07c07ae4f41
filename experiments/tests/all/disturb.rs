//! `launcher disturb`: real runs in a small form. Counts and refusals only: no time is asserted.

use crate::common::{
    Launcher, Running, assert_nothing_left, entries, list, number, output, parent, proc, processes,
    run_processes, signal, skip, string, wait_until,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use system::process::state_in;

/// Orders of a run, of three strategies.
const ORDERS: u64 = 900;

/// The rows of a small matrix, and its folder.
fn disturb(flags: &str) -> (Vec<Value>, tempfile::TempDir) {
    disturb_for("300ms", flags)
}

fn disturb_for(window: &str, flags: &str) -> (Vec<Value>, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let load = format!("--orders {ORDERS} --window {window} --venues 1 --repeats 1 --idle park");
    let made = output(&format!("disturb --json {load} --out {} {flags}", out.path().display()));
    let found: Value = serde_json::from_str(&made.succeeds()).unwrap();
    assert_eq!(found["schema"], "bulkhead.disturb/1");
    (list(&found["rows"]).to_vec(), out)
}

fn row<'a>(rows: &'a [Value], isolation: &str, kind: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["isolation"] == isolation && row["kind"] == kind);
    found.unwrap_or_else(|| panic!("no row {isolation}/{kind}: {rows:#?}"))
}

#[test]
fn each_disturbance_is_done_and_only_others_are_counted() {
    let kinds = ["fork-storm", "map-storm", "alloc-storm", "fault-storm", "signal-storm", "io-storm"];
    let more = ["syscall-storm", "thrash", "squat-core", "descriptor-storm"];
    let all = [&kinds[..], &more[..]].concat().join(";");
    // Long: on a busy machine a strategy may not run for 300 ms, and makes no step then.
    let (rows, out) = disturb_for("1s", &format!("--isolation process --fault {all}"));
    for kind in ["calm"].iter().chain(&kinds).chain(&more) {
        let row = row(&rows, "process", kind);
        assert!(row["steps"].as_f64().unwrap() > 0.0, "{row:#}");
        assert_eq!(number(&row["runs"]), 1, "complete and valid: {row:#}");
        // Two thirds of the orders, less those of the warm-up.
        assert!((1..=ORDERS * 2 / 3).contains(&number(&row["orders"])), "{row:#}");
    }
    let folder = entries(out.path()).remove(0);
    for file in ["experiment.json", "rows.csv", "disturb.md", "disturb_full.csv", "report.html"] {
        assert!(folder.join(file).exists(), "{file}");
    }
}

#[test]
fn faulty_strategy_keeps_its_level_in_each_repeat() {
    let out = tempfile::tempdir().unwrap();
    let load = "--orders 300 --window 100ms --venues 1 --repeats 2 --strategies 3";
    let arguments = "disturb --json --isolation thread+process+thread --fault map-storm";
    output(&format!("{arguments} {load} --out {}", out.path().display())).succeeds();
    let runs = entries(&entries(out.path()).remove(0)).into_iter().map(|run| run.join("run.json"));
    let levels: Vec<Value> = runs
        .filter(|file| file.exists())
        .map(|file| serde_json::from_str::<Value>(&std::fs::read_to_string(file).unwrap()).unwrap())
        .map(|run| run["plan"]["isolation"].clone())
        .collect();
    assert_eq!(levels.len(), 6, "calm, calm again and the fault, each twice");
    assert!(levels.iter().all(|level| *level == levels[0]), "{levels:?}");
}

#[test]
fn sandbox_refuses_what_it_does_not_allow() {
    let Some(_) = Launcher::sandboxed() else { return };
    let refused = ["fork-storm", "io-storm", "debugger"];
    let (rows, _out) = disturb(&format!("--isolation sandbox --fault {};map-storm", refused.join(";")));
    for kind in refused {
        let row = row(&rows, "sandbox", kind);
        assert_eq!((string(&row["refused"]), &row["steps"]), ("exit 41", &0.0.into()), "{row:#}");
    }
    let map_storm = row(&rows, "sandbox", "map-storm");
    assert!(map_storm["refused"].is_null() && map_storm["steps"].as_f64().unwrap() > 10.0, "{map_storm:#}");
}

#[test]
fn container_keeps_a_strategy_on_its_cores() {
    let Some(_) = Launcher::contained() else { return };
    if !Path::new("/sys/fs/cgroup/cpuset").is_dir() {
        return eprintln!("SKIPPED: no controller cpuset");
    }
    let (rows, _out) = disturb("--isolation container --fault squat-core");
    assert_eq!(string(&row(&rows, "container", "squat-core")["refused"]), "exit 41", "{rows:#?}");
}

#[test]
fn others_survive_death_and_containment_table_says_so() {
    let (rows, out) = disturb("--isolation process --fault segv@100ms;hang@100ms --liveness 100ms");
    for kind in ["segv", "hang"] {
        let row = row(&rows, "process", kind);
        assert_eq!(list(&row["outcomes"]).iter().map(number).sum::<u64>(), 1, "{row:#}");
        assert_eq!(
            number(&row["outcomes"][2]) + number(&row["outcomes"][3]),
            0,
            "it came, and stayed: {row:#}"
        );
        assert!((1..=ORDERS * 2 / 3).contains(&number(&row["orders"])), "the others' only: {row:#}");
        assert!(row["gaps"]["classes"].is_array(), "{row:#}");
    }
    let folder = entries(out.path()).remove(0);
    let load = "--isolation process --technique spsc-mux --orders 900 --window 300ms --venues 1";
    let load = format!("{load} --out {}", out.path().display());
    let contain = format!("contain --json {load} --fault segv@100ms --disturb {}", folder.display());
    let table: Value = serde_json::from_str(&output(&contain).succeeds()).unwrap();
    let row = &table["rows"][0];
    assert_eq!(string(&row["contained"]), "yes", "{row:#}");
    // One pair of runs decides nothing, and is said to.
    assert!(string(&row["undisturbed"]).starts_with("cannot tell"), "{row:#}");
    let wrong = output(&format!("contain {load} --disturb {}", out.path().display()));
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn fault_of_another_role_is_refused() {
    let refused = output("disturb --fault kill:engine --isolation process");
    assert_eq!(refused.code, Some(2), "{refused:?}");
}

/// Returns `true`, with a message, if this machine lets nobody trace (Yama, an outer container).
fn refuses_debuggers(row: &Value) -> bool {
    let is_refused = row["refused"] == "exit 41";
    if is_refused {
        skip("ptrace is refused here");
    }
    is_refused
}

#[test]
fn debugger_stops_threads_at_each_level_that_allows_it() {
    let levels = if Launcher::contained().is_some() { "thread,container" } else { "thread,process" };
    let (rows, _out) = disturb(&format!("--isolation {levels} --fault debugger"));
    for level in levels.split(',') {
        let row = row(&rows, level, "debugger");
        if refuses_debuggers(row) {
            return;
        }
        // A busy machine has few in a window.
        assert!(row["steps"].as_f64().unwrap() >= 1.0, "{row:#}");
        assert_eq!(number(&row["runs"]), 1, "complete and valid: {row:#}");
    }
}

/// Returns the debugger of a run: a process that its strategy has started.
fn debugger_of(launcher: u32) -> Option<u32> {
    let roles: Vec<u32> = run_processes(launcher).into_iter().map(|(pid, _)| pid).collect();
    processes().find(|pid| parent(*pid).is_some_and(|parent| roles.contains(&parent)) && roles.contains(pid))
}

/// A run of three seconds in which a debugger stops threads; `None`: it is refused.
fn debugged(launcher: &Launcher, level: &str) -> Option<Running> {
    let load = "--technique spsc-mux --strategies 2 --venues 1 --orders 3000 --window 3s --idle park --quiet";
    let running = launcher.start(&format!("{load} --isolation {level} --fault debugger:strategy-1@100ms"));
    let mut is_there = false;
    wait_until("the debugger is there, or the run has ended", || {
        is_there = debugger_of(running.pid()).is_some();
        is_there || running.has_ended()
    });
    if !is_there {
        skip("ptrace is refused here");
    }
    is_there.then_some(running)
}

#[test]
fn killed_run_leaves_no_debugger_and_no_stopped_thread() {
    for level in ["thread", "process"] {
        let launcher = Launcher::new();
        let Some(mut running) = debugged(&launcher, level) else { return };
        running.kill();
        assert_nothing_left(running.pid());
    }
}

#[test]
fn killed_debugger_lets_its_threads_go_on() {
    let launcher = Launcher::new();
    let Some(running) = debugged(&launcher, "process") else { return };
    let debugger = debugger_of(running.pid()).unwrap();
    let strategy = parent(debugger).unwrap();
    signal(debugger, "KILL");
    wait_until("its debugger is gone", || {
        parent(debugger).is_none() || proc(debugger, "stat").contains(" Z ")
    });
    // The strategy exits at its next request, or of the trap of a step: it does not stay stopped.
    let is_stopped = || state_in(&proc(strategy, "stat")) == Some('t');
    wait_until("no thread stays stopped", || !is_stopped());
    let pid = running.pid();
    running.end();
    assert_nothing_left(pid);
}

/// A stop signal meets the strategy within a step, whose trap nobody may be left to take.
#[test]
fn strategy_under_debugger_survives_stop_signals() {
    let launcher = Launcher::new();
    let Some(running) = debugged(&launcher, "process --liveness 20s") else { return };
    let strategy = parent(debugger_of(running.pid()).unwrap()).unwrap();
    let began = Instant::now();
    // Well within the window of the run.
    while began.elapsed() < Duration::from_millis(1_500) {
        for name in ["STOP", "CONT"] {
            signal(strategy, name);
            std::thread::sleep(Duration::from_millis(3));
        }
    }
    let result = running.end();
    assert_eq!(result.code, Some(0), "{}", result.all_output());
}

/// Returns `true` if the kernel writes cores into the directory of a process; prints a message
/// otherwise.
fn writes_cores() -> bool {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern").unwrap();
    let (_, hard) = nix::sys::resource::getrlimit(nix::sys::resource::Resource::RLIMIT_CORE).unwrap();
    let writes = !pattern.starts_with(['/', '|']) && hard > 0;
    if !writes {
        skip(&format!("the kernel writes no cores here: {pattern}"));
    }
    writes
}

/// Returns the cores in the folder of a run.
fn cores(launcher: &Launcher) -> Vec<PathBuf> {
    let folders = launcher.folders().into_iter().map(|folder| folder.join("cores"));
    folders.filter(|folder| folder.exists()).flat_map(|folder| entries(&folder)).collect()
}

const DUMPING: &str = "--technique spsc-mux --strategies 2 --venues 1 --orders 3000 --window 3s --idle park --quiet \
                       --fault core-dump:strategy-1@100ms";

#[test]
fn core_is_written_and_removed_at_run_end() {
    for (level, on_death, code) in [("process", "continue", 0), ("thread", "stop", 1)] {
        let launcher = Launcher::new();
        let running = launcher.start(&format!("{DUMPING} --isolation {level} --on-death {on_death}"));
        let mut size = 0;
        wait_until("a core is there, or the run has ended", || {
            size =
                cores(&launcher).first().and_then(|core| core.metadata().ok()).map_or(0, |core| core.len());
            size > 0 || running.has_ended()
        });
        let pid = running.pid();
        assert_eq!(running.end().code, Some(code), "{level}");
        assert_nothing_left(pid);
        assert_eq!(cores(&launcher), Vec::<PathBuf>::new(), "{level}");
        assert!(size > 0 || !writes_cores(), "{level}: the kernel wrote a core");
    }
}

#[test]
fn killed_launcher_leaves_no_core() {
    let launcher = Launcher::new();
    let mut running = launcher.start(&format!("{DUMPING} --isolation process --on-death continue"));
    if writes_cores() {
        wait_until("the kernel writes a core", || !cores(&launcher).is_empty());
    }
    running.kill();
    assert_nothing_left(running.pid());
    assert_eq!(cores(&launcher), Vec::<PathBuf>::new());
}

#[test]
fn sandbox_and_container_write_no_core() {
    for (level, launcher) in [("sandbox", Launcher::sandboxed()), ("container", Launcher::contained())] {
        let Some(launcher) = launcher else { continue };
        let running = launcher.start(&format!("{DUMPING} --isolation {level} --on-death continue"));
        while !running.has_ended() {
            assert_eq!(cores(&launcher), Vec::<PathBuf>::new(), "{level}");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(running.end().code, Some(0), "{level}");
        let summary = launcher.newest_summary();
        assert_eq!(string(&summary["incidents"][0]["cause"]), "signal 6 (SIGABRT)", "{summary:#}");
    }
}
