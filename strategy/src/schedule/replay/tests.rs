//! Tests of the replay: the recorded flow, hand-made rows, and random bytes.

use super::*;
use proptest::prelude::*;
use protocol::wire::{OrderRequest, Side};

const FLOW: &str = include_str!("../../../../data/coinbase-2016-03-12/flow.csv");

fn settings() -> Replay {
    let delay = DelayRange { min_ns: 1000, max_ns: 2000 };
    Replay { strategies: 1, venues: 1, delay, seed: 7, speed: 1.0, orders: None }
}

fn read(rows: &str, settings: &Replay) -> Result<Schedule, ReplayError> {
    replay_from("flow.csv", rows.as_bytes(), settings)
}

/// A flow of these rows below the usual header.
fn flow(rows: &[&str]) -> String {
    format!("{}\n{}\n", HEADER, rows.join("\n"))
}

fn entries(rows: &[&str], settings: &Replay) -> Vec<Entry> {
    read(&flow(rows), settings).unwrap().entries(StrategyIndex(0)).collect()
}

fn error(rows: &[&str]) -> String {
    read(&flow(rows), &Replay { venues: 2, ..settings() }).unwrap_err().to_string()
}

#[test]
fn endless_line_is_refused_while_reading() {
    let refused =
        |input: &mut dyn std::io::Read| replay_from("flow.csv", input, &settings()).unwrap_err().to_string();
    assert!(refused(&mut std::io::repeat(0)).contains("line 1 is longer than 4096 bytes"));
    assert!(refused(&mut std::io::repeat(b'\n')).contains("lines in a row have nothing in them"));
    let head = format!("{}\n", HEADER);
    let text = refused(&mut std::io::Read::chain(head.as_bytes(), std::io::repeat(b',')));
    assert!(text.contains("line 2 is longer"), "{text}");
}

#[test]
fn recorded_flow_is_complete() {
    let schedule = read(FLOW, &settings()).unwrap();
    assert_eq!(schedule.total(), 3800);
    assert_eq!(schedule.window_ns(), 37_601_894_000);
    assert_eq!(schedule.pacing(), Pacing::Scheduled);
    let entries: Vec<Entry> = schedule.entries(StrategyIndex(0)).collect();
    let count = |test: fn(&Entry) -> bool| entries.iter().filter(|entry| test(entry)).count();
    assert_eq!(count(|e| e.request.operation == Operation::New), 1912);
    assert_eq!(count(|e| e.request.operation == Operation::New && e.request.price == 0), 2);
    assert_eq!(count(|e| e.request.operation == Operation::Cancel), 1888);
    // Ids up to 7109 were resting when the recording began.
    let resting = |e: &Entry| e.request.operation == Operation::Cancel && e.request.target & RESTING != 0;
    assert!(entries.iter().filter(|e| resting(e)).all(|e| e.request.target & !RESTING <= 7109));
    for (sequence, cancel) in entries.iter().enumerate() {
        if cancel.request.operation == Operation::Cancel && !resting(cancel) {
            assert!(cancel.request.target < sequence as u64);
            let order = entries[cancel.request.target as usize];
            let of_order = (order.request.operation, order.request.side, order.request.venue);
            assert_eq!(of_order, (Operation::New, cancel.request.side, cancel.request.venue));
        }
    }
    assert_eq!(format!("{:016x}", schedule.hash()), PINNED);
}
const PINNED: &str = "7c1315ff150d345b";

#[test]
fn file_and_text_give_equal_schedules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/coinbase-2016-03-12/flow.csv");
    let schedule = read(FLOW, &settings()).unwrap();
    assert_eq!(replay(&path, &settings()).unwrap(), schedule);
    assert_eq!(read(&FLOW.replace('\n', "\r\n"), &settings()).unwrap(), schedule);
}

