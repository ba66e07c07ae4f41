//! Every self-inflicted fault of a strategy, live: with `--on-death stop` the run ends, names the
//! process and the cause, and leaves no processes or segments.

use crate::common::{FULL_REPORT, LONG, Launcher, SHORT, concurrently, list, output, proc, slow, string};

/// Makes a run that a fault in strategy 1 ends. Returns its stderr.
fn run_until_fault_ends_it(flags: &str, fault: &str) -> String {
    let launcher = Launcher::new();
    // Short only if the fault is detected by the timeout: a crash with a backtrace takes longer.
    let needs_timeout = ["hang", "stop", "feign"].iter().any(|kind| fault.starts_with(kind));
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
    let some = ["hang", "oom"];
    let kinds = if slow() { &kinds[..] } else { &some };
    concurrently(2, kinds, |kind| assert_fault_ends_run(SANDBOX, kind, "@order:20"));
}

/// `techniques` and the simulation have each step of each technique.
#[test]
fn fault_within_push_ends_run() {
    let faults = [
        ("spsc-mux", "kill", "half-written"),
        ("array-queue", "hang", "claimed"),
        ("linked", "kill", "published"),
        ("pipe", "kill", "published"),
    ];
    concurrently(4, &faults, |(technique, kind, step)| {
        assert_fault_ends_run(&format!("--technique {technique}"), kind, &format!("@push:{step}:20"));
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
        withheld("array-queue", "push:written:20"),
        withheld("linked", "order:20"),
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
    let flags = "--technique array-queue --liveness 1s --fault hold:strategy-1@order:20";
    let result = Launcher::new().result(&format!("{SHORT} {flags}"));
    result.fails(1, &["strategy-1 (pid", "claimed but never written, while its claimant keeps running"]);
}

/// A strategy without reports stops sending long before the schedule ends, and the run stalls.
#[test]
fn lost_orders_end_run() {
    let flags = "--technique array-queue --max-open 20 --fault lose:strategy-1@order:30";
    let result = Launcher::new().result(&format!("{SHORT} {flags}"));
    result.fails(1, &["20 orders without a report, waiting: strategy-1"]);
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
    // The last one finds no target: the one before killed it, and nothing restarts it.
    let faults = "kill:strategy-1@order:99999;kill:strategy-1@60s;kill:strategy-0@20ms;stop:strategy-0@60ms";
    let load = "--strategies 2 --orders 500 --window 100ms --idle park --on-death continue";
    let flags = format!("{load} --fault {faults}");
    let result = launcher.result(&flags).fails(1, &["never fired", "--allow-unfired"]);
    assert!(result.stdout.contains("never fired"), "{}", result.stdout);
    let summary = launcher.newest_summary();
    let unfired: Vec<&str> = list(&summary["unstruck"]).iter().map(string).collect();
    assert_eq!(unfired.len(), 3, "{unfired:?}");
    for reason in ["order 99,999", "due after", "no target was running"] {
        assert!(unfired.iter().any(|one| one.contains(reason)), "{reason}: {unfired:?}");
    }
    let reasons: Vec<&str> = list(&summary["reasons"]).iter().map(string).collect();
    let is_reason = |fault: &&str| reasons.iter().any(|reason| reason.starts_with(fault));
    assert!(unfired.iter().all(is_reason), "{summary:#}");
    let allowed = launcher.result(&format!("{flags} --allow-unfired"));
    assert!(allowed.stderr.contains("note: the fault"), "{}", allowed.all_output());
    allowed.succeeds();
    // Also if it is not the last of several runs.
    let repeats = "--repeats 2 --strategies 2 --orders 500 --window 100ms --idle park --fault kill@60s";
    launcher.result(&format!("{repeats} --strict-faults")).fails(1, &["never fired"]);
}

/// A comparison whose fault never fired does not compare what was requested.
#[test]
fn fault_that_never_fired_fails_comparison() {
    let out = tempfile::tempdir().unwrap();
    let arguments = "compare --a technique=spsc-mux --b technique=array-queue --repeats 2 --strategies 2";
    let load = format!("{FULL_REPORT} --orders 500 --window 50ms --idle park --out {}", out.path().display());
    let line = format!("{arguments} {load} --on-death continue --fault kill:strategy-0@60s");
    let result = output(&line).fails(1, &["never fired", " more)", "--allow-unfired"]);
    assert!(result.stdout.contains("never fired"), "{}", result.stdout);
}
