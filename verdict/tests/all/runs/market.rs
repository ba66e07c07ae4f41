//! Market data: latencies from the write of a touch to the triggered order, and false triggers.

use crate::common::{check_each, exported, kinds, run, summary};
use crate::fixture::{Fixture, SESSION, STAGES, Shape, TICK};
use merge::{Trigger, ViolationKind as Kind};
use protocol::plan::{Isolation, Threading};
use protocol::stamps::{Point, Record, TopOfBookWritten};
use protocol::wire::OrderId;
use verdict::inspect::{Options, inspect};
use verdict::report::terminal;
use verdict::summary::{Figures, Measure};

const ID: OrderId = OrderId::new(1, 0, 7);

const MARKET: Shape = Shape { book: true, market: true, ..Shape::PLAIN };

fn honest() -> Fixture {
    Fixture::new(MARKET)
}

#[test]
fn tick_to_trade_starts_at_exchange_write() {
    for threading in [Threading::Dedicated, Threading::Shared] {
        let fixture = Fixture::new(Shape { threading, ..MARKET });
        let merged = run(&fixture);
        assert_eq!((merged.violations.as_slice(), merged.touches_written), (&[][..], 40));
        let row = merged.orders().find(|(id, _)| *id == ID).unwrap().1;
        let written = row.at(Point::StrategySend).map(|sent| sent - TICK);
        assert_eq!(merged.trigger(ID), Some(Trigger { version: 8, written }));
        let figures = Figures::measure(&merged, fixture.record.plan.isolation, 1.0);
        let [trade, exchange] = Measure::MARKET.map(|measure| figures.distribution(measure));
        assert_eq!((trade.count, trade.min_ns, trade.max_ns), (40, Some(TICK), Some(TICK)));
        let way = TICK + STAGES[1..4].iter().sum::<u64>() + SESSION[0];
        assert_eq!((exchange.count, exchange.min_ns, exchange.max_ns), (40, Some(way), Some(way)));
    }
}

#[test]
fn only_triggered_orders_count() {
    let mut fixture = honest();
    fixture.remove(Point::Trigger, ID);
    let merged = run(&fixture);
    assert_eq!((merged.violations.as_slice(), merged.trigger(ID)), (&[][..], None));
    assert_eq!(
        Figures::measure(&merged, fixture.record.plan.isolation, 1.0)
            .distribution(Measure::TickToTrade)
            .count,
        39
    );
}

#[test]
fn reports_show_tick_to_trade_only_with_market_data() {
    let outputs = |shape| {
        let summary = summary(&Fixture::new(shape));
        let [table, _] = exported(&summary);
        [terminal(&summary, false), table, serde_json::to_string(&summary.market).unwrap()]
    };
    let [text, table, json] = outputs(MARKET);
    assert!(text.contains("orders triggered 40"), "{text}");
    let line = text.lines().find(|line| line.starts_with("tick_to_trade")).unwrap();
    assert!(line.contains(" 30 ns"), "{line}");
    assert!(table.contains("\ntick_to_exchange,40,470,470,"), "{table}");
    assert!(json.contains("\"versions_written\":40"), "{json}");
    for text in outputs(Shape { market: false, ..MARKET }) {
        assert!(!text.contains("tick_to") && !text.contains("versions"), "{text}");
    }
}

#[test]
fn inspect_shows_the_triggering_touch() {
    let show = |fixture: &Fixture| {
        let folder = fixture.write();
        let options = Options { order: Some(ID), ..Options::default() };
        let mut out = Vec::new();
        let result = inspect(folder.path(), &options, &mut out);
        (String::from_utf8(out).unwrap(), result.is_ok())
    };
    let mut fixture = honest();
    let (text, is_good) = show(&fixture);
    let index = |words: &str| text.find(words).unwrap_or_else(|| panic!("no {words}: {text}"));
    assert!(is_good, "{text}");
    assert!(index("\ntouch") < index("\nt1") && index("\nt1") < index("\ntrigger"), "{text}");
    assert!(text.contains("tick_to_trade"), "{text}");
    fixture.set(Point::Trigger, ID, |_| 99);
    let (text, is_good) = show(&fixture);
    assert!(
        !is_good && text.contains("triggered by version 99 of its touch, which was never written"),
        "{text}"
    );
}

