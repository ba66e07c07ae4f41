//! Every fault that a strategy does to itself, live: with `--on-death stop` the run ends, names who
//! died of what, and leaves nothing behind.

use crate::common::{LONG, Launcher, SHORT, assert_nothing_left, concurrently, signal, slow, text};

/// Runs with these flags until the fault in strategy 1 has ended the run; what was said.
fn ended_by(flags: &[&str], fault: &str) -> String {
    let launcher = Launcher::new();
    // Short only where it is waited for: a backtrace takes its time.
    let liveness = if ["hang", "stop", "feign", "scribble"].iter().any(|kind| fault.starts_with(kind)) {
        "1s"
    } else {
        "10s"
    };
    let all = [LONG, &["--on-death", "stop", "--liveness", liveness, "--fault", fault], flags].concat();
    let running = launcher.start(&all);
    let pid = running.pid();
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(1), "{fault} {flags:?}: {stderr}");
    assert!(!stderr.contains("panicked"), "{fault} {flags:?}: {stderr}");
    assert_nothing_left(pid);
    stderr
}

/// How the strategy ends that does this to itself.
const ENDS: [(&str, &str); 10] = [
    ("kill", "SIGKILL"),
    ("stop", "hangs"),
    ("hang", "hangs"),
    ("segv", "SIGSEGV"),
    ("abort", "SIGABRT"),
    ("exit", "exit 3"),
    ("oom", "SIGABRT"),
    ("leak", "SIGABRT"),
    ("forge", "forged heartbeat: it lies in the future"),
    ("feign", "has not exited"),
];

#[track_caller]
fn ends_as_it_should(flags: &[&str], kind: &str, when: &str) {
    let stderr = ended_by(flags, &format!("{kind}:strategy-1{when}"));
    let (_, how) = ENDS.iter().find(|(name, _)| *name == kind).unwrap();
    assert!(stderr.contains("strategy-1") && stderr.contains(how), "{kind}{when} {flags:?}: {stderr}");
}

fn sandbox_is_missing() -> bool {
    let missing = system::sandbox::missing();
    if !missing.is_empty() {
        eprintln!("SKIPPED: {}", missing.join("; "));
    }
    !missing.is_empty()
}

const SANDBOX: &[&str] = &["--isolation", "sandbox"];
const THREAD: &[&str] = &["--isolation", "thread"];

#[test]
fn a_fault_strikes_at_its_time() {
    for kind in ["kill", "hang", "leak"] {
        ends_as_it_should(&[], kind, "@200ms");
    }
}

fn each_ends_as_it_should(flags: &[&str], kinds: &[&str]) {
    concurrently(5, kinds, |kind| ends_as_it_should(flags, kind, "@order:20"));
}

#[test]
fn each_kind_at_an_order() {
    each_ends_as_it_should(&[], &ENDS.map(|(kind, _)| kind));
}

#[test]
fn each_kind_in_the_sandbox() {
    if sandbox_is_missing() {
        return;
    }
    let kinds = ENDS.map(|(kind, _)| kind);
    let some = ["kill", "hang", "abort", "oom", "forge"];
    each_ends_as_it_should(SANDBOX, if slow() { &kinds } else { &some });
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
        ends_as_it_should(&["--technique", technique], kind, &format!("@push:{step}:20"));
    });
}

#[test]
fn thread_fault_ends_process_and_hang_is_detected() {
    for (kind, how) in [("exit", "exit 3"), ("hang", "hangs")] {
        let stderr = ended_by(THREAD, &format!("{kind}:strategy-1@order:20"));
        assert!(stderr.contains("all (pid") && stderr.contains(how), "{kind}: {stderr}");
    }
}

#[test]
fn a_scribbler_harms_itself_only() {
    for technique in ["spsc-mux", "pipe"] {
        let stderr = ended_by(&["--technique", technique], "scribble:strategy-1@200ms");
        assert!(stderr.contains("strategy-1") && !stderr.contains("engine"), "{technique}: {stderr}");
    }
    if !sandbox_is_missing() {
        let stderr = ended_by(SANDBOX, "scribble:strategy-1@order:20");
        assert!(stderr.contains("strategy-1") && !stderr.contains("engine"), "{stderr}");
    }
}

#[test]
fn scribbling_strategy_does_not_hang_launcher() {
    // Each may take the launcher's grace of five seconds to end.
    concurrently(2, &[&["--technique", "array-queue"], THREAD], |flags| {
        ended_by(flags, "scribble:strategy-1@200ms");
    });
}

