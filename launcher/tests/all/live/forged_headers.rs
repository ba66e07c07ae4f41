//! Strategies that overwrite shared control data, headers and the engine's doorbell. No other
//! strategy is affected.

use crate::common::{Launcher, concurrently, list, slow, string};
use serde_json::Value;

/// Four strategies and a parking engine, for longer than the faults take.
const RUN: &str = "--strategies 4 --orders 4000 --window 1s --idle park --on-death restart";

/// Returns the incidents of a strategy.
fn incidents_of(summary: &Value, strategy: u16) -> Vec<&Value> {
    list(&summary["incidents"]).iter().filter(|entry| entry["strategy"] == strategy).collect()
}

/// Checks that strategy 1 was quarantined once, for its headers, and that the others lost no order.
fn assert_contained(summary: &Value, context: &str) {
    let incidents = incidents_of(summary, 1);
    assert_eq!(incidents.len(), 1, "{context}: it is not restarted: {incidents:#?}");
    assert_eq!(incidents[0]["quarantined"], "forged-header", "{context}: {incidents:#?}");
    let cause = string(&incidents[0]["cause"]);
    let wanted = "quarantined: forged-header: it has overwritten the header of";
    assert!(cause.contains(wanted), "{context}: {cause}");
    assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{context}");
    assert_eq!(summary["outcome"]["ended"], "complete", "{context}");
}

/// A sandboxed strategy overwrites every header that it can write; then two innocent strategies are
/// killed and restarted.
#[test]
fn forged_headers_harm_no_successor() {
    if Launcher::sandboxed().is_none() {
        return;
    }
    // Per-strategy rings and a shared one; the other techniques have the same headers.
    let techniques = ["array-queue", "spsc-mux", "linked", "channel"];
    concurrently(2, &techniques[..if slow() { 4 } else { 1 }], |technique| {
        let faults = "forge-header:strategy-1@200ms;kill:strategy-0@400ms;kill:strategy-2@500ms";
        let flags = format!("--isolation sandbox --technique {technique} --fault {faults}");
        // Long enough for a launcher that is late on a busy machine: both kills follow the repair.
        let run = RUN.replace("--window 1s", "--window 4s");
        let summary = Launcher::new().summary(&format!("{run} {flags}"));
        assert_contained(&summary, technique);
        for innocent in [0, 2] {
            let incidents = incidents_of(&summary, innocent);
            assert_eq!(incidents.len(), 1, "{technique}: restarted once: {incidents:#?}");
            assert!(incidents[0]["repair_to_restart_ns"].is_u64(), "{technique}: {incidents:#?}");
            assert!(incidents[0]["quarantined"].is_null(), "{technique}: {incidents:#?}");
        }
    });
}

#[test]
fn journaled_engine_restarts_despite_forged_headers() {
    let Some(launcher) = Launcher::sandboxed() else { return };
    for isolation in if slow() { &["sandbox", "process"][..] } else { &["sandbox"] } {
        let faults = "forge-header:strategy-1@300ms;kill:engine@300ms;kill:engine@600ms";
        let book = "--venue book --venues 1 --exchange process --journal process";
        let flags = format!("--isolation {isolation} --liveness 2s --fault {faults}");
        let summary = launcher.summary(&format!("{RUN} {book} {flags}"));
        assert_contained(&summary, isolation);
        let restarts = list(&summary["comebacks"]);
        assert!(!restarts.is_empty(), "{isolation}");
        let has_recovered = |entry: &Value| entry["detect_to_recovery_ns"].is_u64();
        assert!(restarts.iter().all(has_recovered), "{isolation}: {restarts:#?}");
    }
}

/// The strategy zeroes the engine's doorbell where it can and rings it in a loop, until the
/// launcher takes it for hung. All orders of the others are returned.
#[test]
fn jammed_doorbells_block_no_one() {
    if Launcher::sandboxed().is_none() {
        return;
    }
    concurrently(2, &["process", "sandbox"], |isolation| {
        let flags = format!("--isolation {isolation} --liveness 500ms --fault jam:strategy-1@200ms");
        let summary = Launcher::new().summary(&format!("{RUN} {flags}"));
        let [incident] = list(&summary["incidents"]) else { panic!("{:#}", summary["incidents"]) };
        assert_eq!(incident["cause"], "hangs: no duty cycle for 500ms", "{isolation}");
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{isolation}");
    });
}
