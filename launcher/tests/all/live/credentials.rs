//! Several credentials: each venue has a gateway for each of them, whose death is down for that
//! credential alone.

use super::exchange::play_recorded_morning;
use super::journal_recovery::run_without_loss;
use super::outages::{assert_resumed, rejected, run_and_check};
use super::watching::start_trading;
use crate::common::{Launcher, list, number, output, string};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const APART: &str = "--credentials 2 --process each-gateway";

/// Returns the number of orders by strategy, venue and code of rejection (empty: none). Orders that
/// reached no gateway have no venue.
fn counts(launcher: &Launcher) -> BTreeMap<(String, String, String), u64> {
    let to = tempfile::tempdir().unwrap();
    let path = to.path().join("orders.csv");
    output(&format!("export {} --csv {}", launcher.folder().display(), path.display())).succeeds();
    let mut counts = BTreeMap::new();
    for row in csv::Reader::from_path(&path).unwrap().deserialize() {
        let row: BTreeMap<String, String> = row.unwrap();
        let key = ["strategy", "venue", "rejected"].map(|column| row[column].clone());
        *counts.entry(key.into()).or_default() += 1;
    }
    counts
}

#[test]
fn dead_gateway_is_down_for_its_credential_only() {
    // Gateway 3 is that of venue 1 for credential 1, which strategy 1 has.
    let flags = format!("{APART} --delay uniform:1ms..20ms --on-death continue --liveness 2s");
    let fault = "--fault kill:gateway-3@300ms";
    let (launcher, summary) = run_and_check("2s", &format!("{flags} {fault}"), |_| ());
    let [outage] = list(&summary["outages"]) else { panic!("{summary:#}") };
    assert_eq!((&outage["gateways"], &outage["restarted_ns"]), (&json!([3]), &Value::Null));
    assert!(rejected(&summary, "venue-unknown") > 0 && rejected(&summary, "venue-down") > 0);
    let reasons = summary["reasons"].to_string();
    assert!(
        reasons.contains("gateway-3 (pid") && reasons.contains("of venue-1/credential-1 died"),
        "{reasons}"
    );
    let (mut refused, mut answered) = ([0; 2], BTreeMap::new());
    for ((strategy, venue, rejected), count) in counts(&launcher) {
        match rejected.is_empty() {
            false => refused[strategy.parse::<usize>().unwrap()] += count,
            true => *answered.entry((strategy, venue)).or_insert(0) += count,
        }
    }
    let answered = |strategy: &str, venue: &str| answered[&(strategy.to_owned(), venue.to_owned())];
    assert!(refused[0] == 0 && refused[1] > 500, "{refused:?}");
    // Strategy 0 trades on at both venues, and strategy 1 at the other one.
    assert!(answered("0", "0") > 1_000 && answered("0", "1") > 1_000 && answered("1", "0") > 1_000);
    assert!(answered("1", "1") > 0);
}

#[test]
fn gateway_of_a_credential_resumes_its_session() {
    let flags = format!(
        "{APART} --venue book --exchange process --on-death restart --liveness 2s --journal process \
         --fault 'kill:gateway-1@200ms; kill:gateway-2@400ms; kill:gateway-1@900ms'"
    );
    let (_, summary) = run_and_check("2s", &flags, |_| ());
    assert_resumed(&summary);
    let outages = list(&summary["outages"]);
    let gateways: Vec<u64> = outages.iter().map(|outage| number(&outage["gateways"][0])).collect();
    assert!(gateways.contains(&1) && gateways.contains(&2), "{outages:#?}");
}

#[test]
fn engine_and_exchange_resume_sessions_of_all_credentials() {
    let faults = "kill:engine@300ms; kill:exchange@700ms; kill:engine@1100ms; kill:exchange@1101ms";
    let restarts = run_without_loss(faults, "--credentials 2 --journal process");
    for role in ["engine", "exchange-0"] {
        assert!(restarts.iter().any(|restart| restart["role"] == role), "{restarts:#?}");
    }
}

#[test]
fn credentials_make_the_recorded_morning() {
    play_recorded_morning(8, "process", "--credentials 3");
    play_recorded_morning(8, "sandbox", "--credentials 2 --exchange process --allow-weaker-sandbox");
}

#[test]
fn limit_of_credential_refuses_orders_of_its_strategies_only() {
    let launcher = Launcher::new();
    let summary = launcher.summary(
        "--strategies 4 --venues 2 --credentials 2 --orders 8000 --window 400ms --delay fixed:20ms --idle park \
         --limits credential-1.credential-open-orders=5",
    );
    let all = list(&summary["trading"]["rejections"]);
    let [only] = all else { panic!("{all:#?}") };
    assert!(string(&only["reason"]) == "credential-open" && number(&only["orders"]) > 1_000, "{only}");
    let counts = counts(&launcher);
    let refused = |strategy: u64| {
        let of_strategy =
            |key: &&(String, String, String)| key.0 == strategy.to_string() && !key.2.is_empty();
        counts.iter().filter(|(key, _)| of_strategy(key)).map(|(_, count)| count).sum::<u64>()
    };
    assert_eq!((refused(0), refused(2)), (0, 0), "{counts:?}");
    assert!(refused(1) > 100 && refused(3) > 100, "{counts:?}");
}

#[test]
fn watch_and_layout_name_venue_and_credential() {
    let launcher = Launcher::new();
    let run = "--strategies 2 --venues 2 --process each-gateway";
    let plan = output(&format!("run --dry-run {run} --credentials 2")).succeeds();
    let plan = plan.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in ["2 venues with 2 credentials", "venue-1/credential-0", "credential-1"] {
        assert!(plan.contains(words), "{words}: {plan}");
    }
    let plain = output(&format!("run --dry-run {run}")).succeeds();
    assert!(!plain.contains("credential"), "{plain}");
    output("run --dry-run --strategies 2 --credentials 3").fails(2, &["--credentials 3", "--strategies 3"]);
    let (running, folder) = start_trading(&launcher, "--credentials 2 --process each-gateway");
    let watched = output(&format!("watch {folder} --once")).stdout;
    assert!(watched.contains("gateway-2 1/0") && watched.contains("gateway-3 1/1"), "{watched}");
    assert!(watched.lines().all(|line| line.chars().count() <= 80), "{watched}");
    launcher.interrupted(running);
}
