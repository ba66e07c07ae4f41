//! Venues with faults: every order still gets exactly one last report, and the other venues
//! continue.

use crate::common::{Launcher, list, number, string};
use serde_json::Value;

fn count(summary: &Value, venue: u16, name: &str) -> u64 {
    let role = format!("gateway-{venue}");
    let mut agents = list(&summary["processes"]).iter().flat_map(|process| list(&process["agents"]));
    number(&agents.find(|agent| agent["role"] == role).unwrap()["counters"][name])
}

const FAULTS: &str = "slow:venue-1@100ms for 100ms; disconnect:venue-2@100ms for 100ms; reject:venue-3@100ms; \
                      mute:venue-4@100ms for 100ms; garble:venue-5@100ms for 100ms";

/// Makes a run in which all venues but the first have a fault, each a different one.
fn run_with_faults(flags: &str) -> Value {
    let summary = Launcher::new().summary(&format!(
        "--strategies 2 --venues 6 --orders 6000 --window 400ms --venue-timeout 2s --idle park --fault '{FAULTS}' {flags}"
    ));
    assert_eq!(summary["outcome"]["ended"], "complete", "{flags}: {}", summary["outcome"]);
    let orders = &summary["orders"];
    let counts = ["sent", "returned", "lost", "duplicated"].map(|count| number(&orders[count]));
    assert_eq!(counts, [6000, 6000, 0, 0], "{flags}: {orders}");
    let failure_counts =
        |venue: u16| ["stuck", "refused", "venue-errors"].map(|name| count(&summary, venue, name));
    assert_eq!(failure_counts(0), [0, 0, 0], "venue 0 has no fault");
    let sent = count(&summary, 0, "session-sent");
    assert!(sent == 0 && count(&summary, 0, "received") > 800, "venue 0 has no session checks");
    assert_eq!(failure_counts(1), [0, 0, 0], "slow: every report arrives");
    let [stuck, refused, errors] = failure_counts(2);
    // How many orders arrive while it is disconnected depends on scheduling.
    let message = format!("disconnected: open orders are cancelled: {stuck}, {refused}, {errors}");
    assert!(stuck == 0 && refused > 0 && errors == 0, "{message}");
    assert_eq!(count(&summary, 2, "disconnects"), 1);
    let [stuck, refused, errors] = failure_counts(3);
    assert!(stuck == 0 && refused > 300 && errors == 0, "rejects: {refused}");
    let [stuck, refused, _] = failure_counts(4);
    assert!(stuck > 50 && refused == 0, "mute: {stuck}");
    let [_, refused, errors] = failure_counts(5);
    assert!(refused == 0 && errors > 50, "garbles: {errors}");

    // The stamps show the same incidents.
    let incidents = list(&summary["venue_incidents"]);
    let kinds: Vec<_> = incidents.iter().map(|incident| string(&incident["fault"])).collect();
    assert_eq!(kinds, ["slow", "disconnect", "reject", "mute", "garble"]);
    for incident in incidents {
        let others = |when: &str| number(&incident[when]["count"]);
        // How many orders came before the fault depends on scheduling.
        assert!(others("others_before") > 0 && others("others_during") > 50, "{incident}");
    }
    summary
}

#[test]
fn faulty_venues_leave_no_order_open() {
    let summary = run_with_faults("--delay uniform:1ms..5ms --isolation process");
    let counter = |venue: u16, name: &str| count(&summary, venue, name);
    assert_eq!(counter(1, "session-received"), counter(1, "received"), "slow: every report arrives");
    // One message in each direction for each order: cancels were reported after the reconnect,
    // with the next sequence number.
    assert_eq!(counter(2, "session-received"), counter(2, "session-sent"));
    assert_eq!(counter(2, "session-sent") + counter(2, "refused"), counter(2, "received"));
    assert!(counter(4, "venue-errors") == 0 && counter(5, "stuck") > 10);
    let incidents = list(&summary["venue_incidents"]);
    for (incident, venue) in incidents.iter().zip(1..) {
        let figures = ["venue", "closed", "refused", "errors"].map(|figure| number(&incident[figure]));
        let [stuck, refused, errors] = ["stuck", "refused", "venue-errors"].map(|name| counter(venue, name));
        assert_eq!(figures, [venue.into(), stuck, refused, errors], "{incident}");
        assert!(number(&incident["orders"]) > 50, "{incident}");
        let is_permanent = incident["fault"] == "reject";
        assert_eq!(
            incident["recover_ns"].is_null(),
            is_permanent,
            "a permanent fault has no recovery: {incident}"
        );
    }
    // How many orders come in that time depends on scheduling.
    for slow_or_mute in [&incidents[0], &incidents[3]] {
        let [stuck, orders] = ["stuck", "orders"].map(|figure| number(&slow_or_mute[figure]));
        assert!(stuck * 2 > orders, "most orders are stuck: {slow_or_mute}");
    }
}

#[test]
fn faulty_exchange_processes_leave_no_order_open() {
    let summary = run_with_faults("--venue book --exchange process");
    for venue in 0..6 {
        assert_eq!(count(&summary, venue, "protocol-errors"), 0);
    }
}