#[test]
fn orders_and_their_cancels_go_to_one_strategy() {
    let settings = Replay { strategies: 3, venues: 4, ..settings() };
    let schedule = read(FLOW, &settings).unwrap();
    assert_eq!(schedule.total(), 3800);
    assert!(schedule.orders_per_strategy().iter().all(|orders| *orders > 1000));
    assert!(schedule.orders_per_strategy_and_venue().iter().all(|orders| *orders > 200));
    for strategy in StrategyIndex::first(3) {
        let entries: Vec<Entry> = schedule.entries(strategy).collect();
        assert!(entries.is_sorted_by_key(|entry| entry.fire_ns));
        for cancel in entries.iter().filter(|entry| entry.request.operation == Operation::Cancel) {
            if cancel.request.target & RESTING == 0 {
                assert_eq!(entries[cancel.request.target as usize].request.venue, cancel.request.venue);
            } else {
                let id = cancel.request.target & !RESTING;
                assert_eq!((id % 3, id / 3 % 4), (strategy.0.into(), cancel.request.venue.into()));
            }
        }
    }
}

#[test]
fn replay_applies_speed_origin_and_limit() {
    let rows = ["5000,1,new,4,B,limit,gtc,100,7", "5003,2,cancel,4,B,,,,", "5010,3,new,5,S,market,ioc,,9"];
    let fast = Replay { speed: 2.0, orders: Some(2), ..settings() };
    let entries = entries(&rows, &fast);
    let due_times: Vec<u64> = entries.iter().map(|entry| entry.fire_ns).collect();
    assert_eq!(due_times, [0, 1500]);
    let OrderRequest { price, quantity, side, target, .. } = entries[0].request;
    assert_eq!((price, quantity, side, target), (100, 7, Side::Buy, 0));
    let OrderRequest { operation, price, quantity, target, .. } = entries[1].request;
    assert_eq!((operation, price, quantity, target), (Operation::Cancel, 0, 0, 0));
    // Reading stops at the limit, so later rows do not matter.
    assert_eq!(
        read(&flow(&[rows[0], "rubbish"]), &Replay { orders: Some(1), ..settings() }).unwrap().total(),
        1
    );
}

#[test]
fn delays_depend_on_row_and_seed_only() {
    let delays = |settings: &Replay| -> Vec<u64> {
        read(FLOW, settings).unwrap().entries(StrategyIndex(0)).map(|entry| entry.request.delay_ns).collect()
    };
    let delays_at_speed_1 = delays(&settings());
    assert!(delays_at_speed_1.iter().all(|delay| (1000..=2000).contains(delay)));
    assert_eq!(delays_at_speed_1, delays(&Replay { speed: 9.0, ..settings() }));
    assert_ne!(delays_at_speed_1, delays(&Replay { seed: 8, ..settings() }));
}

#[test]
fn venue_column_selects_venue() {
    let text = format!(
        "venue,{}\n1,0,1,new,4,B,limit,gtc,9,9\n0,0,2,cancel,4,B,,,,\n1,0,3,cancel,4,B,,,,\n",
        HEADER
    );
    let entries: Vec<Entry> =
        read(&text, &Replay { venues: 2, ..settings() }).unwrap().entries(StrategyIndex(0)).collect();
    let targets: Vec<_> = entries.iter().map(|entry| (entry.request.venue, entry.request.target)).collect();
    // At venue 0, order 4 is another order, which was resting.
    assert_eq!(targets, [(1, 0), (0, RESTING | 4), (1, 0)]);
    let error = read(&text, &settings()).unwrap_err().to_string();
    assert_eq!(
        error,
        "flow.csv:2: column venue: \"1\" is not a venue of this run, which has 0 to 0: raise their number"
    );
}

