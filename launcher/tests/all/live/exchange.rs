//! The exchange as a venue: a recorded session through real processes, and random flow at every
//! placement.

use crate::common::{Launcher, assert_no_allocations, list, number, slow};
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

/// Some columns of each row.
fn columns<const N: usize>(rows: &[Vec<String>], columns: [usize; N]) -> Vec<[String; N]> {
    rows.iter().map(|row| columns.map(|column| row[column].clone())).collect()
}

/// Returns the recorded id of each order by its id in the run, `strategy/sequence`.
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

/// Plays the recorded session; its trades and last book must equal those that the real exchange
/// published.
pub fn play_recorded_morning(strategies: u64, isolation: &str, flags: &str) -> Value {
    let launcher = Launcher::new();
    let (flow, book) = (data("flow.csv"), data("opening_book.csv"));
    let summary = launcher.summary(&format!(
        "--venue book --venues 1 --strategies {strategies} --isolation {isolation} --speed 50 --idle park \
         --schedule '{}' --book '{}' {flags}",
        flow.display(),
        book.display()
    ));
    assert_eq!((&summary["orders"]["sent"], &summary["orders"]["lost"]), (&3800.into(), &0.into()));

    let folder = launcher.folder();
    let ids = recorded_ids(strategies);
    let id = |name: &str| name.strip_prefix("book:").map_or_else(|| ids[name].clone(), str::to_owned);
    let trades = columns(&rows(&folder.join("trades-0.csv")), [3, 2, 4, 5]);
    let trades: Vec<_> = trades
        .into_iter()
        .map(|[buyer, seller, price, size]| [id(&buyer), id(&seller), price, size])
        .collect();
    assert_eq!(trades, columns(&rows(&data("expected_trades.csv")), [1, 2, 3, 4]));

    let (book, expected) = (rows(&folder.join("book-0.csv")), rows(&data("expected_final_book.csv")));
    for side in ["B", "S"] {
        let levels = book.iter().filter(|row| row[1] == side).take(50).cloned().collect::<Vec<_>>();
        let expected = expected.iter().filter(|row| row[0] == side).cloned().collect::<Vec<_>>();
        assert_eq!(columns(&levels, [1, 3, 4]), columns(&expected, [0, 1, 2]), "side {side}");
    }
    summary
}

#[test]
fn recorded_morning_reproduces_its_trades_and_book() {
    play_recorded_morning(1, "process", "--exchange process");
}

#[test]
fn drawn_flow_trades_wherever_the_exchange_runs() {
    for flags in [
        "--venue book --exchange thread --isolation thread",
        "--venue book --exchange process --process each-gateway",
        "--venue book,delay --technique array-queue",
    ] {
        let launcher = Launcher::new();
        let load = "--venues 2 --strategies 3 --orders 3000 --window 200ms --idle park";
        let summary = launcher.summary(&format!("{load} {flags}"));
        let orders = &summary["orders"];
        assert_eq!((&orders["returned"], &orders["lost"]), (&3000.into(), &0.into()), "{flags}");
        let trades = rows(&launcher.folder().join("trades-0.csv"));
        assert!(trades.len() > 50, "{flags}: {} trades", trades.len());
        // Every side of a trade is an order that was sent.
        assert!(trades.iter().all(|trade| trade[2].contains('/') && trade[3].contains('/')));
    }
}

/// All limits, at values that hardly any order reaches.
const EVERY_CONTROL: &str = "max-order-volume=1000000000000,max-order-value=100000000000,price-collar=5000,message-rate=1000000,\
    max-executions=1000000,duplicate-window=1us,max-position=1000000000000,\
    max-gross-exposure=100000000000000,max-net-exposure=100000000000000,max-loss=100000000000,kill-message-rate=10000000";

#[test]
fn maker_and_taker_positions_match_their_fills() {
    let launcher = Launcher::new();
    let folder = tempfile::tempdir().unwrap();
    let instruments = folder.path().join("instruments.csv");
    std::fs::write(&instruments, "name,reference_price\nBTC-USD,41300\n").unwrap();
    let recorded = format!("--schedule '{}' --speed 200", data("flow.csv").display());
    for flow in [&recorded, "--orders 6000 --window 300ms"] {
        let summary = launcher.summary(&format!(
            "--venue book --venues 1 --strategies 3 --idle park --strategy player,maker,taker \
             --instruments {} --limits {EVERY_CONTROL} {flow}",
            instruments.display()
        ));
        assert_eq!(summary["orders"]["lost"], 0, "{flow}");
        assert_no_allocations(&summary);
        // The merge has checked that positions equal the fills.
        let positions = list(&summary["trading"]["positions"]);
        let has_fills = |strategy: u64| {
            let mut own_positions = positions.iter().filter(|position| position["strategy"] == strategy);
            own_positions.any(|position| number(&position["fills"]) > 0)
        };
        assert!(has_fills(1) && has_fills(2), "{flow}: {positions:#?}");
    }
}

