//! Gateways in processes of their own that die or hang: their venues are down, the others trade on,
//! and they restart.

use crate::common::{
    Launcher, Running, assert_nothing_left, concurrently, is_back, newest, output, signal, slow, wait_for,
    wait_until,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// 6,000 orders in two seconds for two venues.
const LOAD: &[&str] = &[
    "--strategies",
    "2",
    "--venues",
    "2",
    "--orders",
    "6000",
    "--window",
    "2s",
    "--delay",
    "uniform:1ms..20ms",
    "--idle",
    "park",
];

/// The same orders in four seconds.
fn over_four_seconds<'a>(load: &[&'a str]) -> Vec<&'a str> {
    load.iter().map(|flag| if *flag == "2s" { "4s" } else { flag }).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The orders that were rejected for a reason.
fn rejected(summary: &Value, reason: &str) -> u64 {
    let all = summary["trading"]["rejections"].as_array().cloned().unwrap_or_default();
    all.iter().filter(|one| one["reason"] == reason).map(|one| number(&one["orders"])).sum()
}

/// A run and its summary, after `strike` has seen it. It must end in order and leave nothing.
fn struck(flags: &[&str], strike: impl FnOnce(&Running)) -> (Launcher, Value) {
    let launcher = Launcher::new();
    let running = launcher.start(flags);
    let pid = running.pid();
    strike(&running);
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(0), "{stdout}{stderr}");
    assert!(stderr.contains(" died: "), "{stderr}");
    assert_nothing_left(pid);
    let folder = launcher.folders().pop().unwrap();
    let summary = serde_json::from_slice(&std::fs::read(folder.join("summary.json")).unwrap()).unwrap();
    (launcher, summary)
}

/// What holds of any run with outages: each order ended once, and only orders for dead gateways
/// were rejected.
fn is_conserved(summary: &Value) {
    assert_eq!(summary["valid"], true, "{:#}", summary["reasons"]);
    let orders = &summary["orders"];
    assert_eq!((number(&orders["lost"]), number(&orders["duplicated"])), (0, 0));
    assert_eq!(number(&orders["sent"]), number(&orders["scheduled"]));
    assert_eq!(number(&orders["sent"]), number(&orders["returned"]) + number(&orders["rejected"]));
    let (unknown, down) = (rejected(summary, "venue-unknown"), rejected(summary, "venue-down"));
    assert_eq!(number(&orders["rejected"]), unknown + down, "nothing else was rejected");
    let outages = summary["outages"].as_array().unwrap();
    assert_eq!(unknown, outages.iter().map(|outage| number(&outage["unknown"])).sum::<u64>());
    assert!(outages.iter().all(|outage| outage["repaired_ns"].is_u64()), "{outages:?}");
}

/// What holds of a run in which gateway 1 of two died and stayed down.
fn is_down_to_the_end(summary: &Value, cause: &str) {
    is_conserved(summary);
    let [outage] = summary["outages"].as_array().unwrap().as_slice() else { panic!("{summary:#}") };
    assert_eq!((&outage["gateways"], &outage["restarted_ns"]), (&json!([1]), &Value::Null));
    assert!(outage["cause"].as_str().unwrap().contains(cause), "{outage}");
    let (unknown, down) = (rejected(summary, "venue-unknown"), rejected(summary, "venue-down"));
    assert!(unknown > 0 && down > 0, "{unknown} {down}");
    // Half of the orders are for each venue, and those of venue 0 all came back.
    let orders = &summary["orders"];
    assert!(number(&orders["returned"]) >= number(&orders["sent"]) * 2 / 5, "{orders}");
    let reasons = summary["reasons"].to_string();
    assert!(reasons.contains("gateway-1 (pid") && reasons.contains("of venue-1 died"), "{reasons}");
    assert!(reasons.contains("to the end"), "{reasons}");
}

const APART: &[&str] = &["--process", "each-gateway"];
const CONTINUE: &[&str] = &["--on-death", "continue", "--liveness", "2s"];
const RESTART: &[&str] = &["--on-death", "restart", "--liveness", "2s"];

