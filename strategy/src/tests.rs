//! The player, on a schedule of two orders.

use crate::schedule::{Entry, tests::entry};
use crate::testing::{Event, play_against_echo};
use crate::{Context, Player, Strategy};
use protocol::plan::Pacing;
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use protocol::wire::OrderRequest;
use shm::memory::Region;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;

/// A schedule of two orders, due at 1 and 3 µs.
fn context() -> Context {
    let entries = [(1_000, 10), (3_000, 11)]
        .map(|(fire_ns, price)| Entry { fire_ns, request: OrderRequest { price, ..entry().request } });
    let words = Region::heap(HEADER_WORDS + entries.len() * SCHEDULE_ENTRY_WORDS).words();
    for (word, value) in words[HEADER_WORDS..].iter().zip(entries.iter().flat_map(|entry| entry.to_words())) {
        word.store(value, Ordering::Relaxed);
    }
    Context::new(0, words.into(), 2, Pacing::Scheduled)
}

/// Returns the prices of the orders that a player sends in `cycles` duty cycles of a microsecond.
fn prices(player: Player, cycles: u64) -> Vec<i64> {
    let price = |event| match event {
        Event::Sent(order) => Some(order.request.price),
        Event::Reported(_) => None,
    };
    play_against_echo(player, cycles).into_iter().filter_map(price).collect()
}

#[test]
fn orders_are_sent_when_they_are_due() {
    let times: Vec<u64> = context().schedule().map(|entry| entry.fire_ns).collect();
    assert_eq!(times, [1_000, 3_000]);
    assert_eq!(prices(context().player(), 100), [10, 11]);
    // In the cycles 0 to 2 only the first order is due.
    assert_eq!(prices(context().player(), 3), [10]);
}

#[test]
fn successor_resumes_after_orders_of_predecessor() {
    for (played, remaining) in [(0, &[10, 11][..]), (1, &[11]), (2, &[]), (3, &[])] {
        let mut context = context();
        (context.epoch, context.sent_before) = (1, played);
        assert_eq!(prices(context.player(), 100), remaining, "{played}");
    }
}

#[test]
fn player_without_orders_has_finished() {
    let empty = Context::new(0, Region::heap(HEADER_WORDS).words().into(), 0, Pacing::Scheduled);
    let player = empty.player();
    assert!(player.finished() && prices(player, 10).is_empty());
}