/// Resting orders stay open until the end of trading, so a strategy may reach `--max-open`. The
/// summary then gives the number of unsent orders and the remedy.
#[test]
fn unsent_orders_are_reported_with_remedy() {
    let unsent_orders = |max_open: u64| {
        let summary = Launcher::new().summary(&format!(
            "--venue book --venues 1 --strategies 2 --idle park --orders 2000 --window 200ms --max-open {max_open}"
        ));
        assert_eq!(summary["outcome"]["ended"], "complete");
        let unsent = 2000 - number(&summary["orders"]["sent"]);
        let reasons: Vec<String> = serde_json::from_value(summary["reasons"].clone()).unwrap();
        (unsent, reasons.into_iter().find(|reason| reason.contains("were not sent")))
    };
    let (unsent, reason) = unsent_orders(50);
    let expected = format!(
        "{} of 2,000 orders were not sent: 2 strategies had 50 orders open, as many as --max-open allows, and what rests at a venue \
         stays open: raise --max-open",
        if unsent >= 1000 { format!("1,{:03}", unsent - 1000) } else { unsent.to_string() }
    );
    assert_eq!(reason.as_deref(), Some(expected.as_str()));
    assert_eq!(unsent_orders(4000), (0, None));
}

/// Restarts of the engine do not count as progress, so the run ends after six limits, half a
/// minute: `BULKHEAD_SLOW=1` only.
#[test]
fn blocked_run_ends_while_its_engine_is_killed_repeatedly() {
    if !slow() {
        return;
    }
    let summary = Launcher::new().summary(
        "--venue book --venues 1 --exchange process --idle park --journal process --on-death restart \
         --orders 40k --window 4s --max-open 4k --fault 'kill:engine@200ms every 400ms'",
    );
    let sent = number(&summary["orders"]["sent"]);
    assert!((4_000..40_000).contains(&sent), "{sent}");
    assert!(list(&summary["comebacks"]).len() > 20);
    assert_eq!(summary["orders"]["lost"], 0);
}

#[test]
fn impossible_exchange_settings_are_refused() {
    let launcher = Launcher::new();
    let flow = data("flow.csv").display().to_string();
    for (flags, expected) in [
        ("--book x.csv", ["--book", "--venue book"]),
        ("--exchange process", ["--exchange", "--venue book"]),
        ("--journal process", ["--journal", "--venue book"]),
        ("--market-data on", ["--market-data", "--venue book"]),
        ("--fault kill:exchange", ["--fault", "--venue book"]),
        ("--venue book --fault kill:exchange", ["--fault", "--exchange process"]),
        ("--venue book --exchange process --fault segv:exchange", ["--fault", "only kill and stop"]),
        ("--venue book --exchange process --venues 1 --fault kill:exchange-1", ["--fault", "venue-1"]),
        ("--venue book --book /nowhere.csv", ["/nowhere.csv", "No such file"]),
        (&format!("--venue book --book '{flow}'"), ["line 1", "order_id,side,price"]),
        ("--venue book --sequence recorded", ["--sequence recorded", "--schedule"]),
        (
            &format!(
                "--schedule '{flow}' --venue book --sequence recorded --strategies 2 --strategy maker,player"
            ),
            ["--sequence recorded", "maker,player"],
        ),
    ] {
        launcher.result(flags).fails(2, &expected);
    }
    assert_eq!(launcher.folders().len(), 0);
}

#[test]
fn nothing_of_crossers_stays_open() {
    let launcher = Launcher::new();
    // Far fewer open orders are allowed than are sent: a run of players would end early.
    let load = "--orders 6000 --window 1s --idle park --max-open 400";
    let summary = launcher.summary(&format!("--preset durable --strategies 3 --venues 2 {load}"));
    assert_eq!((&summary["orders"]["sent"], &summary["orders"]["lost"]), (&6000.into(), &0.into()));
    let folder = launcher.folder();
    let trades = (0..2).map(|venue| rows(&folder.join(format!("trades-{venue}.csv"))).len());
    assert!(trades.sum::<usize>() >= 2000, "most orders trade");
}
