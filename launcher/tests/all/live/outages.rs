//! Gateways in their own processes crash or hang: their venues are down, the others continue to
//! trade, and the gateways restart.

use crate::common::{
    Launcher, Running, concurrently, has_role_threads, list, newest_process, number, output, signal, slow,
    string, wait_for, wait_until,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// 3,000 orders for two venues.
const ORDERS: &str = "--strategies 2 --venues 2 --orders 3000 --idle park";
const DELAYS: &str = "--delay uniform:1ms..20ms";
/// Two exchanges in processes of their own, whose orders rest and trade.
const EXCHANGES: &str = "--venue book --exchange process";
const APART: &str = "--process each-gateway";
const CONTINUE: &str = "--on-death continue --liveness 2s";
const RESTART: &str = "--on-death restart --liveness 2s";

/// Returns the number of orders that were rejected for a reason.
pub fn rejected(summary: &Value, reason: &str) -> u64 {
    let all = summary["trading"]["rejections"].as_array().cloned().unwrap_or_default();
    all.iter().filter(|one| one["reason"] == reason).map(|one| number(&one["orders"])).sum()
}

fn outages(summary: &Value) -> &[Value] {
    list(&summary["outages"])
}

/// Makes a run in which `inject` causes faults. Checks that it completes, that each order ended
/// once, and that only orders for dead gateways were rejected. Returns its summary.
pub fn run_and_check(window: &str, flags: &str, inject: impl FnOnce(&Running)) -> (Launcher, Value) {
    let launcher = Launcher::new();
    let running = launcher.start(&format!("{ORDERS} --window {window} {flags}"));
    inject(&running);
    let result = running.end();
    assert!(result.code == Some(0) && result.stderr.contains(" died: "), "{}", result.all_output());
    let summary = launcher.newest_summary();
    assert_eq!(summary["orders"]["sent"], summary["orders"]["scheduled"]);
    check_orders(&summary);
    (launcher, summary)
}

/// Checks that each order of a run with outages ended once, and that only orders for dead gateways
/// were rejected.
fn check_orders(summary: &Value) {
    assert_eq!(summary["valid"], true, "{:#}", summary["reasons"]);
    let orders = &summary["orders"];
    let count = |name: &str| number(&orders[name]);
    assert_eq!((count("lost"), count("duplicated")), (0, 0));
    assert_eq!(count("sent"), count("returned") + count("rejected"));
    let (unknown, down) = (rejected(summary, "venue-unknown"), rejected(summary, "venue-down"));
    assert_eq!(count("rejected"), unknown + down, "nothing else was rejected");
    assert_eq!(unknown, outages(summary).iter().map(|outage| number(&outage["unknown"])).sum::<u64>());
    assert!(outages(summary).iter().all(|outage| outage["repaired_ns"].is_u64()), "{summary:#}");
}

/// Returns the only outage of a run in which gateway 1 of two crashed and stayed down.
fn sole_permanent_outage(summary: &Value) -> &Value {
    let [outage] = outages(summary) else { panic!("{summary:#}") };
    assert_eq!((&outage["gateways"], &outage["restarted_ns"]), (&json!([1]), &Value::Null));
    outage
}

#[test]
fn dead_gateway_takes_down_its_venue_only() {
    let flags =
        "--technique unix-seqpacket --on-death continue --liveness 300ms --fault stop:gateway-1@300ms";
    // Long enough for a launcher that is late on a busy machine: orders are to follow the outage.
    let (launcher, summary) = run_and_check("6s", &format!("{DELAYS} {APART} {flags}"), |_| ());
    let outage = sole_permanent_outage(&summary);
    assert!(string(&outage["cause"]).contains("hangs"), "{outage}");
    assert!(number(&outage["fault_ns"]) <= number(&outage["detected_ns"]), "{outage}");
    let (unknown, down) = (rejected(&summary, "venue-unknown"), rejected(&summary, "venue-down"));
    assert!(unknown > 0 && down > 0, "{unknown} {down}");
    // Half of the orders are for each venue, and all those of venue 0 returned.
    let orders = &summary["orders"];
    assert!(number(&orders["returned"]) >= number(&orders["sent"]) * 2 / 5, "{orders}");
    let reasons = summary["reasons"].to_string();
    for expected in ["gateway-1 (pid", "of venue-1 died", "to the end"] {
        assert!(reasons.contains(expected), "{reasons}");
    }
    // The report from the folder has the same verdict and outages.
    let again = output(&format!("report {} --json", launcher.folder().display())).json();
    assert_eq!((&again["valid"], &again["outages"]), (&true.into(), &summary["outages"]));
}

#[test]
fn exchange_gateway_stays_down_and_fills_are_conserved() {
    let flags = format!("{EXCHANGES} {APART} {CONTINUE} --journal process");
    let (_, summary) = run_and_check("2s", &flags, |running| signal(running.process("gateway-1"), "KILL"));
    sole_permanent_outage(&summary);
}

/// Checks that each dead gateway was restarted and resumed its session, so that no order is
/// unknown.
pub fn assert_resumed(summary: &Value) {
    assert_eq!(rejected(summary, "venue-unknown"), 0);
    for outage in outages(summary) {
        assert_eq!((&outage["unknown"], &outage["stayed_down"]), (&json!(0), &Value::Null));
        assert!(number(&outage["restarted_ns"]) > number(&outage["repaired_ns"]), "{outage}");
    }
}

#[test]
fn gateway_of_an_exchange_resumes_its_session() {
    let cases = [
        (APART, "gateway-1", "--journal process --isolation sandbox --allow-weaker-sandbox"),
        ("--process gateways", "gateways", ""),
    ];
    concurrently(2, &cases, |(placement, process, more)| {
        let flags = format!("{EXCHANGES} {placement} --on-death restart --liveness 500ms {more}");
        // Long enough for a successor that is late on a busy machine: it is stopped in the run.
        let (_, summary) = run_and_check("6s", &flags, |running| {
            let first = running.process(process);
            signal(first, "KILL");
            let second =
                wait_for("the gateway was restarted", || newest_process(running.pid(), process, first));
            // A gateway that is stopped before it serves would be part of the same outage.
            wait_until("the gateway serves", || has_role_threads(second));
            std::thread::sleep(Duration::from_millis(300));
            signal(second, "STOP");
        });
        assert_resumed(&summary);
        let [_, hang] = outages(&summary) else { panic!("{flags}: {:#}", summary["outages"]) };
        assert!(string(&hang["cause"]).contains("hangs"), "{flags}: {hang}");
        assert!(number(&summary["orders"]["returned"]) > number(&summary["orders"]["sent"]) / 3, "{flags}");
    });
}

/// Makes runs in which gateways are killed repeatedly, until there were enough kills. `check` is
/// called with each summary.
fn kill_often(load: &str, check: impl Fn(&Value)) {
    let required_kills = if slow() { 1_000 } else { 4 };
    let mut kills = 0;
    let mut killed_gateways = BTreeSet::new();
    for technique in ["spsc-mux", "array-queue"].into_iter().cycle() {
        let faults = "kill:gateway-0@100ms every 170ms; kill:gateway-1@130ms every 230ms";
        let flags = format!("{load} {APART} {RESTART} --technique {technique} --fault '{faults}'");
        let (_, summary) = run_and_check("2s", &flags, |_| ());
        check(&summary);
        kills += outages(&summary).len();
        killed_gateways.extend(outages(&summary).iter().map(|outage| number(&outage["gateways"][0])));
        if kills >= required_kills {
            break;
        }
    }
    assert_eq!(killed_gateways.len(), 2, "both gateways were killed");
    eprintln!("{kills} gateways killed: nothing lost, nothing doubled");
}

#[test]
fn gateways_killed_often_lose_and_double_nothing() {
    kill_often(DELAYS, |summary| {
        let is_restarted = |outage: &&Value| outage["restarted_ns"].as_u64() > outage["repaired_ns"].as_u64();
        let restarts = outages(summary).iter().filter(is_restarted).count();
        assert!(restarts + 2 >= outages(summary).len(), "{:#}", summary["outages"]);
    });
}

#[test]
fn sessions_resumed_often_lose_and_double_nothing() {
    kill_often(EXCHANGES, assert_resumed);
}
