//! The exchange as a venue: the recorded morning through real processes, and drawn flow at every
//! placement.

use crate::common::{Launcher, text};
use serde_json::Value;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

fn data(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/coinbase-2016-03-12").join(file)
}

fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines().skip(1).map(|line| line.split(',').map(str::to_owned).collect()).collect()
}

/// The recorded id of each order as the run names it: `strategy/sequence`.
fn recorded_ids(strategies: u64) -> HashMap<String, String> {
    let mut sent = HashMap::<u64, u64>::new();
    let name = |row: &Vec<String>| {
        let strategy = row[3].parse::<u64>().unwrap() % strategies;
        let sequence = sent.entry(strategy).or_default();
        *sequence += 1;
        (format!("{strategy}/{}", *sequence - 1), row[3].clone())
    };
    rows(&data("flow.csv")).iter().map(name).collect()
}

/// Plays the recording; its trades and last book must be those that the real exchange published.
pub fn plays_the_morning(strategies: u64, isolation: &str, more: &[&str]) -> Value {
    let launcher = Launcher::new();
    let (flow, book, many) = (data("flow.csv"), data("opening_book.csv"), strategies.to_string());
    let flags = [
        &[
            "--venue",
            "book",
            "--venues",
            "1",
            "--strategies",
            &many,
            "--isolation",
            isolation,
            "--speed",
            "50",
        ],
        &["--schedule", flow.to_str().unwrap(), "--book", book.to_str().unwrap()][..],
        more,
    ]
    .concat();
    let summary = launcher.summary(&flags);
    assert_eq!((&summary["orders"]["sent"], &summary["orders"]["lost"]), (&3800.into(), &0.into()));

    let folder = &launcher.folders()[0];
    let ids = recorded_ids(strategies);
    let id = |name: &str| name.strip_prefix("book:").map_or_else(|| ids[name].clone(), str::to_owned);
    let trades: Vec<[String; 4]> = rows(&folder.join("trades-0.csv"))
        .iter()
        .map(|row| [id(&row[3]), id(&row[2]), row[4].clone(), row[5].clone()])
        .collect();
    let wanted: Vec<[String; 4]> = rows(&data("expected_trades.csv"))
        .iter()
        .map(|row| [row[1].clone(), row[2].clone(), row[3].clone(), row[4].clone()])
        .collect();
    assert_eq!(trades, wanted);

    let levels = |side: &str| -> Vec<[String; 3]> {
        let book = rows(&folder.join("book-0.csv"));
        let of_side = book.iter().filter(|row| row[1] == side).take(50);
        of_side.map(|row| [row[1].clone(), row[3].clone(), row[4].clone()]).collect()
    };
    let expected = rows(&data("expected_final_book.csv"));
    for side in ["B", "S"] {
        let wanted: Vec<[String; 3]> = expected
            .iter()
            .filter(|row| row[0] == side)
            .map(|row| [row[0].clone(), row[1].clone(), row[2].clone()])
            .collect();
        assert_eq!(levels(side), wanted, "side {side}");
    }
    summary
}

#[test]
fn the_recorded_morning_comes_out_as_it_was() {
    plays_the_morning(1, "process", &["--exchange", "process"]);
    plays_the_morning(1, "sandbox", &[]);
}

#[test]
fn eight_strategies_make_the_same_morning() {
    plays_the_morning(8, "process", &["--idle", "park"]);
    plays_the_morning(8, "sandbox", &["--exchange", "process", "--idle", "park"]);
}

/// What a strategy can have at most: each order has a maximum quantity.
fn reports(summary: &Value) -> u64 {
    summary["orders"]["returned"].as_u64().unwrap()
}

#[test]
fn drawn_flow_trades_wherever_the_exchange_runs() {
    for more in [
        &["--exchange", "thread", "--isolation", "thread"][..],
        &["--exchange", "process", "--process", "each-gateway"],
        &["--venue", "book,delay", "--technique", "array-queue"],
    ] {
        let launcher = Launcher::new();
        let mut flags = vec![
            "--venues",
            "2",
            "--strategies",
            "3",
            "--orders",
            "3000",
            "--window",
            "200ms",
            "--idle",
            "park",
        ];
        if !more.contains(&"--venue") {
            flags.extend(["--venue", "book"]);
        }
        flags.extend(more);
        let summary = launcher.summary(&flags);
        assert_eq!((reports(&summary), &summary["orders"]["lost"]), (3000, &0.into()), "{flags:?}");
        let trades = rows(&launcher.folders()[0].join("trades-0.csv"));
        assert!(trades.len() > 50, "{flags:?}: {} trades", trades.len());
        // Every side of a trade is an order that was sent.
        assert!(trades.iter().all(|trade| trade[2].contains('/') && trade[3].contains('/')));
    }
}

