//! Gateways in processes of their own that die or hang: their venues are down, and the others trade on.

use crate::common::{LONG, Launcher, Running, assert_nothing_left, output, signal};
use serde_json::Value;

/// Each gateway in a process of its own, with a deadline for hangs that a busy machine keeps.
const APART: &[&str] = &["--process", "each-gateway", "--liveness", "2s", "--on-death", "continue"];

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The orders that were rejected for a reason.
fn rejected(summary: &Value, reason: &str) -> u64 {
    let all = summary["trading"]["rejections"].as_array().cloned().unwrap_or_default();
    all.iter().filter(|one| one["reason"] == reason).map(|one| number(&one["orders"])).sum()
}

/// A run of 20,000 orders in two seconds and its summary, after `strike` has seen it.
fn struck(launcher: &Launcher, flags: &[&str], strike: impl FnOnce(&Running)) -> Value {
    let load = ["--orders", "20000", "--window", "2s", "--no-floor"];
    let load = &load[..4];
    let running = launcher.start(&[LONG, load, flags].concat());
    let pid = running.pid();
    strike(&running);
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("venue-1 is down: "), "{stderr}");
    assert_nothing_left(pid);
    let folder = launcher.folders().pop().unwrap();
    serde_json::from_slice(&std::fs::read(folder.join("summary.json")).unwrap()).unwrap()
}

/// What holds of any run in which gateway 1 of two died and stayed down.
fn is_contained(summary: &Value, cause: &str) {
    assert_eq!(summary["valid"], true, "{:#}", summary["reasons"]);
    let orders = &summary["orders"];
    assert_eq!((number(&orders["lost"]), number(&orders["duplicated"])), (0, 0));
    assert_eq!(number(&orders["sent"]), number(&orders["scheduled"]));
    assert_eq!(number(&orders["sent"]), number(&orders["returned"]) + number(&orders["rejected"]));
    let [outage] = summary["outages"].as_array().unwrap().as_slice() else { panic!("{summary:#}") };
    assert_eq!(outage["gateways"], serde_json::json!([1]));
    assert!(outage["cause"].as_str().unwrap().contains(cause), "{outage}");
    assert!(outage["repaired_ns"].is_u64(), "{outage}");
    let (unknown, down) = (rejected(summary, "venue-unknown"), rejected(summary, "venue-down"));
    assert_eq!(unknown, number(&outage["unknown"]));
    assert!(unknown > 0 && down > 0, "{unknown} {down}");
    assert_eq!(number(&orders["rejected"]), unknown + down, "nothing else was rejected");
    // Half of the orders are for each venue, and those of venue 0 all came back.
    assert!(number(&orders["returned"]) >= number(&orders["sent"]) * 2 / 5, "{orders}");
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains("venue-1 is down: gateway-1 (pid"), "{reasons}");
}

#[test]
fn killed_gateway_takes_down_its_venue_only() {
    for more in
        [&[][..], &["--technique", "array-queue"], &["--isolation", "sandbox", "--allow-weaker-sandbox"]]
    {
        let launcher = Launcher::new();
        let summary = struck(&launcher, &[APART, more].concat(), |running| {
            signal(running.process("gateway-1"), "KILL");
        });
        is_contained(&summary, "SIGKILL");
        // Read again from its folder, the run is the same.
        let folder = launcher.folders().pop().unwrap();
        let again = output(&["report", folder.to_str().unwrap(), "--json"]);
        let again: Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!((&again["valid"], &again["outages"]), (&true.into(), &summary["outages"]), "{more:?}");
    }
}

#[test]
fn stopped_gateway_is_a_hang_and_is_killed() {
    let launcher = Launcher::new();
    let flags = [APART, &["--liveness", "300ms"]].concat();
    let summary = struck(&launcher, &flags, |running| signal(running.process("gateway-1"), "STOP"));
    is_contained(&summary, "hangs");
}

#[test]
fn fault_of_a_gateway_is_dated_and_strikes_once() {
    let launcher = Launcher::new();
    let flags = [APART, &["--fault", "kill:gateway-1@500ms"]].concat();
    let summary = struck(&launcher, &flags, |_| ());
    is_contained(&summary, "SIGKILL");
    let outage = &summary["outages"][0];
    assert!(number(&outage["fault_ns"]) <= number(&outage["detected_ns"]), "{outage}");
}

#[test]
fn killed_process_of_all_gateways_takes_down_all_venues() {
    let launcher = Launcher::new();
    let flags = [LONG, &["--orders", "20000", "--window", "2s"], APART, &["--process", "gateways"]].concat();
    let running = launcher.start(&flags);
    let pid = running.pid();
    signal(running.process("gateways"), "KILL");
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains("venue-0, venue-1 are down: gateways (pid"), "{stderr}");
    assert_nothing_left(pid);
}
