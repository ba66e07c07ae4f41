//! Several credentials: each venue has a gateway for each of them, with a session of its own. What
//! is refused for one credential alone is tested in `orchestrator`.

use super::exchange::play_recorded_morning;
use super::outages::{assert_resumed, run_and_check};
use crate::common::{list, number, output, serving_process, signal, wait_for};

const APART: &str = "--credentials 2 --process each-gateway";

#[test]
fn gateway_of_a_credential_resumes_its_session() {
    let flags =
        format!("{APART} --venue book --exchange process --on-death restart --liveness 2s --journal process");
    let (_, summary) = run_and_check("4s", &flags, |running| {
        let first = ["gateway-1", "gateway-2"].map(|gateway| running.process(gateway));
        first.iter().for_each(|gateway| signal(*gateway, "KILL"));
        // Once more when its successor serves, however late that is on a busy machine.
        let again = || serving_process(running.pid(), "gateway-1", &first);
        signal(wait_for("the gateway was restarted", again), "KILL");
    });
    assert_resumed(&summary);
    let outages = list(&summary["outages"]);
    let gateways: Vec<u64> = outages.iter().map(|outage| number(&outage["gateways"][0])).collect();
    assert!(gateways.contains(&1) && gateways.contains(&2), "{outages:#?}");
}

#[test]
fn credentials_make_the_recorded_morning() {
    play_recorded_morning(8, "sandbox", "--credentials 2 --exchange process --allow-weaker-sandbox");
}

#[test]
fn layout_names_venue_and_credential() {
    let run = "--strategies 2 --venues 2 --process each-gateway";
    let plan = output(&format!("run --dry-run {run} --credentials 2")).succeeds();
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in ["2 venues with 2 credentials", "venue-1/credential-0", "credential-1"] {
        assert!(plan.contains(expected), "{expected}: {plan}");
    }
    let plain = output(&format!("run --dry-run {run}")).succeeds();
    assert!(!plain.contains("credential"), "{plain}");
    output("run --dry-run --strategies 2 --credentials 3").fails(2, &["--credentials 3", "--strategies 3"]);
}
