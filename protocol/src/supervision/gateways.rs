//! Fencing and repair of gateways in their own processes. A gateway is trusted and is never
//! quarantined; its fence means for the engine that the gateway's venue is down.

use super::{Incarnation, ProofOfDeath, Repairs, RepairsWriter, STRATEGIES, WORDS_EACH};
use crate::control::{Control, ControlWriter, GATEWAY_LIVES};
use crate::index::GatewayIndex;
use crate::wire::{MAX_STRATEGIES, MAX_VENUES};
use serde::{Deserialize, Serialize};
use shm::sync::Ordering;

/// The incarnation number stored for a gateway that stays down for the rest of the run.
pub const GIVEN_UP: u16 = u16::MAX;

/// The engine's counts of orders and reports for one gateway since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayCounts {
    /// Orders that were closed with an unknown state at the venue.
    pub unknown: u64,
    /// Orders that were dispatched to the gateway and not recalled.
    pub orders: u64,
    /// Reports that were received from the gateway.
    pub reports: u64,
    /// The key of the stamp t5 of the last report, as in a log; 0: none.
    pub last_report: u64,
}

/// The engine's report that it has closed the orders of a dead gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GatewayRepair {
    /// The last epoch whose repair is complete.
    pub repaired: Option<u16>,
    /// Time at which the engine saw the fence, in ticks.
    pub noticed_ticks: u64,
    /// Time at which the repair was complete, in ticks.
    pub repaired_ticks: u64,
    /// The counts of the gateway at the time of the repair.
    pub counts: GatewayCounts,
    /// Number of messages pushed into the gateway's inbox, or queued for it, at the time of the
    /// repair.
    pub inbox_end: u64,
}

const REPAIRED: usize = 0;
const NOTICED: usize = 1;
const REPAIRED_TICKS: usize = 2;
const COUNTS: usize = 3;
const INBOX_END: usize = 7;

pub(super) const GATEWAY_WORDS: usize = MAX_VENUES * WORDS_EACH;

const fn word_offset(gateway: GatewayIndex, word: usize) -> usize {
    STRATEGIES + (MAX_STRATEGIES + gateway.as_usize()) * WORDS_EACH + word
}

impl ControlWriter {
    /// Declares a gateway's incarnation dead (fencing): its venue is down for the engine.
    pub fn fence_gateway(&self, gateway: GatewayIndex, epoch: u16, _certain: &ProofOfDeath) {
        self.set_gateway_incarnation(gateway, Incarnation { epoch, fenced: true });
    }

    /// Publishes that a gateway's next incarnation accepts orders.
    pub fn renew_gateway(&self, gateway: GatewayIndex, epoch: u16) {
        self.set_gateway_incarnation(gateway, Incarnation { epoch, fenced: false });
    }

    fn set_gateway_incarnation(&self, gateway: GatewayIndex, life: Incarnation) {
        assert!(gateway.as_usize() < MAX_VENUES);
        self.set_life(GATEWAY_LIVES + gateway.as_usize(), life);
    }
}

impl Control {
    /// Returns the current incarnation of a gateway, and whether it is dead.
    pub fn gateway_incarnation(&self, gateway: GatewayIndex) -> Incarnation {
        assert!(gateway.as_usize() < MAX_VENUES);
        self.life(GATEWAY_LIVES + gateway.as_usize())
    }
}

impl RepairsWriter {
    /// Publishes, for the launcher, that the engine has closed the orders of a gateway's dead
    /// incarnation `epoch`, or left them to its successor, and `repair` without `repair.repaired`.
    pub fn set_gateway_repaired(&self, gateway: GatewayIndex, epoch: u16, repair: &GatewayRepair) {
        let GatewayRepair { repaired: _, noticed_ticks, repaired_ticks, counts, inbox_end } = *repair;
        let set = |word, value| self.0[word_offset(gateway, word)].store(value, Ordering::Relaxed);
        set(NOTICED, noticed_ticks);
        set(REPAIRED_TICKS, repaired_ticks);
        let GatewayCounts { unknown, orders, reports, last_report } = counts;
        (COUNTS..).zip([unknown, orders, reports, last_report]).for_each(|(word, value)| set(word, value));
        set(INBOX_END, inbox_end);
        // Release: pairs with the Acquire in `gateway_repair`.
        self.0[word_offset(gateway, REPAIRED)].store(u64::from(epoch) + 1, Ordering::Release);
        self.notify();
    }
}

impl Repairs {
    /// Returns the engine's last report about the repair after a gateway's death.
    pub fn gateway_repair(&self, gateway: GatewayIndex) -> GatewayRepair {
        assert!(gateway.as_usize() < MAX_VENUES);
        // Acquire: pairs with the Release in `set_gateway_repaired`.
        let repaired = self.0.load(word_offset(gateway, REPAIRED), Ordering::Acquire);
        let count = |word| self.0.load(word_offset(gateway, word), Ordering::Relaxed);
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
    use crate::index::StrategyIndex;
    use shm::memory::Region;

    #[test]
    fn gateway_words_are_apart_from_strategy_words() {
        let launching = ControlWriter::new(Region::heap(PLAN + 8).words());
        let control = launching.control();
        launching.renew(StrategyIndex(255), 9);
        launching.renew_gateway(GatewayIndex(0), 3);
        launching.renew_gateway(GatewayIndex(63), 5);
        let lives = [
            control.incarnation(StrategyIndex(255)),
            control.gateway_incarnation(GatewayIndex(0)),
            control.gateway_incarnation(GatewayIndex(63)),
        ];
        assert_eq!(lives.map(|life| life.epoch), [9, 3, 5]);
        assert_eq!(control.pid(0), None, "no process's word was written");

        let words = Region::heap(REPAIRS_WORDS).words();
        let (writer, reader) = (RepairsWriter::new(&words), Repairs::new(words.clone().into()));
        writer.set_counts(StrategyIndex(255), 7, 8);
        let count = reader.report_count();
        let counts = GatewayCounts { unknown: 4, orders: 5, reports: 6, last_report: 7 };
        let repair =
            GatewayRepair { repaired: None, noticed_ticks: 10, repaired_ticks: 12, counts, inbox_end: 8 };
        writer.set_gateway_repaired(GatewayIndex(63), 1, &repair);
        let wanted = GatewayRepair { repaired: Some(1), ..repair };
        assert_eq!(
            (reader.gateway_repair(GatewayIndex(63)), reader.gateway_repair(GatewayIndex(62))),
            (wanted, GatewayRepair::default())
        );
        assert_eq!(
            (reader.strategy_repair(StrategyIndex(255)).refused, reader.report_count() - count),
            (7, 1)
        );
    }
}