/// Limits that hardly anything reaches.
const EVERY_CONTROL: &str = "max-order-volume=1000000000000,max-order-value=100000000000,price-collar=5000,message-rate=1000000,\
    max-executions=1000000,duplicate-window=1us,max-position=1000000000000,\
    max-gross-exposure=100000000000000,max-net-exposure=100000000000000,max-loss=100000000000,kill-message-rate=10000000";

#[test]
fn maker_and_taker_positions_match_their_fills() {
    let launcher = Launcher::new();
    let folder = tempfile::tempdir().unwrap();
    let (flow, instruments) = (data("flow.csv"), folder.path().join("instruments.csv"));
    std::fs::write(&instruments, "name,reference_price\nBTC-USD,41300\n").unwrap();
    let instruments = instruments.to_str().unwrap().to_owned();
    let recorded = ["--schedule", flow.to_str().unwrap(), "--speed", "200"];
    for flow in [&recorded[..], &["--orders", "6000", "--window", "300ms"]] {
        let mut flags = vec!["--venue", "book", "--venues", "1", "--strategies", "3", "--idle", "park"];
        flags.extend([
            "--strategy",
            "player,maker,taker",
            "--instruments",
            &instruments,
            "--limits",
            EVERY_CONTROL,
        ]);
        flags.extend(flow);
        let summary = launcher.summary(&flags);
        assert_eq!((&summary["valid"], &summary["orders"]["lost"]), (&true.into(), &0.into()), "{flags:?}");
        let positions = summary["trading"]["positions"].as_array().unwrap();
        let fills = |strategy: u64| -> u64 {
            let of = positions.iter().filter(|position| position["strategy"] == strategy);
            of.map(|position| position["fills"].as_u64().unwrap()).sum()
        };
        for thread in summary["processes"].as_array().unwrap() {
            assert_eq!(thread["allocations"], 0, "{flags:?}: {thread:#}");
        }
        // That what is booked is what was filled, the merge has checked.
        assert!((1..3).all(|strategy| fills(strategy) > 0), "{flags:?}: {positions:#?}");
    }
}

/// What rests is open until trading is over, so a strategy may come to the end of what it may have
/// open: it is said how many orders that were, and what to do.
#[test]
fn unsent_orders_are_reported_with_remedy() {
    let told = |max_open: &str| {
        let launcher = Launcher::new();
        let book = ["--venue", "book", "--venues", "1", "--strategies", "2", "--idle", "park"];
        let load = ["--orders", "2000", "--window", "200ms", "--max-open", max_open];
        let summary = launcher.summary(&[&book[..], &load].concat());
        assert_eq!(summary["outcome"]["ended"], "complete");
        let unsent = 2000 - summary["orders"]["sent"].as_u64().unwrap();
        let reasons: Vec<String> = serde_json::from_value(summary["reasons"].clone()).unwrap();
        (unsent, reasons.into_iter().find(|reason| reason.contains("were not sent")))
    };
    let (unsent, why) = told("50");
    let wanted = format!(
        "{} of 2,000 orders were not sent: 2 strategies had 50 orders open, as many as --max-open allows, and what rests at a venue \
         stays open: raise --max-open",
        if unsent >= 1000 { format!("1,{:03}", unsent - 1000) } else { unsent.to_string() }
    );
    assert_eq!(why.as_deref(), Some(wanted.as_str()));
    assert_eq!(told("4000"), (0, None));
}

#[test]
fn impossible_exchange_settings_are_refused() {
    let launcher = Launcher::new();
    let refused = |flags: &[&str], words: &[&str]| {
        let output = launcher.run(flags).output().unwrap();
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {error}");
        assert!(words.iter().all(|word| error.contains(word)), "{flags:?}: {error}");
    };
    refused(&["--book", "x.csv"], &["--book", "--venue book"]);
    refused(&["--exchange", "process"], &["--exchange", "--venue book"]);
    refused(&["--venue", "book", "--book", "/nowhere.csv"], &["/nowhere.csv", "No such file"]);
    let flow = data("flow.csv");
    refused(&["--venue", "book", "--book", flow.to_str().unwrap()], &["line 1", "order_id,side,price"]);
    refused(&["--venue", "book", "--sequence", "recorded"], &["--schedule"]);
    let recorded = ["--schedule", flow.to_str().unwrap(), "--venue", "book", "--sequence", "recorded"];
    refused(
        &[&recorded[..], &["--strategies", "2", "--strategy", "maker,player"]].concat(),
        &["maker,player"],
    );
    assert_eq!(launcher.folders().len(), 0);
}
