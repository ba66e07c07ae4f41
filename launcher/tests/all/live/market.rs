//! Market data through real processes: the exchange writes touches, a maker and a taker are driven
//! by them.

use crate::common::{Launcher, assert_nothing_left, output, signal, text};
use serde_json::Value;

const MARKET: &[&str] = &[
    "--venue",
    "book",
    "--venues",
    "1",
    "--strategies",
    "2",
    "--strategy",
    "maker,taker",
    "--orders",
    "4000",
    "--window",
    "400ms",
];

fn supported(isolation: &str) -> bool {
    isolation != "sandbox" || system::sandbox::missing().is_empty()
}

fn number(summary: &Value, name: &str) -> u64 {
    summary["market"][name].as_u64().unwrap_or_else(|| panic!("no {name}: {:#}", summary["market"]))
}

#[test]
fn orders_are_triggered_wherever_strategies_and_the_exchange_run() {
    let cases = [
        ("thread", "thread", "park"),
        ("process", "gateway", "park"),
        ("process", "process", "auto"),
        ("sandbox", "thread", "auto"),
    ];
    for (isolation, exchange, idle) in cases.into_iter().filter(|(isolation, ..)| supported(isolation)) {
        let flags = ["--isolation", isolation, "--exchange", exchange, "--idle", idle];
        let summary = Launcher::new().summary(&[MARKET, &flags].concat());
        assert_eq!(summary["orders"]["lost"], 0, "{flags:?}");
        // Whichever was last, the exchange has written down its last book.
        assert!(!summary.to_string().contains("end of trading"), "{flags:?}");
        let written = number(&summary, "versions_written");
        // Both listen to the one instrument: each version is heard by each, or missed, but for
        // those behind the last look. How many there are is for the machine to say: who is late
        // finds another market.
        let seen = number(&summary, "versions_heard") + number(&summary, "versions_missed");
        assert!(seen > 0 && seen <= 2 * written, "{flags:?}: {:#}", summary["market"]);
        let [trade, exchange] = ["tick_to_trade", "tick_to_exchange"].map(|stage| &summary["market"][stage]);
        assert!(trade["count"].as_u64() > Some(0), "{flags:?}: {:#}", summary["market"]);
        assert_eq!(trade["count"], exchange["count"], "{flags:?}");
        assert!(exchange["min_ns"].as_u64() >= trade["min_ns"].as_u64(), "{flags:?}");
        for thread in summary["processes"].as_array().unwrap() {
            assert_eq!(thread["allocations"], 0, "{flags:?}: {thread:#}");
        }
    }
}

#[test]
fn nobody_pays_where_nobody_listens_or_it_is_off() {
    for (more, is_there) in [
        (&["--market-data", "off"][..], false),
        (&["--strategy", "player,player"], false),
        (&["--strategy", "player,player", "--market-data", "on"], true),
    ] {
        let launcher = Launcher::new();
        let flags: Vec<&str> = if more.contains(&"--strategy") {
            let without = MARKET.iter().filter(|flag| !["--strategy", "maker,taker"].contains(flag));
            without.chain(more).copied().collect()
        } else {
            [MARKET, more].concat()
        };
        let summary = launcher.summary(&flags);
        assert_eq!(!summary["market"].is_null(), is_there, "{flags:?}");
        if is_there {
            assert_eq!(
                (number(&summary, "versions_heard"), &summary["market"]["tick_to_trade"]["count"]),
                (0, &0.into())
            );
        }
    }
    let refused = Launcher::new().run(&["--market-data", "on"]).output().unwrap();
    let error = text(&refused.stderr);
    assert!(
        refused.status.code() == Some(2) && error.contains("--market-data") && error.contains("--venue book"),
        "{error}"
    );
}

/// Read-only also in the page table of processes that do not write it.
#[test]
fn a_strategy_cannot_write_the_board() {
    for isolation in ["process", "sandbox"].into_iter().filter(|isolation| supported(isolation)) {
        let launcher = Launcher::new();
        let flags = ["--isolation", isolation, "--exchange", "process", "--idle", "park", "--window", "60s"];
        let flags: Vec<&str> = MARKET.iter().take(MARKET.len() - 2).chain(&flags).copied().collect();
        let running = launcher.start(&flags);
        for (process, wanted) in [
            ("strategy-0", Some("r--s")),
            ("strategy-1", Some("r--s")),
            ("exchange-0", Some("rw-s")),
            ("engine", None),
        ] {
            let maps = std::fs::read_to_string(format!("/proc/{}/maps", running.process(process))).unwrap();
            let board = maps.lines().find(|line| line.contains(".market-0"));
            let rights = board.and_then(|line| line.split(' ').nth(1));
            assert_eq!(rights, wanted, "{isolation}: {process}");
        }
        let pid = running.pid();
        signal(pid, "INT");
        running.end();
        assert_nothing_left(pid);
    }
}

#[test]
fn inspected_order_shows_its_trigger() {
    let launcher = Launcher::new();
    launcher.summary(MARKET);
    let folder = &launcher.folders()[0];
    let dump = output(&["inspect", folder.join("engine.stamps").to_str().unwrap(), "--csv"]);
    let dump = text(&dump.stdout);
    let trigger = dump
        .lines()
        .find(|line| line.split(',').any(|cell| cell == "trigger"))
        .unwrap_or_else(|| panic!("{dump}"));
    let order = trigger.split(',').find(|cell| cell.contains('/')).unwrap();
    let shown = output(&["inspect", folder.to_str().unwrap(), "--order", order]);
    let shown = text(&shown.stdout);
    assert!(shown.contains("tick_to_trade") && shown.contains("touch"), "{shown}");
}
