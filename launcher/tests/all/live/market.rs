//! Market data through real processes: the exchange publishes its top of book, which drives a maker
//! and a taker.

use crate::common::{Launcher, assert_no_allocations, number, output, proc};
use serde_json::Value;

/// Flags of a market, without the kinds of its strategies.
const MARKET: &str = "--venue book --venues 1 --strategies 2 --orders 4000 --idle park";
const TRADERS: &str = "--strategy maker,taker";

fn is_available(isolation: &str) -> bool {
    isolation != "sandbox" || system::sandbox::missing().is_empty()
}

fn figure(summary: &Value, name: &str) -> u64 {
    number(&summary["market"][name])
}

#[test]
fn market_data_triggers_orders_at_every_placement() {
    let launcher = Launcher::new();
    let cases = [
        ("thread", "thread", "park"),
        ("process", "process", "park"),
        ("sandbox", "thread", "yield"),
        // Last, since its triggers are in the engine's log.
        ("process", "gateway", "park"),
    ];
    for (isolation, exchange, idle) in cases.into_iter().filter(|(isolation, ..)| is_available(isolation)) {
        let flags = format!("--isolation {isolation} --exchange {exchange} --idle {idle}");
        let summary = launcher.summary(&format!("{MARKET} {TRADERS} --window 400ms {flags}"));
        assert_eq!(summary["orders"]["lost"], 0, "{flags}");
        // Every exchange has saved its last book.
        assert!(!summary.to_string().contains("end of trading"), "{flags}");
        let written = figure(&summary, "versions_written");
        // Both strategies receive or miss each version of the one instrument, except those after
        // their last poll. The number of versions depends on the machine.
        let accounted = figure(&summary, "versions_heard") + figure(&summary, "versions_missed");
        assert!(accounted > 0 && accounted <= 2 * written, "{flags}: {:#}", summary["market"]);
        let [trade, exchange] = ["tick_to_trade", "tick_to_exchange"].map(|stage| &summary["market"][stage]);
        assert!(number(&trade["count"]) > 0, "{flags}: {:#}", summary["market"]);
        assert_eq!(trade["count"], exchange["count"], "{flags}");
        assert!(number(&exchange["min_ns"]) >= number(&trade["min_ns"]), "{flags}");
        assert_no_allocations(&summary);
    }
    inspected_order_shows_its_trigger(&launcher);
}

fn inspected_order_shows_its_trigger(launcher: &Launcher) {
    let folder = launcher.folder().display().to_string();
    let dump = output(&format!("inspect {folder}/engine.stamps --csv")).stdout;
    let is_trigger = |line: &&str| line.split(',').any(|cell| cell == "trigger");
    let trigger = dump.lines().find(is_trigger).unwrap_or_else(|| panic!("{dump}"));
    let order = trigger.split(',').find(|cell| cell.contains('/')).unwrap();
    let shown = output(&format!("inspect {folder} --order {order}")).stdout;
    assert!(shown.contains("tick_to_trade") && shown.contains("touch"), "{shown}");
}

#[test]
fn market_data_exists_only_with_listeners_or_on_request() {
    for (more, has_market_data) in [
        ("--strategy maker,taker --market-data off", false),
        ("--strategy player,player --market-data on", true),
    ] {
        let summary = Launcher::new().summary(&format!("{MARKET} --window 400ms {more}"));
        assert_eq!(!summary["market"].is_null(), has_market_data, "{more}");
        if has_market_data {
            let triggered = &summary["market"]["tick_to_trade"]["count"];
            assert_eq!((figure(&summary, "versions_heard"), triggered), (0, &0.into()));
        }
    }
}

/// Only the exchange maps the market data writable.
#[test]
fn strategies_map_market_data_read_only() {
    for isolation in ["process", "sandbox"].into_iter().filter(|isolation| is_available(isolation)) {
        let launcher = Launcher::new();
        let running = launcher.start(&format!(
            "{MARKET} {TRADERS} --isolation {isolation} --exchange process --idle park --window 60s"
        ));
        for (process, expected) in [
            ("strategy-0", Some("r--s")),
            ("strategy-1", Some("r--s")),
            ("exchange-0", Some("rw-s")),
            ("engine", None),
        ] {
            let maps = proc(running.process(process), "maps");
            let board = maps.lines().find(|line| line.contains(".market-0"));
            let rights = board.and_then(|line| line.split(' ').nth(1));
            assert_eq!(rights, expected, "{isolation}: {process}");
        }
        running.interrupt();
    }
}
