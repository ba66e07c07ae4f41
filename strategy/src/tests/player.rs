//! The player, on a schedule of two orders.

use crate::player::*;
use crate::schedule::Entry;
use crate::testing::{Event, play_against_echo};
use crate::{Context, Strategy};
use protocol::plan::Pacing;
use protocol::segments::SCHEDULE_ENTRY_WORDS;
use protocol::wire::{Operation, Side};
use shm::memory::Region;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;

/// Due at 1 and 3 µs of each lap of 5 µs.
fn context(laps: u32) -> Context {
    let entry = |fire_ns, price| Entry {
        fire_ns,
        delay_ns: 0,
        venue: 0,
        operation: Operation::New,
        side: Side::Buy,
        price,
        quantity: 1,
        target: 0,
    };
    let entries = [entry(1_000, 10), entry(3_000, 11)];
    let words = Region::heap(HEADER_WORDS + entries.len() * SCHEDULE_ENTRY_WORDS).words();
    for (word, value) in words[HEADER_WORDS..].iter().zip(entries.iter().flat_map(|entry| entry.to_words())) {
        word.store(value, Ordering::Relaxed);
    }
    Context::new(0, words.into(), 2, Pacing::Scheduled).with_laps(laps, 5_000)
}

/// The prices of the orders that a player sends in `cycles` duty cycles of a microsecond.
fn prices(player: Player, cycles: u64) -> Vec<i64> {
    let sent = |event| match event {
        Event::Sent(order) => Some(order.price),
        Event::Reported(_) => None,
    };
    play_against_echo(player, cycles).into_iter().filter_map(sent).collect()
}

#[test]
fn each_lap_is_due_after_the_previous() {
    let times: Vec<u64> = context(3).schedule().map(|entry| entry.fire_ns).collect();
    assert_eq!(times, [1_000, 3_000, 6_000, 8_000, 11_000, 13_000]);
    assert_eq!(prices(context(3).player(), 100), [10, 11, 10, 11, 10, 11]);
    // In the cycles 0 to 6 the first order of the second lap is the last that is due.
    assert_eq!(prices(context(3).player(), 7), [10, 11, 10]);
    assert_eq!(prices(context(1).player(), 100), [10, 11]);
}

#[test]
fn successor_resumes_in_lap_of_predecessor() {
    for (played, left) in [(0, 6), (1, 5), (2, 4), (3, 3), (5, 1), (6, 0), (7, 0)] {
        let mut context = context(3);
        (context.epoch, context.sent_before) = (1, played);
        let sent = prices(context.player(), 100);
        assert_eq!(sent.len(), left, "{played}");
        assert_eq!(sent.first(), [Some(&10), Some(&11)][played as usize % 2].filter(|_| left > 0));
    }
}

#[test]
fn a_schedule_without_orders_has_no_laps() {
    let empty = Context::new(0, Region::heap(HEADER_WORDS).words().into(), 0, Pacing::Scheduled);
    let player = empty.with_laps(9, 5).player();
    assert!(player.finished() && prices(player, 10).is_empty());
}
