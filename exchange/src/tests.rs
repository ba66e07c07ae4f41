//! Tests of an exchange's configuration, its digest, and that no command allocates memory.

use crate::{
    Capacity, Command, ConfigError, Event, Events, Exchange, Instrument, NewOrder, OrderType, SelfTrade,
    Side, TimeInForce,
};

/// An exchange of 16 orders in an instrument with a band from 1 to 1000.
pub(crate) fn exchange() -> Exchange {
    let instrument = Instrument {
        price_high: 1_000,
        max_quantity: 1 << 59,
        reference_price: 100,
        ..Instrument::default()
    };
    Exchange::new(&[instrument], Capacity::for_orders(16)).expect("a valid configuration")
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
fn digest_depends_on_every_effective_command() {
    let order = |id, price| Command::New(NewOrder { id, price, quantity: 5, ..NewOrder::default() });
    let digest = |last: Option<Command>| {
        let mut exchange = exchange();
        let commands = [order(1, 9), order(2, 8)].into_iter().chain(last);
        commands.for_each(|command| exchange.apply(command, &mut Vec::new()));
        exchange.digest()
    };
    assert_eq!(digest(None), digest(None));
    assert_eq!(digest(Some(order(3, 0))), digest(None), "a rejected command changes nothing");
    let cancel = Command::Cancel { id: 1, owner: 0 };
    for command in [cancel, Command::Time(3), order(3, 8), Command::Auction { instrument: 0 }] {
        assert_ne!(digest(Some(command)), digest(None), "{command:?}");
    }
}

/// Counts events.
struct EventCount(u64);

impl Events for EventCount {
    fn on(&mut self, _event: Event) {
        self.0 += 1;
    }
}

/// Draws a random command for the matching engine. `step` is the current time.
fn draw(state: &mut u64, step: u64) -> Command {
    let mut below = |n: u64| {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % n
    };
    let (id, owner) = (below(24), below(3) as u32);
    match below(20) {
        0..=2 => Command::Cancel { id, owner },
        3..=5 => Command::Replace { id, owner, price: 1 + below(30) as i64, quantity: 1 + below(30) },
        6 => Command::Time(step + below(20)),
        7 => Command::MassCancel { owner, instrument: None },
        8 => Command::Auction { instrument: 0 },
        9 | 10 => Command::Uncross { instrument: 0 },
        _ => Command::New(NewOrder {
            id,
            owner,
            side: if below(2) == 0 { Side::Buy } else { Side::Sell },
            order_type: [OrderType::Limit, OrderType::Market, OrderType::Stop, OrderType::StopLimit]
                [below(6).saturating_sub(2) as usize],
            time_in_force: [
                TimeInForce::GoodTillCancel,
                TimeInForce::GoodTillTime,
                TimeInForce::ImmediateOrCancel,
                TimeInForce::FillOrKill,
            ][below(8).saturating_sub(4) as usize],
            self_trade: [SelfTrade::Allow, SelfTrade::CancelBoth, SelfTrade::Decrement][below(3) as usize],
            price: 1 + below(30) as i64,
            stop_price: 1 + below(30) as i64,
            quantity: 10 + below(30),
            display: below(9).saturating_sub(5),
            expires_at: step + below(100),
            ..NewOrder::default()
        }),
    }
}

#[global_allocator]
static ALLOCATOR: system::alloc::CountingAllocator = system::alloc::CountingAllocator;

#[test]
fn no_command_allocates() {
    assert!(system::alloc::is_counted());
    let mut exchange = exchange();
    let (mut state, mut count) = (1, EventCount(0));
    let before = system::alloc::allocations();
    for step in 0..50_000 {
        exchange.apply(draw(&mut state, step), &mut count);
    }
    assert_eq!(system::alloc::allocations() - before, 0);
    assert!(count.0 > 50_000, "events happened");
    exchange.check().expect("sound");
}