#[test]
fn invalid_field_is_reported_with_line_and_column() {
    let long = format!("0,2,new,5,B,limit,gtc,{},7", "y".repeat(1_000));
    for (row, problem) in [
        ("0,2,new,5,B,limit,gtc,abc,7", "column price_cents: \"abc\" is not a whole number"),
        ("0,2,new,5,B,limit,gtc,,7", "column price_cents: \"\" is not a whole number"),
        ("0,2,new,5,B,limit,gtc,0,7", "column price_cents: \"0\" is not from 1 to 9223372036854775807"),
        (&long, "column price_cents: \"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\"… is not a whole number"),
        ("-1,2,new,5,B,limit,gtc,1,7", "column time_us: \"-1\" is not a whole number"),
        ("1.,2,new,5,B,limit,gtc,1,7", "column time_us: \"1.\" has more than three decimals"),
        (".5,2,new,5,B,limit,gtc,1,7", "column time_us: \".5\" is not a whole number"),
        ("1.2345,2,new,5,B,limit,gtc,1,7", "column time_us: \"1.2345\" has more than three decimals"),
        ("1.x,2,new,5,B,limit,gtc,1,7", "column time_us: \"1.x\" is not a whole number"),
        ("-1.5,2,new,5,B,limit,gtc,1,7", "column time_us: \"-1.5\" is not a whole number"),
        ("0,x,new,5,B,limit,gtc,1,7", "column sequence: \"x\" is not a whole number"),
        ("0,2,modify,5,B,limit,gtc,1,7", "column op: \"modify\" is not one of new, cancel"),
        (
            "0,2,new,9223372036854775808,B,limit,gtc,1,7",
            "column order_id: \"9223372036854775808\" is not from 0",
        ),
        ("0,2,new,4,B,limit,gtc,1,7", "column order_id: \"4\" names a new order for the second time"),
        ("0,2,new,5,b,limit,gtc,1,7", "column side: \"b\" is not one of B, S"),
        ("0,2,new,5,B,stop,gtc,1,7", "column type: \"stop\" is not one of limit, market"),
        ("0,2,new,5,B,limit,day,1,7", "column tif: \"day\" is not one of gtc, ioc, fok"),
        ("0,2,new,5,B,market,ioc,1,7", "column price_cents: \"1\" should be empty: a market order has none"),
        (
            "0,2,new,5,B,limit,gtc,1,99999999999999999999",
            "column qty_satoshi: \"99999999999999999999\" is larger",
        ),
        ("0,2,cancel,4,B,limit,,,", "column type: \"limit\" should be empty: a cancel has none"),
        ("0,2,new", "3 fields, the header has 9"),
    ] {
        let error = error(&["0,1,new,4,B,limit,gtc,100,7", row]);
        assert!(error.starts_with(&format!("flow.csv:3: {problem}")), "{error}");
    }
}

#[test]
fn times_must_ascend_within_window() {
    let row = |time: u64, id: u64| format!("{time},1,new,{id},B,limit,gtc,100,7");
    let error = |times: [u64; 2]| error(&[&row(times[0], 1), &row(times[1], 2)]);
    let backwards =
        "flow.csv:3: column time_us: \"9\" comes before the row above (10): sort the file by time";
    assert_eq!(error([10, 9]), backwards);
    let due_entries = entries(&["0.5,1,new,1,B,limit,gtc,1,1", "2.25,2,new,2,B,limit,gtc,1,1"], &settings());
    assert_eq!(due_entries.iter().map(|entry| entry.fire_ns).collect::<Vec<_>>(), [0, 1_750]);
    assert!(error([0, u64::MAX]).contains("104 days"));
    let slow = Replay { speed: f64::MIN_POSITIVE, ..settings() };
    assert!(read(&flow(&[&row(0, 1), &row(1, 2)]), &slow).unwrap_err().to_string().contains("104 days"));
}

#[test]
fn error_line_numbers_match_editor() {
    let bad = "0,1,new,5,B,limit,gtc,abc,7";
    for (text, line) in [
        (format!("{}\n\n\n{bad}", HEADER), 4),
        (format!("{}\r\n{bad}\r\n", HEADER), 2),
        (format!("\r\n{}\r\n\r\n{bad}", HEADER), 4),
    ] {
        let error = read(&text, &settings()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("flow.csv:{line}: column price_cents")), "{error}");
    }
}

