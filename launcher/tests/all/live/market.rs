//! Market data through real processes: the exchange writes touches, a maker and a taker are driven
//! by them.

use crate::common::{Launcher, assert_no_allocations, number, output, proc};
use serde_json::Value;

/// A market without its strategies.
const MARKET: &str = "--venue book --venues 1 --strategies 2 --orders 4000";
const TRADERS: &str = "--strategy maker,taker";

fn is_there(isolation: &str) -> bool {
    isolation != "sandbox" || system::sandbox::missing().is_empty()
}

fn figure(summary: &Value, name: &str) -> u64 {
    number(&summary["market"][name])
}

#[test]
fn orders_are_triggered_wherever_strategies_and_the_exchange_run() {
    let launcher = Launcher::new();
    let cases = [
        ("thread", "thread", "park"),
        ("process", "process", "auto"),
        ("sandbox", "thread", "auto"),
        // The last one: its triggers are in the engine's log.
        ("process", "gateway", "park"),
    ];
    for (isolation, exchange, idle) in cases.into_iter().filter(|(isolation, ..)| is_there(isolation)) {
        let how = format!("--isolation {isolation} --exchange {exchange} --idle {idle}");
        let summary = launcher.summary(&format!("{MARKET} {TRADERS} --window 400ms {how}"));
        assert_eq!(summary["orders"]["lost"], 0, "{how}");
        // Whichever was last, the exchange has written down its last book.
        assert!(!summary.to_string().contains("end of trading"), "{how}");
        let written = figure(&summary, "versions_written");
        // Both listen to the one instrument: each version is heard by each, or missed, but for
        // those behind the last look. How many there are is for the machine to say: who is late
        // finds another market.
        let seen = figure(&summary, "versions_heard") + figure(&summary, "versions_missed");
        assert!(seen > 0 && seen <= 2 * written, "{how}: {:#}", summary["market"]);
        let [trade, exchange] = ["tick_to_trade", "tick_to_exchange"].map(|stage| &summary["market"][stage]);
        assert!(number(&trade["count"]) > 0, "{how}: {:#}", summary["market"]);
        assert_eq!(trade["count"], exchange["count"], "{how}");
        assert!(number(&exchange["min_ns"]) >= number(&trade["min_ns"]), "{how}");
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
fn nobody_pays_where_nobody_listens_or_it_is_off() {
    for (more, is_there) in [
        ("--strategy maker,taker --market-data off", false),
        ("--strategy player,player", false),
        ("--strategy player,player --market-data on", true),
    ] {
        let summary = Launcher::new().summary(&format!("{MARKET} --window 400ms {more}"));
        assert_eq!(!summary["market"].is_null(), is_there, "{more}");
        if is_there {
            let triggered = &summary["market"]["tick_to_trade"]["count"];
            assert_eq!((figure(&summary, "versions_heard"), triggered), (0, &0.into()));
        }
    }
}

/// Read-only also in the page table of processes that do not write it.
#[test]
fn a_strategy_cannot_write_the_board() {
    for isolation in ["process", "sandbox"].into_iter().filter(|isolation| is_there(isolation)) {
        let launcher = Launcher::new();
        let running = launcher.start(&format!(
            "{MARKET} {TRADERS} --isolation {isolation} --exchange process --idle park --window 60s"
        ));
        for (process, wanted) in [
            ("strategy-0", Some("r--s")),
            ("strategy-1", Some("r--s")),
            ("exchange-0", Some("rw-s")),
            ("engine", None),
        ] {
            let maps = proc(running.process(process), "maps");
            let board = maps.lines().find(|line| line.contains(".market-0"));
            let rights = board.and_then(|line| line.split(' ').nth(1));
            assert_eq!(rights, wanted, "{isolation}: {process}");
        }
        running.interrupt();
    }
}
