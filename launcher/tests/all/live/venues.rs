//! Venues with faults: every order has its one last report all the same, and the other venues'
//! orders go on.

use crate::common::{Launcher, assert_nothing_left};
use serde_json::Value;

fn counters(summary: &Value, role: &str) -> Value {
    let agents =
        summary["processes"].as_array().unwrap().iter().flat_map(|p| p["agents"].as_array().unwrap());
    agents.clone().find(|agent| agent["role"] == role).unwrap()["counters"].clone()
}

fn count(counters: &Value, name: &str) -> u64 {
    counters[name].as_u64().unwrap_or_else(|| panic!("{name} in {counters}"))
}

#[test]
fn faulty_venues_leave_no_order_open() {
    for isolation in ["thread", "process"] {
        let launcher = Launcher::new();
        let load = ["--strategies", "2", "--venues", "6", "--orders", "6000"];
        let more = ["--window", "400ms", "--delay", "uniform:1ms..5ms", "--venue-timeout", "500ms"];
        let faults = "slow:venue-1@100ms for 100ms; disconnect:venue-2@100ms for 100ms; reject:venue-3@100ms; \
                      mute:venue-4@100ms for 100ms; garble:venue-5@100ms for 100ms";
        let flags = [&load[..], &more, &["--isolation", isolation, "--fault", faults]].concat();
        let summary = launcher.summary(&flags);
        assert_eq!(summary["outcome"]["ended"], "complete", "{isolation}: {}", summary["outcome"]);
        assert_eq!(summary["valid"], true, "{isolation}: {}", summary["violations"]);
        let orders = &summary["orders"];
        assert_eq!((&orders["sent"], &orders["returned"]), (&6000.into(), &6000.into()), "{orders}");
        assert_eq!((&orders["lost"], &orders["duplicated"]), (&0.into(), &0.into()), "{orders}");
        let of = |venue: u16, name: &str| count(&counters(&summary, &format!("gateway-{venue}")), name);
        let bad = |venue: u16| ["stuck", "refused", "venue-errors"].map(|name| of(venue, name));
        assert_eq!(bad(0), [0, 0, 0], "it has no fault");
        assert!(of(0, "session-sent") == 0 && of(0, "received") > 800, "nor a session");
        assert_eq!((bad(1), of(1, "session-received")), ([0, 0, 0], of(1, "received")), "slow: all come");
        let [stuck, refused, errors] = bad(2);
        assert!(stuck == 0 && refused > 50 && errors == 0, "disconnected: what was open is cancelled");
        // One message each way an order: what was cancelled came when the session was up again,
        // with the next number.
        assert_eq!((of(2, "disconnects"), of(2, "session-received")), (1, of(2, "session-sent")));
        assert_eq!(of(2, "session-sent") + refused, of(2, "received"));
        let [stuck, refused, errors] = bad(3);
        assert!(stuck == 0 && refused > 300 && errors == 0, "rejects: {refused}");
        let [stuck, refused, errors] = bad(4);
        assert!(stuck > 50 && refused == 0 && errors == 0, "mute: {stuck}");
        let [stuck, refused, errors] = bad(5);
        assert!(stuck > 10 && refused == 0 && errors > 50, "garbles: {stuck} {errors}");

        // The same, told by stamps.
        let incidents = summary["venue_incidents"].as_array().unwrap();
        let kinds: Vec<_> = incidents.iter().map(|incident| incident["fault"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["slow", "disconnect", "reject", "mute", "garble"]);
        for (incident, venue) in incidents.iter().zip(1..) {
            let [stuck, refused, errors] = bad(venue);
            assert_eq!(
                (count(incident, "refused"), count(incident, "errors")),
                (refused, errors),
                "{incident}"
            );
            assert_eq!(
                (count(incident, "venue"), count(incident, "closed")),
                (venue.into(), stuck),
                "{incident}"
            );
            assert!(count(incident, "orders") > 50, "{incident}");
            assert_eq!(
                incident["recover_ns"].is_null(),
                incident["fault"] == "reject",
                "it lasts: {incident}"
            );
            let others = |when: &str| count(&incident[when], "count");
            // How many had come before depends on how soon all processes had their turns.
            assert!(others("others_before") > 0 && others("others_during") > 50, "{incident}");
        }
        assert!(count(&incidents[0], "stuck") > 100 && count(&incidents[3], "stuck") > 100, "{incidents:?}");
    }
}

#[test]
fn faulty_exchange_processes_leave_no_order_open() {
    let launcher = Launcher::new();
    let load = ["--strategies", "2", "--venues", "6", "--orders", "6000", "--json"];
    let book = ["--venue", "book", "--exchange", "process", "--idle", "park"];
    let more = ["--window", "400ms", "--venue-timeout", "500ms"];
    let faults = "slow:venue-1@100ms for 100ms; disconnect:venue-2@100ms for 100ms; reject:venue-3@100ms; \
                  mute:venue-4@100ms for 100ms; garble:venue-5@100ms for 100ms";
    let running = launcher.start(&[&load[..], &book, &more, &["--fault", faults]].concat());
    let pid = running.pid();
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(0), "{stderr}\n{stdout}");
    assert_nothing_left(pid);
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(summary["outcome"]["ended"], "complete", "{}", summary["outcome"]);
    assert_eq!(summary["valid"], true, "{}", summary["violations"]);
    let orders = &summary["orders"];
    assert_eq!((&orders["sent"], &orders["returned"]), (&6000.into(), &6000.into()), "{orders}");
    assert_eq!((&orders["lost"], &orders["duplicated"]), (&0.into(), &0.into()), "{orders}");
    let of = |venue: u16, name: &str| count(&counters(&summary, &format!("gateway-{venue}")), name);
    let bad = |venue: u16| ["stuck", "refused", "venue-errors"].map(|name| of(venue, name));
    assert_eq!(bad(0), [0, 0, 0], "it has no fault");
    assert!(of(0, "session-sent") == 0 && of(0, "received") > 800, "nor a session that is checked");
    assert_eq!(bad(1), [0, 0, 0], "slow: all come");
    let [stuck, refused, errors] = bad(2);
    assert!(stuck == 0 && refused > 50 && errors == 0, "disconnected: {stuck} {refused} {errors}");
    assert_eq!(of(2, "disconnects"), 1);
    let [stuck, refused, errors] = bad(3);
    assert!(stuck == 0 && refused > 300 && errors == 0, "rejects: {stuck} {refused} {errors}");
    let [stuck, refused, _] = bad(4);
    assert!(stuck > 50 && refused == 0, "mute: {stuck} {refused}");
    let [_, refused, errors] = bad(5);
    assert!(refused == 0 && errors > 50, "garbles: {errors}");
    for venue in 0..6 {
        assert_eq!(count(&counters(&summary, &format!("gateway-{venue}")), "protocol-errors"), 0);
    }
    let incidents = summary["venue_incidents"].as_array().unwrap();
    let kinds: Vec<_> = incidents.iter().map(|incident| incident["fault"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["slow", "disconnect", "reject", "mute", "garble"]);
    for incident in incidents {
        let others = |when: &str| count(&incident[when], "count");
        assert!(others("others_before") > 0 && others("others_during") > 50, "{incident}");
    }
}
