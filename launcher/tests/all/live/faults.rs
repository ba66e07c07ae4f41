//! Every self-inflicted fault of a strategy, live: with `--on-death stop` the run ends, names the
//! process and the cause, and leaves no processes or segments.

use crate::common::{LONG, Launcher, SHORT, concurrently, list, output, proc, slow, string};
use serde_json::json;

/// Makes a run that a fault in strategy 1 ends. Returns its stderr.
fn run_until_fault_ends_it(flags: &str, fault: &str) -> String {
    let launcher = Launcher::new();
    // Short only if the fault is detected by the timeout: a crash with a backtrace takes longer.
    let needs_timeout = ["hang", "stop", "feign", "scribble"].iter().any(|kind| fault.starts_with(kind));
    let liveness = if needs_timeout { "1s" } else { "10s" };
    let flags = format!("{LONG} --on-death stop --liveness {liveness} --fault {fault} {flags}");
    launcher.start(&flags).end().fails(1, &[]).stderr
}

/// Fault, its trigger and the expected end of the strategy.
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
fn assert_fault_ends_run(flags: &str, kind: &str, trigger: &str) {
    let stderr = run_until_fault_ends_it(flags, &format!("{kind}:strategy-1{trigger}"));
    let (.., expected_end) = ENDS.iter().find(|(name, ..)| *name == kind).unwrap();
    assert!(
        stderr.contains("strategy-1") && stderr.contains(expected_end),
        "{kind}{trigger} {flags}: {stderr}"
    );
}

const SANDBOX: &str = "--isolation sandbox";
const THREAD: &str = "--isolation thread";

#[test]
fn each_fault_kind_ends_run() {
    concurrently(5, &ENDS, |(kind, trigger, _)| assert_fault_ends_run("", kind, trigger));
}

#[test]
fn each_fault_kind_ends_sandboxed_run() {
    if Launcher::sandboxed().is_none() {
        return;
    }
    let kinds = ENDS.map(|(kind, ..)| kind);
    let some = ["kill", "hang", "abort", "oom", "forge"];
    let kinds = if slow() { &kinds[..] } else { &some };
    concurrently(5, kinds, |kind| assert_fault_ends_run(SANDBOX, kind, "@order:20"));
}

#[test]
fn fault_at_each_push_step_ends_run() {
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
        assert_fault_ends_run(&format!("--technique {technique}"), kind, &format!("@push:{step}:20"));
    });
}

#[test]
fn thread_fault_ends_process_and_hang_is_detected() {
    concurrently(2, &[("exit", "exit 3"), ("hang", "hangs")], |(kind, expected_end)| {
        let stderr = run_until_fault_ends_it(THREAD, &format!("{kind}:strategy-1@order:20"));
        assert!(stderr.contains("all (pid") && stderr.contains(expected_end), "{kind}: {stderr}");
    });
}

#[test]
fn scribbling_strategy_is_blamed_not_the_engine() {
    let mut cases = vec![("--technique spsc-mux", "200ms"), ("--technique pipe", "200ms")];
    cases.extend(Launcher::sandboxed().map(|_| (SANDBOX, "order:20")));
    concurrently(3, &cases, |(flags, trigger)| {
        let stderr = run_until_fault_ends_it(flags, &format!("scribble:strategy-1@{trigger}"));
        assert!(stderr.contains("strategy-1") && !stderr.contains("engine"), "{flags}: {stderr}");
    });
}

#[test]
fn scribbling_strategy_does_not_hang_launcher() {
    // Each end may take the launcher's grace period of five seconds.
    concurrently(2, &["--technique array-queue", THREAD], |flags| {
        run_until_fault_ends_it(flags, "scribble:strategy-1@200ms");
    });
}

#[test]
fn flood_is_detected() {
    let stderr = run_until_fault_ends_it("--max-open 1000", "flood:strategy-1@order:20");
    assert!(stderr.contains("strategy-1") && stderr.contains("flood"), "{stderr}");
}

