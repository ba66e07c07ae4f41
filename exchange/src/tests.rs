//! A test that no command allocates memory.

use super::exchange;
use crate::{Command, Event, Events, NewOrder, OrderType, SelfTrade, Side, TimeInForce};

/// Counts events.
struct EventCount(u64);

impl Events for EventCount {
    fn on(&mut self, _event: Event) {
        self.0 += 1;
    }
}

/// Draws a random command for the matching engine. `step` is the current time.
pub(super) fn draw(state: &mut u64, step: u64) -> Command {
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