/// A record that only an exchange may log, in a strategy's log: excludes the strategy from the
/// figures and nothing else.
fn assert_only_strategy_0_distrusted(introduce: impl FnOnce(&mut Fixture)) {
    let mut fixture = honest();
    introduce(&mut fixture);
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    assert!(merged.threads[0].is_untrusted && !merged.threads[1].is_untrusted, "{:?}", merged.notes);
}

/// Logs the order's trigger a second time.
fn log_trigger_twice(fixture: &mut Fixture, thread: &str) {
    let record = *fixture.stamp(Point::Trigger, ID);
    fixture.push(thread, record);
}

#[test]
fn forged_trigger_is_detected() {
    let never_written = "strategy 1 order 7: triggered by version 1000, which was never written";
    let later = "strategy 1 order 7: triggered by version 9, which was written after it was sent";
    check_each(
        honest,
        &[
            (Kind::Trigger, never_written, |f| f.set(Point::Trigger, ID, |_| 1_000)),
            (Kind::Trigger, later, |f| f.set(Point::Trigger, ID, |version| version + 1)),
            (Kind::Trigger, "", |f| f.set(Point::Trigger, ID, |_| u64::MAX)),
            // Logged twice, and by an exchange that never had the order.
            (Kind::Duplicate, "", |f| log_trigger_twice(f, "exchange-1")),
            (Kind::Misplaced, "", |f| log_trigger_twice(f, "exchange-0")),
        ],
    );
    assert_only_strategy_0_distrusted(|fixture| log_trigger_twice(fixture, "strategy-0"));
}

/// In the sandbox, where strategies may be hostile, a forged trigger excludes only its strategy
/// from the figures.
#[test]
fn forged_trigger_distrusts_sandboxed_strategy() {
    let mut fixture = honest();
    fixture.record.plan.isolation = Isolation::Sandbox.into();
    fixture.set(Point::Trigger, ID, |_| 1_000);
    let merged = run(&fixture);
    assert_eq!(merged.violations, []);
    assert!(merged.threads[1].is_untrusted && !merged.threads[0].is_untrusted, "{:?}", merged.notes);
    assert!(merged.notes[0].contains("triggered by version 1000"), "{:?}", merged.notes);
    assert_eq!(
        Figures::measure(&merged, fixture.record.plan.isolation, 1.0)
            .distribution(Measure::TickToTrade)
            .count,
        20
    );
}

#[test]
fn exchange_touch_versions_are_consistent() {
    const NEXT: TopOfBookWritten = TopOfBookWritten { venue: 1, instrument: 0, version: 21, ticks: u64::MAX };
    fn write(fixture: &mut Fixture, thread: &str, written: TopOfBookWritten) {
        fixture.push(thread, written.record());
    }
    check_each(
        honest,
        &[
            (Kind::Touch, "", |f| write(f, "exchange-1", TopOfBookWritten { version: 22, ..NEXT })),
            (Kind::Touch, "", |f| write(f, "exchange-1", TopOfBookWritten { version: 3, ..NEXT })),
            (Kind::Touch, "", |f| write(f, "exchange-1", TopOfBookWritten { ticks: 1, ..NEXT })),
            (Kind::Misplaced, "", |f| write(f, "exchange-0", NEXT)),
            (Kind::Misplaced, "", |f| write(f, "exchange-1", TopOfBookWritten { instrument: 1, ..NEXT })),
            (Kind::Misplaced, "", |f| write(f, "exchange-1", TopOfBookWritten { venue: 9, ..NEXT })),
        ],
    );
    assert_only_strategy_0_distrusted(|fixture| write(fixture, "strategy-0", NEXT));
    // A skipped version invalidates its claim, and its successor is out of order.
    let mut fixture = honest();
    let of = TopOfBookWritten { venue: 1, instrument: 0, version: 20, ticks: 0 };
    let is_last = |record: &Record| {
        TopOfBookWritten::from_record(record)
            .is_some_and(|written| TopOfBookWritten { ticks: 0, ..written } == of)
    };
    let thread = fixture.thread("exchange-1");
    fixture.logs[thread].retain(|record| !is_last(record));
    assert_eq!(kinds(&run(&fixture)), [Kind::Trigger]);
}