/// A fault of strategy 1 in a shared ring is contained. Each case has the cause, the reason of a
/// quarantine, and whether the strategy is restarted.
#[test]
fn fault_in_shared_ring_blocks_no_one() {
    let withheld = |technique, trigger| (technique, "hold", trigger, "", "withheld-place", false);
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
    concurrently(4, &faults, |(technique, kind, trigger, cause, reason, is_restarted)| {
        let liveness = if *kind == "hang" { "1s" } else { "500ms" };
        let summary = Launcher::new().summary(&format!(
            "{SHORT} --technique {technique} --on-death restart --liveness {liveness} --idle park \
             --fault {kind}:strategy-1@{trigger}"
        ));
        let context = format!("{technique} {kind} {trigger}: {:#}", summary["incidents"]);
        let [incident] = list(&summary["incidents"]) else { panic!("{context}") };
        assert_eq!(incident["strategy"], 1, "{context}");
        assert!(cause.is_empty() || incident["cause"] == *cause, "{context}");
        assert_eq!(incident["quarantined"].as_str().unwrap_or_default(), *reason, "{context}");
        assert_eq!(incident["repair_to_restart_ns"].is_u64(), *is_restarted, "{context}");
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{context}");
        assert_eq!(summary["outcome"]["ended"], "complete", "{context}");
    });
}

#[test]
fn unwritten_claim_ends_uncontained_run() {
    concurrently(2, &[("process", "strategy-1"), ("thread", "all")], |(isolation, blamed_process)| {
        let flags = "--technique array-queue --liveness 1s --fault hold:strategy-1@order:20";
        let result = Launcher::new().result(&format!("{SHORT} {flags} --isolation {isolation}"));
        let message = "claimed but never written, while its claimant keeps running";
        result.fails(1, &[&format!("{blamed_process} (pid"), message]);
    });
}

/// A strategy without reports stops sending long before the schedule ends.
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
    let player_orders = summary["plan"]["workload"]["trading"]["orders"][0].as_u64().unwrap();
    assert_eq!(
        summary["orders"]["returned"],
        player_orders + 20,
        "all orders of the other strategy, and 20 sent before the fault"
    );
}

fn long_pause_before_an_order_is_no_stall() {
    // The only order is due at the end of the window, so nothing happens for longer than the stall
    // timeout.
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
fn process_maps_its_inputs_read_only() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let strategy = running.process("strategy-1");
    assert_eq!(mapped(strategy), OWN_SEGMENTS);
    let limits = proc(strategy, "limits");
    let limit = limits.lines().find(|line| line.starts_with("Max data size")).unwrap();
    assert!(!limit.contains("unlimited"), "{limit}");
    running.interrupt().fails(130, &[]);
}

/// The segments that strategy 1 maps, with their rights: its own writable, the engine's read-only,
/// and none of other strategies.
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

/// Returns the segments that a process has mapped, with the rights of their pages.
pub fn mapped(pid: u32) -> Vec<String> {
    let maps = proc(pid, "maps");
    let segment = |line: &str| {
        let (_, name) = line.split_once("bulkhead.")?;
        let segment_name = name.split_once('.')?.1.trim_end_matches(" (deleted)");
        Some(format!("{segment_name} {}", line.split(' ').nth(1)?))
    };
    let mut found: Vec<_> = maps.lines().filter_map(segment).collect();
    found.sort_unstable();
    found
}

/// A fault that never fired shows in the verdict, on the last lines, and in the exit code.
#[test]
fn fault_that_never_fired_fails_run() {
    let launcher = Launcher::new();
    for (fault, reason) in [
        ("kill:strategy-0@order:99999", "order 99,999"),
        ("kill:strategy-0@60s", "due after"),
        // The second fault finds no target: the first one killed it, and nothing restarts it.
        ("kill:strategy-0@20ms;stop:strategy-0@60ms", "no target was running"),
    ] {
        let flags = format!(
            "--strategies 2 --orders 500 --window 100ms --idle park --on-death continue --fault {fault}"
        );
        let result = launcher.result(&flags).fails(1, &["never fired", reason, "--allow-unfired"]);
        assert!(result.stdout.contains("never fired"), "{}", result.stdout);
        let summary = launcher.newest_summary();
        let message = string(&summary["unstruck"][0]);
        assert!(
            message.contains(reason) && string(&summary["reasons"][0]).starts_with(message),
            "{summary:#}"
        );
        let allowed = launcher.result(&format!("{flags} --allow-unfired"));
        assert!(allowed.stderr.contains("note: the fault"), "{}", allowed.all_output());
        allowed.succeeds();
    }
    // Also if it is not the last of several runs.
    let repeats = "--repeats 2 --strategies 2 --orders 500 --window 100ms --idle park --fault kill@60s";
    launcher.result(repeats).fails(1, &["never fired"]);
    launcher.result(&format!("{repeats} --strict-faults")).fails(1, &["never fired"]);
}

/// A comparison whose fault never fired does not compare what was requested.
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