#[test]
fn killed_gateway_takes_down_its_venue_only() {
    for more in [&[][..], &["--technique", "unix-seqpacket"]] {
        let flags = [LOAD, APART, CONTINUE, more, &["--fault", "kill:gateway-1@300ms"]].concat();
        let (launcher, summary) = struck(&flags, |_| ());
        is_down_to_the_end(&summary, "SIGKILL");
        let outage = &summary["outages"][0];
        assert!(number(&outage["fault_ns"]) <= number(&outage["detected_ns"]), "{outage}");
        // Read again from its folder, the run is the same.
        let folder = launcher.folders().pop().unwrap();
        let again = output(&["report", folder.to_str().unwrap(), "--json"]);
        let again: Value = serde_json::from_slice(&again.stdout).unwrap();
        assert_eq!((&again["valid"], &again["outages"]), (&true.into(), &summary["outages"]), "{more:?}");
    }
}

/// The load on two exchanges in processes of their own, whose orders rest and trade.
fn at_exchanges() -> Vec<&'static str> {
    let load = LOAD.iter().copied().filter(|flag| !["--delay", "uniform:1ms..20ms"].contains(flag));
    load.chain(["--venue", "book", "--exchange", "process"]).collect()
}

#[test]
fn exchange_gateway_stays_down_and_fills_are_conserved() {
    let flags = [&at_exchanges(), APART, CONTINUE, &["--journal", "process"]].concat();
    let (_, summary) = struck(&flags, |running| signal(running.process("gateway-1"), "KILL"));
    is_conserved(&summary);
    let [outage] = summary["outages"].as_array().unwrap().as_slice() else { panic!("{summary:#}") };
    assert_eq!((&outage["gateways"], &outage["restarted_ns"]), (&json!([1]), &Value::Null));
}

/// What holds of a run in which each gateway that died was started again and resumed its session:
/// no order was lost with one. Returns the outages.
fn is_resumed(summary: &Value) -> Vec<Value> {
    is_conserved(summary);
    assert_eq!(rejected(summary, "venue-unknown"), 0);
    let outages = summary["outages"].as_array().unwrap();
    for outage in outages {
        assert_eq!((&outage["unknown"], &outage["stayed_down"]), (&json!(0), &Value::Null));
        assert!(number(&outage["restarted_ns"]) > number(&outage["repaired_ns"]), "{outage}");
    }
    outages.clone()
}

#[test]
fn gateway_of_an_exchange_resumes_its_session() {
    let sandbox = ["--isolation", "sandbox", "--allow-weaker-sandbox"];
    let journal = ["--journal", "process"];
    let together = ["--process", "gateways"];
    concurrently(3, &[&journal[..], &sandbox, &together], |more| {
        let process = if *more == together { "gateways" } else { "gateway-1" };
        let how = ["--on-death", "restart", "--liveness", "500ms"];
        let placement = if *more == together { &[][..] } else { APART };
        let flags = [&at_exchanges(), placement, &how, more].concat();
        let (_, summary) = struck(&flags, |running| {
            let first = running.process(process);
            signal(first, "KILL");
            let second = wait_for("the next one", || newest(running.pid(), process, first));
            // Killed or stopped before it serves, it would be part of the same outage.
            wait_until("it serves", || is_back(second));
            std::thread::sleep(Duration::from_millis(300));
            signal(second, "STOP");
        });
        let outages = is_resumed(&summary);
        assert_eq!(outages.len(), 2, "{more:?}: {outages:?}");
        assert!(outages[1]["cause"].as_str().unwrap().contains("hangs"), "{more:?}: {outages:?}");
        assert!(number(&summary["orders"]["returned"]) > number(&summary["orders"]["sent"]) / 3, "{more:?}");
    });
}

