//! Strategies that are threads of the engine's process: one that hangs is fenced and abandoned, and
//! what ends the process ends the run. Panics are in `contrib/examples/own-strategy/tests/broken`.

use crate::common::{Launcher, assert_nothing_left, document, list, number, string};
use serde_json::Value;

const LOAD: &str = "--isolation thread --strategies 3 --venues 2 --orders 3000 --window 1s --delay \
                    uniform:1ms..5ms --idle park --liveness 200ms";

/// Checks that only strategy 1 died, and that every order of the others has its report. Returns the
/// incidents.
fn incidents_beside_survivors(summary: &Value) -> &[Value] {
    assert_eq!(summary["outcome"]["ended"], "complete", "{:#}", summary["outcome"]);
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    let incidents = list(&summary["incidents"]);
    assert!(incidents.iter().all(|incident| incident["strategy"] == 1), "{incidents:#?}");
    for end in ["lost", "cancelled", "orphaned"] {
        let of_dead: u64 = incidents.iter().map(|incident| number(&incident["orders"][end])).sum();
        assert_eq!(number(&summary["orders"][end]), of_dead, "{end}: {:#}", summary["orders"]);
    }
    incidents
}

#[test]
fn hung_thread_is_fenced_and_abandoned() {
    for technique in ["array-queue", "rtrb-mux"] {
        let launcher = Launcher::new();
        let flags = format!("--technique {technique} --on-death restart --fault hang:strategy-1@300ms");
        let summary = launcher.summary(&format!("{LOAD} {flags}"));
        let incidents = incidents_beside_survivors(&summary);
        assert_eq!(incidents.len(), 1, "{technique}: it may still run, so nothing follows: {incidents:#?}");
        assert!(string(&incidents[0]["cause"]).starts_with("hangs: no duty cycle for"), "{incidents:#?}");
        assert!(
            incidents[0]["detect_to_repair_ns"].is_u64() && incidents[0]["repair_to_restart_ns"].is_null()
        );
        let record = document(&launcher.folder(), "run.json");
        assert_eq!(record["incidents"][0]["abandoned"], true);
        let stayed_down = &record["incidents"][0]["stayed_down"]["why"];
        let is_named = stayed_down.as_str().is_some_and(|why| why.starts_with("its thread may still run"));
        assert!(is_named, "{stayed_down}");
        // Not killed for the thread that hangs.
        assert_eq!(record["exits"][0]["how"], "exit 0", "{:#}", record["exits"]);
    }
}

#[test]
fn panicked_thread_is_restarted_alone() {
    let launcher = Launcher::new();
    let load = LOAD.replace("--liveness 200ms", "");
    let summary = launcher.summary(&format!("{load} --on-death restart --fault panic:strategy-1@300ms"));
    let incidents = incidents_beside_survivors(&summary);
    assert!(string(&incidents[0]["cause"]).contains("panicked: injected"), "{incidents:#?}");
    assert!(incidents[0]["repair_to_restart_ns"].is_u64(), "{incidents:#?}");
    assert_ne!(document(&launcher.folder(), "run.json")["incidents"][0]["abandoned"], true);
}

#[test]
fn quarantined_thread_stops_at_its_fence() {
    let launcher = Launcher::new();
    let summary = launcher.summary(&format!("{LOAD} --on-death continue --fault flood:strategy-1@300ms"));
    let incidents = incidents_beside_survivors(&summary);
    assert_eq!((incidents.len(), &incidents[0]["quarantined"]), (1, &"flood".into()), "{incidents:#?}");
    assert!(incidents[0]["detect_to_repair_ns"].is_u64(), "it floods for ever: {incidents:#?}");
}

#[test]
fn what_ends_the_process_ends_all() {
    for (fault, how, on_death) in [("exit", "exit 3", "continue"), ("segv", "SIGSEGV", "restart")] {
        let launcher = Launcher::new();
        let load = LOAD.replace("200ms", "5s");
        let flags = format!("{load} --on-death {on_death} --fault {fault}:strategy-1@300ms");
        let running = launcher.start(&flags);
        let pid = running.pid();
        running.end().fails(1, &["all (pid ", how]);
        let summary = launcher.newest_summary();
        assert_eq!(summary["outcome"]["ended"], "failed");
        assert_eq!(list(&summary["incidents"]).len(), 0, "no thread died alone");
        assert_nothing_left(pid);
    }
}
