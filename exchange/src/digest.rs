//! A hash of the state of an exchange, to compare replicas.

use crate::arena::BookPart;
use crate::book::Phase;
use crate::command::TimeInForce;
use crate::exchange::Exchange;

/// Mixes 64-bit words into one.
struct Mixer(u64);

impl Mixer {
    fn word(&mut self, word: u64) {
        let mixed = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 29);
    }
}

impl Exchange {
    /// Returns a digest of the exchange's state, so that replicas can be compared. It covers what
    /// decides the effect of later commands: open orders in priority, phases, last prices, time and
    /// counters. It is equal on every machine. It is not cryptographic.
    pub fn digest(&self) -> u64 {
        let mut mixer = Mixer(0x6578_6368_616e_6765);
        let store = &self.store;
        [store.now, store.sequence, store.trades].iter().for_each(|&word| mixer.word(word));
        for book in &self.books {
            mixer.word(u64::from(book.phase == Phase::Auction));
            mixer.word(book.last as u64);
            for part in BookPart::ALL {
                mixer.word(u64::MAX);
                for queue in self.queues(book.number, part) {
                    mixer.word(queue.price as u64);
                    mixer.word(u64::from(queue.orders()));
                    let mut slot = queue.head();
                    while let Some(node) = store.arena.order(slot) {
                        let words = [node.id, node.leaves, node.shown, u64::from(node.owner)];
                        words.iter().for_each(|&word| mixer.word(word));
                        let (self_trade, time) = (node.self_trade as u64, node.time_in_force as u64);
                        let is_stop = node.order_type.is_stop();
                        mixer.word(
                            self_trade | time << 8 | u64::from(node.flags) << 16 | u64::from(is_stop) << 24,
                        );
                        let details = store.arena.details(slot);
                        if node.is_iceberg() {
                            mixer.word(details.display);
                        }
                        if is_stop {
                            let has_limit = node.order_type.has_limit_price();
                            mixer.word(u64::from(has_limit));
                            // A stop order without a limit ignores its price.
                            mixer.word(if has_limit { details.limit as u64 } else { 0 });
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
