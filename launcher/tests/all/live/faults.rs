//! Every fault that a strategy does to itself, live: with `--on-death stop` the run ends, names who
//! died of what, and leaves nothing behind.

use crate::common::{LONG, Launcher, SHORT, concurrently, list, output, proc, slow, string};
use serde_json::json;

/// Runs with these flags until the fault in strategy 1 has ended the run; what was said.
fn ended_by(flags: &str, fault: &str) -> String {
    let launcher = Launcher::new();
    // Short only where it is waited for: a backtrace takes its time.
    let is_waited_for = ["hang", "stop", "feign", "scribble"].iter().any(|kind| fault.starts_with(kind));
    let liveness = if is_waited_for { "1s" } else { "10s" };
    let flags = format!("{LONG} --on-death stop --liveness {liveness} --fault {fault} {flags}");
    launcher.start(&flags).end().fails(1, &[]).stderr
}

/// How the strategy ends that does this to itself at that time.
const ENDS: [(&str, &str, &str); 10] = [
    ("kill", "@200ms", "SIGKILL"),
    ("stop", "@order:20", "hangs"),
    ("hang", "@200ms", "hangs"),
    ("segv", "@order:20", "SIGSEGV"),
    ("abort", "@order:20", "SIGABRT"),
    ("exit", "@order:20", "exit 3"),
    ("oom", "@order:20", "SIGABRT"),
    ("leak", "@200ms", "SIGABRT"),
    ("forge", "@order:20", "forged heartbeat: it lies in the future"),
    ("feign", "@order:20", "has not exited"),
];

#[track_caller]
fn ends_as_it_should(flags: &str, kind: &str, when: &str) {
    let stderr = ended_by(flags, &format!("{kind}:strategy-1{when}"));
    let (.., how) = ENDS.iter().find(|(name, ..)| *name == kind).unwrap();
    assert!(stderr.contains("strategy-1") && stderr.contains(how), "{kind}{when} {flags}: {stderr}");
}

const SANDBOX: &str = "--isolation sandbox";
const THREAD: &str = "--isolation thread";

#[test]
fn each_kind_ends_its_run() {
    concurrently(5, &ENDS, |(kind, when, _)| ends_as_it_should("", kind, when));
}

#[test]
fn each_kind_in_the_sandbox() {
    if Launcher::sandboxed().is_none() {
        return;
    }
    let kinds = ENDS.map(|(kind, ..)| kind);
    let some = ["kill", "hang", "abort", "oom", "forge"];
    let kinds = if slow() { &kinds[..] } else { &some };
    concurrently(5, kinds, |kind| ends_as_it_should(SANDBOX, kind, "@order:20"));
}

#[test]
fn the_steps_of_a_push() {
    let faults = [
        ("spsc-mux", "kill", "half-written"),
        ("spsc-mux", "kill", "written"),
        ("spsc-mux", "kill", "published"),
        ("array-queue", "kill", "announced"),
        ("array-queue", "kill", "claimed"),
        ("array-queue", "kill", "half-written"),
        ("array-queue", "kill", "written"),
        ("array-queue", "kill", "published"),
        ("array-queue", "hang", "claimed"),
        ("channel", "kill", "claimed"),
        ("linked", "kill", "published"),
        ("pipe", "kill", "published"),
    ];
    concurrently(4, &faults, |(technique, kind, step)| {
        ends_as_it_should(&format!("--technique {technique}"), kind, &format!("@push:{step}:20"));
    });
}

#[test]
fn thread_fault_ends_process_and_hang_is_detected() {
    concurrently(2, &[("exit", "exit 3"), ("hang", "hangs")], |(kind, how)| {
        let stderr = ended_by(THREAD, &format!("{kind}:strategy-1@order:20"));
        assert!(stderr.contains("all (pid") && stderr.contains(how), "{kind}: {stderr}");
    });
}

#[test]
fn a_scribbler_harms_itself_only() {
    let mut cases = vec![("--technique spsc-mux", "200ms"), ("--technique pipe", "200ms")];
    cases.extend(Launcher::sandboxed().map(|_| (SANDBOX, "order:20")));
    concurrently(3, &cases, |(flags, when)| {
        let stderr = ended_by(flags, &format!("scribble:strategy-1@{when}"));
        assert!(stderr.contains("strategy-1") && !stderr.contains("engine"), "{flags}: {stderr}");
    });
}