#[test]
fn orders_of_a_gateway_that_cannot_resume_are_closed() {
    // Longer than the pauses between eight restarts.
    let (_, summary) = struck(&[&over_four_seconds(&at_exchanges()), APART, RESTART].concat(), |running| {
        let mut last = running.process("gateway-1");
        signal(last, "KILL");
        // Each successor dies on its way back, until nobody starts another one.
        let mut quiet = Instant::now();
        while quiet.elapsed() < Duration::from_millis(1_500) {
            if let Some(next) = newest(running.pid(), "gateway-1", last) {
                signal(next, "KILL");
                (last, quiet) = (next, Instant::now());
            }
        }
    });
    is_conserved(&summary);
    let last = summary["outages"].as_array().unwrap().last().unwrap();
    assert_eq!(last["stayed_down"]["restarts"], 8, "{last}");
    assert!(rejected(&summary, "venue-unknown") > 0 && rejected(&summary, "venue-down") > 0);
}

#[test]
fn stopped_gateway_is_a_hang_and_is_killed() {
    let how = ["--on-death", "continue", "--liveness", "300ms", "--fault", "stop:gateway-1@300ms"];
    let (_, summary) = struck(&[&over_four_seconds(LOAD), APART, &how].concat(), |_| ());
    is_down_to_the_end(&summary, "hangs");
}

#[test]
fn killed_process_of_all_gateways_takes_down_all_venues() {
    let flags = [LOAD, CONTINUE, &["--process", "gateways"]].concat();
    let (_, summary) = struck(&flags, |running| signal(running.process("gateways"), "KILL"));
    is_conserved(&summary);
    assert_eq!(summary["outages"][0]["gateways"], json!([0, 1]));
    assert!(summary["reasons"].to_string().contains("of venue-0, venue-1 died"), "{:#}", summary["reasons"]);
}

#[test]
fn gateway_that_is_started_again_serves_its_venue() {
    let (_, summary) = struck(&[LOAD, APART, RESTART].concat(), |running| {
        let first = running.process("gateway-1");
        signal(first, "KILL");
        let second = wait_for("the next one", || newest(running.pid(), "gateway-1", first));
        // Killed or stopped before it serves, it would be part of the same outage.
        wait_until("it serves", || is_back(second));
        std::thread::sleep(Duration::from_millis(300));
        signal(second, "KILL");
    });
    is_conserved(&summary);
    let outages = summary["outages"].as_array().unwrap();
    assert_eq!(outages.len(), 2, "{outages:?}");
    for outage in outages {
        assert!(number(&outage["restarted_ns"]) > number(&outage["repaired_ns"]), "{outage}");
    }
    // Most of what was for it came back, before, between and after.
    let orders = &summary["orders"];
    assert!(number(&orders["returned"]) > number(&orders["sent"]) * 11 / 20, "{orders}");
}

/// Kills the gateways of such a load in one run after the other until there were enough deaths;
/// `check` looks at each summary.
fn kill_often(load: &[&str], check: impl Fn(&Value)) {
    let wanted = if slow() { 1_000 } else { 24 };
    let mut kills = 0;
    let mut dead = BTreeSet::new();
    for technique in ["spsc-mux", "array-queue"].into_iter().cycle() {
        let faults = "kill:gateway-0@100ms every 70ms; kill:gateway-1@130ms every 90ms";
        let flags = [load, APART, RESTART, &["--technique", technique, "--fault", faults]].concat();
        let (_, summary) = struck(&flags, |_| ());
        check(&summary);
        for outage in summary["outages"].as_array().unwrap() {
            kills += 1;
            dead.insert(number(&outage["gateways"][0]));
        }
        if kills >= wanted {
            break;
        }
    }
    assert_eq!(dead.len(), 2, "both had their deaths");
    eprintln!("{kills} gateways killed: nothing lost, nothing doubled");
}

#[test]
fn gateways_killed_often_lose_and_double_nothing() {
    kill_often(LOAD, is_conserved);
}

#[test]
fn sessions_resumed_often_lose_and_double_nothing() {
    kill_often(&at_exchanges(), |summary| drop(is_resumed(summary)));
}
