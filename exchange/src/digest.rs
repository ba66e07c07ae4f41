//! One number for the whole state.

use crate::arena::Part;
use crate::book::Phase;
use crate::command::{SelfTrade, TimeInForce};
use crate::exchange::Exchange;
use crate::levels::Levels;

/// Mixes words into one.
struct Mixer(u64);

impl Mixer {
    fn word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

impl<L: Levels> Exchange<L> {
    /// A digest of all that decides what later commands do: every open order in its place, phases,
    /// last prices, the time, the counters. It is the same on every machine and for every structure
    /// of levels. It is no defence against somebody who wants two states to have the same one.
    pub fn digest(&self) -> u64 {
        let mut mixer = Mixer(0x6578_6368_616e_6765);
        let store = &self.store;
        [store.now, store.sequence, store.trades].iter().for_each(|&word| mixer.word(word));
        for book in &self.books {
            mixer.word(u64::from(book.phase == Phase::Auction));
            mixer.word(book.last as u64);
            for part in Part::ALL {
                mixer.word(u64::MAX);
                for queue in self.queues(book.number, part) {
                    mixer.word(queue.price as u64);
                    mixer.word(u64::from(queue.orders()));
                    let mut slot = queue.head();
                    while let Some(node) = store.arena.order(slot) {
                        let words = [node.id, node.leaves, node.shown, u64::from(node.owner)];
                        words.iter().for_each(|&word| mixer.word(word));
                        let self_trade = match node.self_trade {
                            SelfTrade::Allow => 0,
                            SelfTrade::CancelNewest => 1,
                            SelfTrade::CancelOldest => 2,
                            SelfTrade::CancelBoth => 3,
                            SelfTrade::Decrement => 4,
                        };
                        let time = match node.time_in_force {
                            TimeInForce::GoodTillCancel => 0,
                            TimeInForce::ImmediateOrCancel => 1,
                            TimeInForce::FillOrKill => 2,
                            TimeInForce::GoodTillTime => 3,
                        };
                        let waits = node.order_type.waits();
                        mixer.word(
                            self_trade | time << 8 | u64::from(node.flags) << 16 | u64::from(waits) << 24,
                        );
                        let details = store.arena.details(slot);
                        if node.iceberg() {
                            mixer.word(details.display);
                        }
                        if waits {
                            mixer.word(u64::from(node.order_type.limits()));
                            mixer.word(details.limit as u64);
                        }
                        if node.time_in_force == TimeInForce::GoodTillTime {
                            mixer.word(details.expires_at);
                            mixer.word(details.arrival);
                        }
                        slot = node.next;
                    }
                }
            }
        }
        mixer.0
    }
}
