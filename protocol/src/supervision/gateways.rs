//! Fences and repairs of gateways in processes of their own: the launcher fences a dead one, and
//! the engine says when nothing waits for it.
//!
//! A gateway is trusted and is never quarantined. Its fence tells the engine that the gateway's
//! venue is down.

use super::{Incarnation, ProofOfDeath, Repairs, RepairsWriter, STRATEGIES, WORDS_EACH};
use crate::control::{Control, ControlWriter, GATEWAY_LIVES, GENERATION};
use crate::wire::{MAX_GATEWAYS, MAX_STRATEGIES};
use serde::{Deserialize, Serialize};
use shm::sync::Ordering;

/// The epoch of a gateway that is not started again, and whose session nobody resumes.
pub const GIVEN_UP: u16 = u16::MAX;

/// What the engine has counted of one gateway since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayCounts {
    /// Orders that were closed because their end at the venue is unknown.
    pub unknown: u64,
    /// Orders that were dispatched to it and not recalled.
    pub orders: u64,
    /// Reports that were taken from it.
    pub reports: u64,
    /// The key of the stamp t5 of the last of them, as in a log; 0: there is none.
    pub last_report: u64,
}

/// What the engine says about one gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayRepair {
    /// The last epoch for which nothing waits any more.
    pub repaired: Option<u16>,
    /// When the engine saw the fence, in ticks.
    pub noticed_ticks: u64,
    /// When the repair was done, in ticks.
    pub repaired_ticks: u64,
    /// What was counted up to then.
    pub counts: GatewayCounts,
    /// Messages that were put into its inbox, or queued for it, up to then.
    pub inbox_end: u64,
}

const REPAIRED: usize = 0;
const NOTICED: usize = 1;
const REPAIRED_TICKS: usize = 2;
const COUNTS: usize = 3;
const INBOX_END: usize = 7;

pub(super) const GATEWAY_WORDS: usize = MAX_GATEWAYS * WORDS_EACH;

const fn place(gateway: u16, word: usize) -> usize {
    STRATEGIES + (MAX_STRATEGIES + gateway as usize) * WORDS_EACH + word
}

impl ControlWriter {
    /// Reports that a gateway's incarnation is dead: its venue is down for the engine.
    ///
    /// # Panics
    /// If there can be no such gateway.
    pub fn fence_gateway(&self, gateway: u16, epoch: u16, _certain: &ProofOfDeath) {
        self.set_gateway_life(gateway, Incarnation { epoch, fenced: true });
    }

    /// Reports that a gateway's next incarnation takes orders.
    ///
    /// # Panics
    /// If there can be no such gateway.
    pub fn revive_gateway(&self, gateway: u16, epoch: u16) {
        self.set_gateway_life(gateway, Incarnation { epoch, fenced: false });
    }

    fn set_gateway_life(&self, gateway: u16, life: Incarnation) {
        assert!(usize::from(gateway) < MAX_GATEWAYS);
        let words = self.words();
        // Release: pairs with the Acquire in `gateway_life`.
        words[GATEWAY_LIVES + usize::from(gateway)].store(life.to_word(), Ordering::Release);
        // Release: pairs with the Acquire in `generation`; who sees the count sees the word above.
        words[GENERATION].store(words[GENERATION].load(Ordering::Relaxed).wrapping_add(1), Ordering::Release);
    }
}

impl Control {
    /// Returns the gateway's incarnation, and whether it is alive.
    ///
    /// # Panics
    /// If there can be no such gateway.
    pub fn gateway_life(&self, gateway: u16) -> Incarnation {
        assert!(usize::from(gateway) < MAX_GATEWAYS);
        Incarnation::from_word(self.view().load(GATEWAY_LIVES + usize::from(gateway), Ordering::Acquire))
    }
}

impl RepairsWriter {
    /// Reports that nothing waits for the gateway's dead incarnation `epoch` any more.
    /// `repair.repaired` is not read.
    pub fn gateway_repaired(&self, gateway: u16, epoch: u16, repair: &GatewayRepair) {
        let GatewayRepair { repaired: _, noticed_ticks, repaired_ticks, counts, inbox_end } = *repair;
        let set = |word, value| self.0[place(gateway, word)].store(value, Ordering::Relaxed);
        set(NOTICED, noticed_ticks);
        set(REPAIRED_TICKS, repaired_ticks);
        let GatewayCounts { unknown, orders, reports, last_report } = counts;
        (COUNTS..).zip([unknown, orders, reports, last_report]).for_each(|(word, value)| set(word, value));
        set(INBOX_END, inbox_end);
        // Release: pairs with the Acquire in `of_gateway`.
        self.0[place(gateway, REPAIRED)].store(u64::from(epoch) + 1, Ordering::Release);
        self.say();
    }
}

impl Repairs {
    /// Returns what the engine says about a gateway.
    ///
    /// # Panics
    /// If there can be no such gateway.
    pub fn of_gateway(&self, gateway: u16) -> GatewayRepair {
        assert!(usize::from(gateway) < MAX_GATEWAYS);
        // Acquire: pairs with the Release in `gateway_repaired`.
        let repaired = self.0.load(place(gateway, REPAIRED), Ordering::Acquire);
        let count = |word| self.0.load(place(gateway, word), Ordering::Relaxed);
        GatewayRepair {
            repaired: repaired.checked_sub(1).map(|epoch| epoch as u16),
            noticed_ticks: count(NOTICED),
            repaired_ticks: count(REPAIRED_TICKS),
            counts: GatewayCounts {
                unknown: count(COUNTS),
                orders: count(COUNTS + 1),
                reports: count(COUNTS + 2),
                last_report: count(COUNTS + 3),
            },
            inbox_end: count(INBOX_END),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::REPAIRS_WORDS;
    use super::*;
    use crate::control::PLAN;
    use shm::memory::Region;

    #[test]
    fn gateway_words_are_apart_from_strategy_words() {
        let launching = ControlWriter::new(Region::heap(PLAN + 8).words());
        let control = launching.control();
        launching.revive(255, 9);
        launching.revive_gateway(0, 3);
        launching.revive_gateway(63, 5);
        let lives = [control.life(255), control.gateway_life(0), control.gateway_life(63)];
        assert_eq!(lives.map(|life| life.epoch), [9, 3, 5]);
        assert_eq!(control.pid(0), None, "no process's word was written");

        let words = Region::heap(REPAIRS_WORDS).words();
        let (writer, reader) = (RepairsWriter::new(&words), Repairs::new(words.clone().into()));
        writer.count(255, 7, 8);
        let said = reader.said();
        let counts = GatewayCounts { unknown: 4, orders: 5, reports: 6, last_report: 7 };
        let repair =
            GatewayRepair { repaired: None, noticed_ticks: 10, repaired_ticks: 12, counts, inbox_end: 8 };
        writer.gateway_repaired(63, 1, &repair);
        let wanted = GatewayRepair { repaired: Some(1), ..repair };
        assert_eq!((reader.of_gateway(63), reader.of_gateway(62)), (wanted, GatewayRepair::default()));
        assert_eq!((reader.of(255).refused, reader.said() - said), (7, 1));
    }
}