#[test]
fn scribbling_strategy_does_not_hang_launcher() {
    // Each may take the launcher's grace of five seconds to end.
    concurrently(2, &["--technique array-queue", THREAD], |flags| {
        ended_by(flags, "scribble:strategy-1@200ms");
    });
}

#[test]
fn a_flood_is_noticed() {
    let stderr = ended_by("--max-open 1000", "flood:strategy-1@order:20");
    assert!(stderr.contains("strategy-1") && stderr.contains("flood"), "{stderr}");
}

/// A fault in strategy 1 of a shared ring is contained: its cause, the reason of a quarantine, and
/// whether the strategy is started again.
#[test]
fn fault_in_shared_ring_blocks_no_one() {
    let withheld = |technique, when| (technique, "hold", when, "", "withheld-place", false);
    let faults = [
        withheld("array-queue", "order:20"),
        withheld("array-queue", "push:written:20"),
        withheld("linked", "order:20"),
        withheld("channel", "order:20"),
        (
            "array-queue",
            "forge",
            "push:claimed:20",
            "quarantined: forged-status: forged heartbeat: it lies in the future",
            "forged-status",
            false,
        ),
        (
            "array-queue",
            "feign",
            "push:claimed:20",
            "hung: reported done 1s ago but has not exited",
            "",
            false,
        ),
        ("array-queue", "hang", "push:claimed:20", "hangs: no duty cycle for 1s", "", true),
    ];
    concurrently(4, &faults, |(technique, kind, when, cause, reason, comes_back)| {
        let liveness = if *kind == "hang" { "1s" } else { "500ms" };
        let summary = Launcher::new().summary(&format!(
            "{SHORT} --technique {technique} --on-death restart --liveness {liveness} --idle park \
             --fault {kind}:strategy-1@{when}"
        ));
        let what = format!("{technique} {kind} {when}: {:#}", summary["incidents"]);
        let [incident] = list(&summary["incidents"]) else { panic!("{what}") };
        assert_eq!(incident["strategy"], 1, "{what}");
        assert!(cause.is_empty() || incident["cause"] == *cause, "{what}");
        assert_eq!(incident["quarantined"].as_str().unwrap_or_default(), *reason, "{what}");
        assert_eq!(incident["repair_to_restart_ns"].is_u64(), *comes_back, "{what}");
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{what}");
        assert_eq!(summary["outcome"]["ended"], "complete", "{what}");
    });
}

#[test]
fn unwritten_claim_ends_uncontained_run() {
    concurrently(2, &[("process", "strategy-1"), ("thread", "all")], |(isolation, who)| {
        let flags = "--technique array-queue --liveness 1s --fault hold:strategy-1@order:20";
        let result = Launcher::new().result(&format!("{SHORT} {flags} --isolation {isolation}"));
        let said = "claimed but never written, while its claimant keeps running";
        result.fails(1, &[&format!("{who} (pid"), said]);
    });
}

/// Without a report nothing more is sent, long before the schedule ends.
fn lost_orders_end_run(technique: &str) {
    let flags = format!("--technique {technique} --max-open 20 --idle park --fault lose:strategy-1@order:30");
    let result = Launcher::new().result(&format!("{SHORT} {flags}"));
    result.fails(1, &["20 orders without a report, waiting: strategy-1"]);
}

fn unwritten_claim_in_own_ring_blocks_only_itself() {
    let flags = "--technique spsc-mux --on-death restart --idle park --json --liveness 1s";
    let result = Launcher::new().result(&format!("{SHORT} {flags} --fault hold:strategy-1@order:20"));
    assert!(result.stderr.contains("waiting: strategy-1"), "{}", result.stderr);
    let summary = result.json();
    assert_eq!(summary["incidents"], json!([]));
    let planned = summary["plan"]["workload"]["trading"]["orders"][0].as_u64().unwrap();
    assert_eq!(summary["orders"]["returned"], planned + 20, "all of the other one, and what was sent before");
}

fn long_pause_before_an_order_is_no_stall() {
    // Its last order, and here it is the only one, is due at the end of the window: for longer than
    // nothing may move where something should, nothing moves.
    let summary = Launcher::new()
        .summary("--arrivals pareto --orders 1 --window 12s --delay fixed:1ms --strategies 1 --idle park");
    assert_eq!(summary["orders"]["returned"], 1);
}

