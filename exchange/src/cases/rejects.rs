//! Commands that are rejected and change nothing.

use super::{command, exchange, last, step};
use crate::{Capacity, Command, ConfigError, Exchange, Instrument, NewOrder};

#[test]
fn price_and_quantity_must_fit_instrument() {
    let instrument = Instrument {
        tick: 5,
        lot: 10,
        price_low: 50,
        price_high: 200,
        max_quantity: 100,
        ..Instrument::default()
    };
    let instrument = Instrument { reference_price: 100, ..instrument };
    let mut exchange = Exchange::new(&[instrument], Capacity::for_orders(4)).expect("a valid configuration");
    for bad in
        ["B1 0@100", "B1 15@100", "B1 110@100", "B1 20@100 show=5", "B1 20@100 min=30", "B1 20@100 show=30"]
    {
        assert_eq!(step(&mut exchange, bad), "1! BadQuantity", "{bad}");
    }
    for bad in [
        "B1 10@0",
        "B1 10@101",
        "B1 10@45",
        "B1 10@205",
        "B1 10 stop=101",
        "B1 10@100 stop=0",
        "B1 10@101 stop=100",
    ] {
        assert_eq!(step(&mut exchange, bad), "1! BadPrice", "{bad}");
    }
    assert_eq!(step(&mut exchange, "B1 10@50, S2 100@200, B3 10 stop=150"), "1+, 2+, 3+");
    assert_eq!(
        step(&mut exchange, "r1 15@50, r1 10@51, r1 0@50"),
        "1! BadQuantity, 1! BadPrice, 1! BadQuantity"
    );
}

#[test]
fn notional_must_fit_64_bits() {
    let big = 1u64 << 58;
    assert_eq!(last(&format!("B1 {big}@64, B1 {big}@63")), "1! NotionalOverflow, 1+");
    assert_eq!(
        last(&format!("B1 {big}@63\nr1 {big}@64, B2 {big} stop=64")),
        "1! NotionalOverflow, 2! NotionalOverflow"
    );
}

#[test]
fn ids_are_unique_among_open_orders_and_reusable() {
    assert_eq!(last("B1 5@9\nS1 5@99, x1, S1 5@99"), "1! DuplicateId, 1- 5 Requested, 1+");
    assert_eq!(last("B1 5 stop=99\nB1 5@9"), "1! DuplicateId");
    assert_eq!(last("x1, r1 5@9"), "1! UnknownOrder, 1! UnknownOrder");
    assert_eq!(
        last("B1 5@9 own=3\nx1 4, r1 5@9 own=4, mass 4, x1 3"),
        "1! UnknownOrder, 1! UnknownOrder, 1- 5 Requested"
    );
}

#[test]
fn contradicting_attributes_are_rejected() {
    let contradictions = "B1 5 until=9, B1 5 post, B1 5 show=1, B1 5 stop=9 post, B1 5 stop=9 show=1, B1 5 stop=9 min=1, \
        B1 5@9 stop=9 post, B1 5@9 stop=9 min=1, B1 5@9 ioc post, B1 5@9 ioc show=1, B1 5@9 fok post, B1 5@9 fok show=1, \
        B1 5@9 fok min=1, B1 5@9 min=1 post";
    for one in contradictions.split(',') {
        assert_eq!(last(one), "1! BadCombination", "{one}");
    }
    for one in
        ["B1 5@9 stop=9 show=1", "B1 5 stop=9 until=9", "B1 5@9 show=1 post until=9", "B1 5@9 show=1 min=1"]
    {
        assert!(last(one).starts_with("1+"), "{one}");
    }
}

