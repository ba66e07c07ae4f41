//! Strategies that write over what others go by: headers, and the doorbells that wake the engine.
//! They harm nobody else.

use crate::common::{Launcher, SHORT, concurrently, list, slow, string};
use serde_json::Value;

/// Four strategies and an engine that parks: for longer than the faults take.
const RUN: &str = "--strategies 4 --orders 4000 --window 1s --idle park --on-death restart";

/// The incidents of a strategy.
fn incidents_of(summary: &Value, strategy: u16) -> Vec<&Value> {
    list(&summary["incidents"]).iter().filter(|one| one["strategy"] == strategy).collect()
}

/// Strategy 1 is quarantined for its headers, once; the others lose nothing.
fn assert_contained(summary: &Value, what: &str) {
    let mine = incidents_of(summary, 1);
    assert_eq!(mine.len(), 1, "{what}: it is not started again: {mine:#?}");
    assert_eq!(mine[0]["quarantined"], "forged-header", "{what}: {mine:#?}");
    let cause = string(&mine[0]["cause"]);
    let wanted = "quarantined: forged-header: it has overwritten the header of";
    assert!(cause.contains(wanted), "{what}: {cause}");
    assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{what}");
    assert_eq!(summary["outcome"]["ended"], "complete", "{what}");
}

/// The header of everything that a sandboxed strategy can write; and then an innocent one dies, and
/// the engine.
#[test]
fn forged_headers_harm_no_successor() {
    if Launcher::sandboxed().is_none() {
        return;
    }
    // Rings of a strategy's own and a shared one; the others have the same headers.
    let techniques = ["spsc-mux", "array-queue", "linked", "channel"];
    concurrently(2, &techniques[..if slow() { 4 } else { 2 }], |technique| {
        let faults = "forge-header:strategy-1@200ms;kill:strategy-0@400ms;kill:strategy-2@500ms";
        let how = format!("--isolation sandbox --technique {technique} --fault {faults}");
        let summary = Launcher::new().summary(&format!("{RUN} {how}"));
        assert_contained(&summary, technique);
        for innocent in [0, 2] {
            let died = incidents_of(&summary, innocent);
            assert_eq!(died.len(), 1, "{technique}: started again once, and goes on: {died:#?}");
            assert!(died[0]["repair_to_restart_ns"].is_u64(), "{technique}: {died:#?}");
            assert!(died[0]["quarantined"].is_null(), "{technique}: {died:#?}");
        }
    });
}

/// The attacker dies at once, so that nobody sees its headers before its death; so does the one
/// that only overwrote them.
#[test]
fn dead_strategy_with_forged_header_is_quarantined() {
    let Some(launcher) = Launcher::sandboxed() else { return };
    let faults = "forge-header:strategy-1@order:100;kill:strategy-1@order:100";
    let summary = launcher.summary(&format!("{RUN} --isolation sandbox --fault {faults}"));
    assert_contained(&summary, "dies");
}

#[test]
fn journaled_engine_restarts_despite_forged_headers() {
    let Some(launcher) = Launcher::sandboxed() else { return };
    for isolation in if slow() { &["sandbox", "process"][..] } else { &["sandbox"] } {
        let faults = "forge-header:strategy-1@300ms;kill:engine@300ms;kill:engine@600ms";
        let book = "--venue book --venues 1 --exchange process --journal process";
        let how = format!("--isolation {isolation} --liveness 2s --fault {faults}");
        let summary = launcher.summary(&format!("{RUN} {book} {how}"));
        assert_contained(&summary, isolation);
        let comebacks = list(&summary["comebacks"]);
        assert!(!comebacks.is_empty(), "{isolation}");
        let is_back = |one: &Value| one["detect_to_recovery_ns"].is_u64();
        assert!(comebacks.iter().all(is_back), "{isolation}: {comebacks:#?}");
    }
}

#[test]
fn forged_header_ends_uncontained_run() {
    let how = "--isolation process --fault forge-header:strategy-1@order:20";
    Launcher::new().result(&format!("{SHORT} {how}")).fails(1, &["strategy-1", "forged-header"]);
}

/// It zeroes the engine's doorbell where it can, and rings for nothing, until the launcher takes it
/// for hung. All orders of the others are returned.
#[test]
fn jammed_doorbells_block_no_one() {
    if Launcher::sandboxed().is_none() {
        return;
    }
    concurrently(2, &["process", "sandbox"], |isolation| {
        let how = format!("--isolation {isolation} --liveness 500ms --fault jam:strategy-1@200ms");
        let summary = Launcher::new().summary(&format!("{RUN} {how}"));
        let [incident] = list(&summary["incidents"]) else { panic!("{:#}", summary["incidents"]) };
        assert_eq!(incident["cause"], "hangs: no duty cycle for 500ms", "{isolation}");
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{isolation}");
    });
}