/// A run stalls after ten seconds without progress, so these wait concurrently.
#[test]
fn run_stalls_only_where_an_order_is_missing() {
    std::thread::scope(|scope| {
        scope.spawn(|| lost_orders_end_run("spsc-mux"));
        scope.spawn(|| lost_orders_end_run("array-queue"));
        scope.spawn(unwritten_claim_in_own_ring_blocks_only_itself);
        scope.spawn(long_pause_before_an_order_is_no_stall);
    });
}

#[test]
fn a_process_maps_read_only_what_it_only_reads() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let strategy = running.process("strategy-1");
    assert_eq!(mapped(strategy), OWN_SEGMENTS);
    let limits = proc(strategy, "limits");
    let limit = limits.lines().find(|line| line.starts_with("Max address space")).unwrap();
    assert!(!limit.contains("unlimited"), "{limit}");
    running.interrupt().fails(130, &[]);
}

/// What strategy 1 has mapped of its run, and may do with it: its own to write, the engine's to
/// read, nobody else's at all.
pub const OWN_SEGMENTS: [&str; 11] = [
    "bell-engine r--s",
    "bell-strategy-1 rw-s",
    "control r--s",
    "return-1 r--s",
    "return-1.head rw-s",
    "schedule-1 r--s",
    "submit-1 rw-s",
    "submit-1.head r--s",
    "thread-strategy-1 rw-s",
    "wake-engine-strategy-1 r--s",
    "wake-strategy-1-engine rw-s",
];

/// The segments that a process has mapped, with the rights of its pages.
pub fn mapped(pid: u32) -> Vec<String> {
    let maps = proc(pid, "maps");
    let segment = |line: &str| {
        let (_, name) = line.split_once("bulkhead.")?;
        let what = name.split_once('.')?.1.trim_end_matches(" (deleted)");
        Some(format!("{what} {}", line.split(' ').nth(1)?))
    };
    let mut found: Vec<_> = maps.lines().filter_map(segment).collect();
    found.sort_unstable();
    found
}

/// A fault that never fired is in the verdict, on the last lines, and in the exit code.
#[test]
fn fault_that_never_fired_fails_run() {
    let launcher = Launcher::new();
    for (fault, why) in [
        ("kill:strategy-0@order:99999", "order 99,999"),
        ("kill:strategy-0@60s", "due after"),
        // The second one finds nobody: the first one came earlier, and no strategy is restarted.
        ("kill:strategy-0@20ms;stop:strategy-0@60ms", "no target was running"),
    ] {
        let flags = format!(
            "--strategies 2 --orders 500 --window 100ms --idle park --on-death continue --fault {fault}"
        );
        let result = launcher.result(&flags).fails(1, &["never fired", why, "--allow-unfired"]);
        assert!(result.stdout.contains("never fired"), "{}", result.stdout);
        let summary = launcher.newest_summary();
        let said = string(&summary["unstruck"][0]);
        assert!(said.contains(why) && string(&summary["reasons"][0]).starts_with(said), "{summary:#}");
        let allowed = launcher.result(&format!("{flags} --allow-unfired"));
        assert!(allowed.stderr.contains("note: the fault"), "{}", allowed.said());
        allowed.succeeds();
    }
    // In any of several runs, whatever the last one was.
    let repeats = "--repeats 2 --strategies 2 --orders 500 --window 100ms --idle park --fault kill@60s";
    launcher.result(repeats).fails(1, &["never fired"]);
    launcher.result(&format!("{repeats} --strict-faults")).fails(1, &["never fired"]);
}

/// A comparison whose fault never fired compares what nobody asked for.
#[test]
fn fault_that_never_fired_fails_comparison() {
    let out = tempfile::tempdir().unwrap();
    let words = "compare --a technique=spsc-mux --b technique=array-queue --repeats 2 --strategies 2";
    let load = format!("--orders 500 --window 50ms --idle park --out {}", out.path().display());
    let line = format!("{words} {load} --on-death continue --fault kill:strategy-0@60s");
    let result = output(&line).fails(1, &["never fired", " more)", "--allow-unfired"]);
    assert!(result.stdout.contains("never fired"), "{}", result.stdout);
    output(&format!("{line} --allow-unfired")).succeeds();
}