#[test]
fn full_exchange_rejects_without_change() {
    let mut exchange = exchange();
    for id in 1..=16 {
        assert_eq!(step(&mut exchange, &format!("B{id} 1@{id}")), format!("{id}+"));
    }
    let before = exchange.digest();
    assert_eq!(step(&mut exchange, "B17 1@9, S17 1, r99 1@1"), "17! Full, 17! Full, 99! UnknownOrder");
    assert_eq!(exchange.digest(), before, "nothing has changed");
    assert_eq!(step(&mut exchange, "r16 1@99, x3, B17 1@9"), "16= 1@99, 3- 1 Requested, 17+");
}

#[test]
fn levels_can_run_out_before_orders() {
    let capacity = Capacity { orders: 16, levels: 3 };
    let mut exchange = Exchange::new(&[Instrument::default()], capacity).expect("a valid configuration");
    assert_eq!(step(&mut exchange, "B1 1@9 stop=99, B2 1@8 stop=98, B2 1@8"), "1+, 2! Full, 2+");
    assert_eq!(
        step(&mut exchange, "B3 1@7, B3 1@7 ioc, S4 1@7, B5 1@1"),
        "3! Full, 3+, 3- 1 Immediate, 4! Full, 5! Full"
    );
    assert_eq!(step(&mut exchange, "r2 1@7, x1, r2 1@7, B6 1@6"), "2! Full, 1- 1 Requested, 2= 1@7, 6+");
    assert_eq!(step(&mut exchange, "B7 1@6, B8 1@5"), "7+, 8+");
}

#[test]
fn unknown_instruments_are_rejected() {
    let mut exchange = exchange();
    let mut events = Vec::new();
    exchange.apply(Command::New(NewOrder { instrument: 1, id: 5, ..NewOrder::default() }), &mut events);
    exchange.apply(Command::MassCancel { owner: 0, instrument: Some(1) }, &mut events);
    exchange.apply(Command::Auction { instrument: 9 }, &mut events);
    exchange.apply(Command::Uncross { instrument: 9 }, &mut events);
    let said: Vec<String> = events.iter().map(super::show).collect();
    assert_eq!(
        said,
        ["5! UnknownInstrument", "0! UnknownInstrument", "0! UnknownInstrument", "0! UnknownInstrument"]
    );
    assert_eq!(exchange.best(1), (None, None));
}

#[test]
fn invalid_configuration_is_explained() {
    let new =
        |instrument: Instrument, orders: usize| Exchange::new(&[instrument], Capacity::for_orders(orders));
    let fine = Instrument::default();
    let problem = |instrument: Instrument| new(instrument, 4).expect_err("invalid").to_string();
    assert_eq!(problem(Instrument { tick: 0, ..fine }), "instrument 0: the tick is not from 1 to 2^62");
    assert_eq!(
        problem(Instrument { price_high: 0, ..fine }),
        "instrument 0: the band's highest price is below its lowest"
    );
    assert_eq!(
        problem(Instrument { reference_price: 0, ..fine }),
        "instrument 0: the reference price is outside of the band"
    );
    let big = new(Instrument { max_quantity: 1 << 62, ..fine }, 4);
    assert_eq!(big.expect_err("too much"), ConfigError::QuantityOverflow { index: 0, orders: 4 });
    assert_eq!(new(fine, 0).expect_err("no capacity"), ConfigError::Capacity(0));
}

#[test]
fn digest_depends_on_every_command() {
    let run = |lines: &str| {
        let mut exchange = exchange();
        lines.split(',').for_each(|one| exchange.apply(command(one.trim()), &mut Vec::new()));
        exchange.digest()
    };
    let lines = "B1 5@9, S2 5@99 show=2, B3 1 stop=500, B4 1@8 until=7";
    assert_eq!(run(lines), run(lines));
    for other in ["5@9, S2 5@99 show=2", "time 3", "B9 1@8", "S9 1@9", "auction", "B9 0@0"] {
        let changed = run(&format!("{lines}, {}", if other.starts_with('5') { "x1" } else { other }));
        assert_eq!(changed == run(lines), other == "B9 0@0", "{other}");
    }
}