#[test]
fn a_flood_is_noticed() {
    let stderr = ended_by(&["--max-open", "1000"], "flood:strategy-1@order:20");
    assert!(stderr.contains("strategy-1") && stderr.contains("flood"), "{stderr}");
}

#[test]
fn forged_status_during_push_blocks_no_one() {
    let forged = "quarantined: forged-status: forged heartbeat: it lies in the future";
    let feigned = "hung: reported done 1s ago but has not exited";
    for (fault, cause) in [("forge", forged), ("feign", feigned)] {
        let launcher = Launcher::new();
        let fault = format!("{fault}:strategy-1@push:claimed:20");
        let flags =
            ["--technique", "array-queue", "--on-death", "restart", "--liveness", "500ms", "--fault", &fault];
        let summary = launcher.summary(&[SHORT, &flags].concat());
        let incidents = summary["incidents"].as_array().unwrap();
        assert_eq!(incidents.len(), 1, "{fault}: neither is started again: {incidents:#?}");
        assert_eq!((&incidents[0]["strategy"], &incidents[0]["cause"]), (&1.into(), &cause.into()));
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{fault}");
    }
}

#[test]
fn unwritten_claim_in_shared_ring_is_quarantined() {
    let claims = [
        ("array-queue", "order:20"),
        ("array-queue", "push:written:20"),
        ("linked", "order:20"),
        ("channel", "order:20"),
    ];
    concurrently(4, &claims, |(technique, when)| {
        let fault = format!("hold:strategy-1@{when}");
        let flags = ["--technique", technique, "--on-death", "restart", "--liveness", "500ms"];
        let flags = [SHORT, &flags, &["--idle", "park", "--fault", &fault]].concat();
        let summary = Launcher::new().summary(&flags);
        let incidents = summary["incidents"].as_array().unwrap();
        assert_eq!(incidents.len(), 1, "{technique} {fault}: it is not started again: {incidents:#?}");
        assert_eq!(
            (&incidents[0]["strategy"], &incidents[0]["quarantined"]),
            (&1.into(), &"withheld-place".into()),
            "{technique} {fault}"
        );
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{technique} {fault}");
        assert_eq!(summary["outcome"]["ended"], "complete", "{technique} {fault}");
    });
}

#[test]
fn unwritten_claim_ends_uncontained_run() {
    for (isolation, who) in [("process", "strategy-1"), ("thread", "all")] {
        let launcher = Launcher::new();
        let flags = ["--technique", "array-queue", "--liveness", "1s", "--isolation", isolation];
        let fault = ["--fault", "hold:strategy-1@order:20"];
        let output = launcher.run(&[SHORT, &flags, &fault].concat()).output().unwrap();
        let stderr = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{who}: {stderr}");
        assert!(stderr.contains(&format!("{who} (pid")), "{who}: {stderr}");
        assert!(
            stderr.contains("claimed but never written, while its claimant keeps running"),
            "{who}: {stderr}"
        );
    }
}

#[test]
fn hang_in_shared_ring_is_reported_as_hang() {
    let launcher = Launcher::new();
    let flags = ["--technique", "array-queue", "--on-death", "restart", "--liveness", "1s"];
    let fault = ["--fault", "hang:strategy-1@push:claimed:20"];
    let summary = launcher.summary(&[SHORT, &flags, &fault].concat());
    let incidents = summary["incidents"].as_array().unwrap();
    assert_eq!(incidents.len(), 1, "{incidents:#?}");
    assert_eq!(incidents[0]["cause"], "hangs: no duty cycle for 1s");
    assert!(incidents[0]["repair_to_restart_ns"].is_u64(), "it is started again: {incidents:#?}");
}

/// Without a report nothing more is sent, long before the schedule ends.
fn lost_orders_end_run(technique: &str) {
    let flags = ["--technique", technique, "--max-open", "20", "--idle", "park"];
    let fault = ["--fault", "lose:strategy-1@order:30"];
    let output = Launcher::new().run(&[SHORT, &flags, &fault].concat()).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{technique}: {stderr}");
    assert!(stderr.contains("20 orders without a report, waiting: strategy-1"), "{technique}: {stderr}");
}

