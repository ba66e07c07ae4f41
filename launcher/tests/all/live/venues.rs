//! Venues with faults: every order has its one last report all the same, and the other venue's orders go on.

use crate::common::{Launcher, assert_nothing_left};
use serde_json::Value;

/// A run of two venues of which the second has a fault, and what its gateway and the other's count.
fn faulty(fault: &str, isolation: &str) -> (Value, Value, Value) {
    let launcher = Launcher::new();
    let load = ["--strategies", "2", "--venues", "2", "--orders", "2000", "--window", "400ms"];
    let more = ["--delay", "uniform:1ms..5ms", "--venue-timeout", "300ms", "--isolation", isolation];
    let summary = launcher.summary(&[&load[..], &more, &["--fault", fault]].concat());
    assert_eq!(summary["outcome"]["ended"], "complete", "{fault} {isolation}: {}", summary["outcome"]);
    assert_eq!(summary["valid"], true, "{fault} {isolation}: {}", summary["violations"]);
    let orders = &summary["orders"];
    assert_eq!((&orders["sent"], &orders["returned"]), (&2000.into(), &2000.into()), "{fault}: {orders}");
    assert_eq!((&orders["lost"], &orders["duplicated"]), (&0.into(), &0.into()), "{fault}: {orders}");
    let agents = summary["processes"].as_array().unwrap().iter().flat_map(|p| p["agents"].as_array().unwrap());
    let of = |role: &str| agents.clone().find(|agent| agent["role"] == role).unwrap()["counters"].clone();
    let (faulty, other) = (of("gateway-1"), of("gateway-0"));
    assert_nothing_left();
    assert_eq!(other["stuck"], 0, "the other venue is in order");
    assert_eq!((&other["venue-errors"], &other["refused"]), (&0.into(), &0.into()));
    (summary.clone(), faulty, other)
}

fn count(counters: &Value, name: &str) -> u64 {
    counters[name].as_u64().unwrap()
}

#[test]
fn a_faulty_venue_leaves_no_order_open_and_the_run_is_valid() {
    for isolation in ["thread", "process"] {
        let (_, slow, _) = faulty("slow:venue-1@100ms for 100ms", isolation);
        assert_eq!((count(&slow, "stuck"), count(&slow, "refused"), count(&slow, "venue-errors")), (0, 0, 0));
        let (_, away, _) = faulty("disconnect:venue-1@100ms for 100ms", isolation);
        assert!(count(&away, "refused") > 0, "{away}");
        assert_eq!((count(&away, "stuck"), count(&away, "venue-errors")), (0, 0), "what was open was cancelled");
        let (_, refuses, _) = faulty("reject:venue-1@100ms", isolation);
        assert!(count(&refuses, "refused") > 100, "{refuses}");
        let (_, mute, _) = faulty("mute:venue-1@100ms for 100ms", isolation);
        assert!(count(&mute, "stuck") > 10, "{mute}");
        let (_, garbled, _) = faulty("garble:venue-1@100ms for 100ms", isolation);
        assert!(count(&garbled, "venue-errors") > 10 && count(&garbled, "stuck") > 0, "{garbled}");
    }
}

#[test]
fn a_venue_takes_no_more_messages_than_its_limit() {
    let limited = |limit: &str| {
        let launcher = Launcher::new();
        let flags = ["--strategies", "1", "--venues", "1", "--orders", "1000", "--window", "200ms"];
        let more = ["--delay", "fixed:1ms", "--venue-limit", limit];
        let summary = launcher.summary(&[&flags[..], &more].concat());
        assert_eq!(summary["valid"], true, "{}", summary["violations"]);
        assert_eq!(summary["orders"]["returned"], 1000);
        let agents = summary["processes"].as_array().unwrap().iter().flat_map(|p| p["agents"].as_array().unwrap());
        agents.clone().find(|agent| agent["role"] == "gateway-0").unwrap()["counters"].clone()
    };
    let waits = limited("2000/s");
    assert_eq!((count(&waits, "throttled"), count(&waits, "session-sent")), (0, 1000), "they wait: {waits}");
    let rejects = limited("2000/s,reject");
    assert_eq!(count(&rejects, "throttled") + count(&rejects, "session-sent"), 1000);
    assert!(count(&rejects, "throttled") > 100, "{rejects}");
}