#[test]
fn invalid_header_is_refused() {
    let first = "0,1,new,4,B,limit,gtc,100,7";
    for (header, problem) in [
        (HEADER.replace("price_cents,", ""), "flow.csv:1: no column price_cents\nexpected time_us,"),
        (HEADER.replace("tif", "foo"), "flow.csv:1: unknown column \"foo\"\n"),
        (HEADER.replace("tif", "op"), "flow.csv:1: column op is there twice\n"),
        (first.into(), "flow.csv:1: unknown column \"0\"\n"),
        (HEADER.into(), "flow.csv: no orders\n"),
        (String::new(), "flow.csv: no orders\n"),
    ] {
        let error = read(&format!("{header}\n"), &settings()).unwrap_err().to_string();
        assert!(error.starts_with(problem), "{error}");
    }
    let shuffled =
        "op,time_us,sequence,order_id,side,type,tif,price_cents,qty_satoshi\nnew,0,1,4,B,limit,gtc,100,7";
    for valid in [shuffled, &format!("\u{feff}{}", flow(&[first]))] {
        assert_eq!(read(valid, &settings()).unwrap().total(), 1);
    }
}

#[test]
fn invalid_settings_and_files_are_refused() {
    let speeds = [0.0, -1.0, f64::NAN, f64::INFINITY];
    let speeds = speeds.map(|speed| (Replay { speed, ..settings() }, "expected a number above 0"));
    for (settings, problem) in speeds.into_iter().chain([
        (Replay { strategies: 0, ..settings() }, "0 strategies"),
        (Replay { venues: 65, ..settings() }, "65 venues"),
        (Replay { orders: Some(0), ..settings() }, "0 orders"),
        (Replay { delay: DelayRange { min_ns: 2, max_ns: 1 }, ..settings() }, "swap them"),
    ]) {
        assert!(read(FLOW, &settings).unwrap_err().to_string().contains(problem), "{problem}");
    }
    assert_eq!(read(FLOW, &Replay { orders: Some(u64::MAX), ..settings() }).unwrap().total(), 3800);
    for file in ["no-such-flow.csv", env!("CARGO_MANIFEST_DIR")] {
        let error = replay(Path::new(file), &settings()).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{file}: cannot be read: ")), "{error}");
    }
}

fn any_settings() -> impl Strategy<Value = Replay> {
    let speed = prop_oneof![Just(1.0), 0.001..1000.0];
    (1u16..9, 1u16..5, any::<u64>(), speed, proptest::option::of(1u64..50)).prop_map(
        |(strategies, venues, seed, speed, orders)| Replay {
            strategies,
            venues,
            seed,
            speed,
            orders,
            ..settings()
        },
    )
}

proptest! {
    #[test]
    fn random_bytes_never_panic(bytes: Vec<u8>, with_header: bool, settings in any_settings()) {
        let header = if with_header { flow(&["0,1,new,4,B,limit,gtc,100,7"]) } else { String::new() };
        let text = [header.as_bytes(), &bytes].concat();
        if let Err(error) = replay_from("flow.csv", &text[..], &settings) {
            prop_assert!(error.to_string().lines().count() <= 2);
        }
    }

    #[test]
    fn mutated_rows_are_read_or_refused(
        start in 0usize..3700, changes in proptest::collection::vec((0usize..2000, any::<u8>(), 0u8..3), 1..4),
        settings in any_settings(),
    ) {
        let rows: Vec<&str> = FLOW.lines().skip(1 + start).take(40).collect();
        let mut text = flow(&rows).into_bytes();
        for (index, byte, change) in changes {
            let index = index % text.len();
            match change {
                0 => text[index] = byte,
                1 => text.insert(index, byte),
                _ => drop(text.remove(index)),
            }
        }
        match replay_from("flow.csv", &text[..], &settings) {
            Ok(schedule) => prop_assert!(schedule.total() <= 41),
            Err(error) => {
                prop_assert!(error.to_string().starts_with("flow.csv:"));
                prop_assert!(error.to_string().lines().count() <= 2);
            }
        }
    }
}