fn unwritten_claim_in_own_ring_blocks_only_itself() {
    let flags = ["--technique", "spsc-mux", "--on-death", "restart", "--idle", "park", "--json"];
    let fault = ["--liveness", "1s", "--fault", "hold:strategy-1@order:20"];
    let output = Launcher::new().run(&[SHORT, &flags, &fault].concat()).output().unwrap();
    assert!(text(&output.stderr).contains("waiting: strategy-1"), "{}", text(&output.stderr));
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["incidents"], serde_json::json!([]));
    let planned = summary["plan"]["workload"]["trading"]["orders"][0].as_u64().unwrap();
    assert_eq!(summary["orders"]["returned"], planned + 20, "all of the other one, and what was sent before");
}

fn long_pause_before_an_order_is_no_stall() {
    // Its last order, and here it is the only one, is due at the end of the window: for longer than
    // nothing may move where something should, nothing moves.
    let pareto = ["--arrivals", "pareto", "--orders", "1", "--window", "12s", "--delay", "fixed:1ms"];
    let summary = Launcher::new().summary(&[&pareto[..], &["--strategies", "1", "--idle", "park"]].concat());
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
fn one_among_many_is_drawn_by_the_seed() {
    let stderr = ended_by(&["--seed", "7"], "exit:any@order:20");
    let again = ended_by(&["--seed", "7"], "exit:any@order:20");
    let who = |text: &str| ["strategy-0", "strategy-1"].map(|name| text.contains(name));
    assert_eq!(who(&stderr), who(&again), "{stderr}");
    assert!(who(&stderr)[0] != who(&stderr)[1], "{stderr}");
}

#[test]
fn a_process_maps_read_only_what_it_only_reads() {
    let launcher = Launcher::new();
    let running = launcher.start(LONG);
    let (pid, strategy) = (running.pid(), running.process("strategy-1"));
    let maps = std::fs::read_to_string(format!("/proc/{strategy}/maps")).unwrap();
    let mut rights: Vec<(&str, &str)> = maps
        .lines()
        .filter_map(|line| {
            let (_, name) = line.split_once("/bulkhead.")?;
            Some((name.split_once('.')?.1, line.split(' ').nth(1)?))
        })
        .collect();
    rights.sort_unstable();
    let expected = [
        ("bell-engine", "r--s"),
        ("bell-strategy-1", "rw-s"),
        ("control", "r--s"),
        ("return-1", "r--s"),
        ("return-1.head", "rw-s"),
        ("schedule-1", "r--s"),
        ("submit-1", "rw-s"),
        ("submit-1.head", "r--s"),
        ("thread-strategy-1", "rw-s"),
    ];
    assert_eq!(rights, expected);
    let limits = std::fs::read_to_string(format!("/proc/{strategy}/limits")).unwrap();
    let limit = limits.lines().find(|line| line.starts_with("Max address space")).unwrap();
    assert!(!limit.contains("unlimited"), "{limit}");
    signal(pid, "INT");
    assert_eq!(running.end().0, Some(130));
    assert_nothing_left(pid);
}

/// A fault that cannot have fired is not a silent success.
#[test]
fn a_fault_that_never_struck_is_said() {
    let launcher = Launcher::new();
    // The second one finds nobody: the first one came earlier, and no strategy is restarted.
    let nobody = "kill:strategy-0@20ms; stop:strategy-0@60ms";
    for (fault, why) in [
        ("kill:strategy-0@order:99999", "order 99999"),
        ("kill:strategy-0@60s", "due after"),
        (nobody, "no target was running"),
    ] {
        let run = ["--strategies", "2", "--orders", "500", "--window", "100ms", "--idle", "park"];
        let flags = [&run[..], &["--on-death", "continue", "--fault", fault]].concat();
        let strict = launcher.run(&flags).arg("--strict-faults").output().unwrap();
        assert_eq!(strict.status.code(), Some(1));
        assert!(text(&strict.stdout).contains("never fired"), "{}", text(&strict.stdout));
        let summary = launcher.newest_summary();
        let said = summary["unstruck"][0].as_str().unwrap();
        assert!(said.contains(why) && summary["notes"].to_string().contains(said), "{summary:#}");
    }
    let strikes = [
        "--orders",
        "500",
        "--window",
        "300ms",
        "--idle",
        "park",
        "--on-death",
        "restart",
        "--strict-faults",
    ];
    let summary = launcher.summary(&[&strikes[..], &["--fault", "kill:strategy-0@50ms"]].concat());
    assert_eq!(summary["unstruck"], serde_json::json!([]));
}
