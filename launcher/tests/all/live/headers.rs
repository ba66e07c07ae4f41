//! Strategies that write over what others go by: headers, and the doorbells that wake the engine.
//! They harm nobody else.

use crate::common::{Launcher, SHORT, concurrently, slow, text};
use serde_json::Value;

fn sandbox_is_missing() -> bool {
    let missing = system::sandbox::missing();
    if !missing.is_empty() {
        eprintln!("SKIPPED: {}", missing.join("; "));
    }
    !missing.is_empty()
}

/// Four strategies and an engine that parks: for longer than the faults take.
const RUN: &[&str] =
    &["--strategies", "4", "--orders", "4000", "--window", "1s", "--idle", "park", "--on-death", "restart"];

/// The attacker is quarantined for its headers, once; the others lose nothing.
fn assert_contained(summary: &Value, attacker: u16, what: &str) {
    let incidents = summary["incidents"].as_array().unwrap();
    let mine: Vec<_> = incidents.iter().filter(|one| one["strategy"] == attacker).collect();
    assert_eq!(mine.len(), 1, "{what}: it is not started again: {incidents:#?}");
    assert_eq!(mine[0]["quarantined"], "forged-header", "{what}: {incidents:#?}");
    let cause = mine[0]["cause"].as_str().unwrap();
    assert!(
        cause.contains("quarantined: forged-header: it has overwritten the header of"),
        "{what}: {cause}"
    );
    assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{what}");
    assert_eq!(
        (&summary["outcome"]["ended"], &summary["valid"]),
        (&"complete".into(), &true.into()),
        "{what}"
    );
}

/// The header of everything that a sandboxed strategy can write; and then an innocent one dies, and
/// the engine.
#[test]
fn forged_headers_harm_no_successor() {
    if sandbox_is_missing() {
        return;
    }
    // Rings of a strategy's own and a shared one; the others have the same headers.
    let techniques = ["spsc-mux", "array-queue", "linked", "channel"];
    concurrently(2, &techniques[..if slow() { 4 } else { 2 }], |technique| {
        let launcher = Launcher::new();
        let faults = "forge-header:strategy-1@200ms; kill:strategy-0@400ms; kill:strategy-2@500ms";
        let how = ["--isolation", "sandbox", "--technique", technique, "--fault", faults];
        let summary = launcher.summary(&[RUN, &how].concat());
        assert_contained(&summary, 1, technique);
        for innocent in [0, 2] {
            let incidents = summary["incidents"].as_array().unwrap().iter();
            let died: Vec<_> = incidents.filter(|one| one["strategy"] == innocent).collect();
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
    if sandbox_is_missing() {
        return;
    }
    let launcher = Launcher::new();
    let faults = "forge-header:strategy-1@order:100; kill:strategy-1@order:100";
    let how = ["--isolation", "sandbox", "--fault", faults];
    assert_contained(&launcher.summary(&[RUN, &how].concat()), 1, "dies");
}

#[test]
fn journaled_engine_restarts_despite_forged_headers() {
    if sandbox_is_missing() {
        return;
    }
    for isolation in if slow() { &["sandbox", "process"][..] } else { &["sandbox"] } {
        let launcher = Launcher::new();
        let faults = "forge-header:strategy-1@300ms; kill:engine@300ms; kill:engine@600ms";
        let book = ["--venue", "book", "--venues", "1", "--exchange", "process", "--journal", "process"];
        let how = ["--isolation", isolation, "--liveness", "2s", "--fault", faults];
        let summary = launcher.summary(&[RUN, &book, &how].concat());
        assert_contained(&summary, 1, isolation);
        let comebacks = summary["comebacks"].as_array().unwrap();
        assert!(!comebacks.is_empty(), "{isolation}");
        assert!(
            comebacks.iter().all(|one| one["detect_to_recovery_ns"].is_u64()),
            "{isolation}: {comebacks:#?}"
        );
    }
}

#[test]
fn forged_header_ends_uncontained_run() {
    let launcher = Launcher::new();
    let how = ["--isolation", "process", "--fault", "forge-header:strategy-1@order:20"];
    let output = launcher.run(&[SHORT, &how].concat()).output().unwrap();
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("strategy-1") && stderr.contains("forged-header"), "{stderr}");
}

/// It zeroes the engine's doorbell where it can, and rings for nothing, until the launcher takes it
/// for hung. All orders of the others are returned.
#[test]
fn jammed_doorbells_block_no_one() {
    if sandbox_is_missing() {
        return;
    }
    concurrently(2, &["process", "sandbox"], |isolation| {
        let launcher = Launcher::new();
        let how = ["--isolation", isolation, "--liveness", "500ms", "--fault", "jam:strategy-1@200ms"];
        let summary = launcher.summary(&[RUN, &how].concat());
        let incidents = summary["incidents"].as_array().unwrap();
        assert_eq!(incidents.len(), 1, "{isolation}: {incidents:#?}");
        assert_eq!(incidents[0]["cause"], "hangs: no duty cycle for 500ms", "{isolation}");
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{isolation}");
        assert_eq!(summary["valid"], true, "{isolation}");
    });
}
