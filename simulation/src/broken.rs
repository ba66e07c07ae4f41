//! Rings and logs with injected defects, to verify that the simulation's checks detect each.

use protocol::index::VenueIndex;
use protocol::kill::{KillSwitch, Scope};
use protocol::stamps::{Point, RECORD_BYTES, Record as Stamp};
use protocol::status::LOG_OFFSET;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::step::whole;
use shm::ring::{Full, Link, LinkSpec, MESSAGE_WORDS, Message, Producer, SegmentSpec, Step, TechniqueInfo};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{ControlFlow, RangeInclusive};
use system::named_enum;

named_enum! {
    /// Defects of a ring.
    Defect {
        /// A message is delivered twice.
        Doubles = "doubles",
        /// A message is lost.
        Drops = "drops",
        /// A message is overtaken by the next one.
        Reorders = "reorders",
        /// The first half of a message, except its id, is that of the one before.
        Tears = "tears",
    }
}

planner::named_values!(Defect);

/// The defect affects every `EVERY`-th message of a producer.
const EVERY: u64 = 7;

thread_local! {
    /// Defect of the rings that this thread attaches.
    static DEFECT: Cell<Defect> = const { Cell::new(Defect::Doubles) };
}

/// Sets the defect that rings of this thread have from now on.
pub(super) fn set(defect: Defect) {
    DEFECT.set(defect);
}

/// A hand-off, such as a ring, with an injected defect, such as lost messages, to test that the
/// simulation detects it.
pub struct BrokenLink<L>(PhantomData<L>);

/// The sending end of a [`BrokenLink`], which applies the injected defect to the messages.
pub struct BrokenProducer<P> {
    inner: P,
    defect: Defect,
    message_count: u64,
    last_message: Message,
    /// The delayed message, which the next one overtakes.
    delayed: Option<Message>,
}

impl<P: Producer> Producer for BrokenProducer<P> {
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        whole(at, || self.push(message))
    }

    fn withdraw(&mut self) {
        self.inner.withdraw();
    }
}

impl<P: Producer> BrokenProducer<P> {
    fn push(&mut self, message: &Message) -> Result<(), Full> {
        let is_affected = (self.message_count + 1).is_multiple_of(EVERY);
        match self.defect {
            Defect::Drops if is_affected => {}
            Defect::Reorders if is_affected => self.delayed = Some(*message),
            Defect::Tears if is_affected => {
                let mut torn = *message;
                // The first word stays: it is the id.
                torn[1..MESSAGE_WORDS / 2].copy_from_slice(&self.last_message[1..MESSAGE_WORDS / 2]);
                self.inner.try_push(&torn)?;
            }
            _ => self.inner.try_push(message)?,
        }
        match self.defect {
            Defect::Doubles if is_affected => drop(self.inner.try_push(message)),
            Defect::Reorders if !is_affected => {
                let _ = self.delayed.take_if(|delayed| self.inner.try_push(delayed).is_ok());
            }
            _ => {}
        }
        (self.message_count, self.last_message) = (self.message_count + 1, *message);
        Ok(())
    }
}

impl<L: Link> Link for BrokenLink<L> {
    type Producer = BrokenProducer<L::Producer>;
    type Consumer = L::Consumer;

    const INFO: TechniqueInfo = L::INFO;

    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        L::segments(spec)
    }

    fn producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Self::Producer, RegionError> {
        Ok(BrokenProducer {
            inner: L::producer(spec, index, attached)?,
            defect: DEFECT.get(),
            message_count: 0,
            last_message: [0; MESSAGE_WORDS],
            delayed: None,
        })
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Self::Consumer, RegionError> {
        L::consumer(spec, attached)
    }
}

named_enum! {
    /// Ways to corrupt a saved log.
    LogCorruption {
        /// A record is left out.
        Omits = "omits",
        /// A record occurs twice.
        Repeats = "repeats",
        /// A record has another order's id.
        Renames = "renames",
        /// A time is a hundred years late.
        Postdates = "postdates",
        /// A fill has another quantity, or another price.
        Misfills = "misfills",
        /// The orchestrator states another position.
        Misstates = "misstates",
        /// A new order is dispatched after a kill switch that concerns it was seen.
        Passes = "passes",
    }
}

impl LogCorruption {
    /// Returns the points of the records that it changes.
    fn points(self) -> RangeInclusive<u8> {
        match self {
            LogCorruption::Misfills => Point::FillQuantity as u8..=Point::FillPrice as u8,
            LogCorruption::Misstates => Point::Position as u8..=Point::Position as u8,
            LogCorruption::Passes => Point::KillSeen as u8..=Point::KillSeen as u8,
            // Not the thread's final records.
            _ => Point::StrategySend as u8..=Point::StrategyRecv as u8,
        }
    }

    /// Corrupts a saved log, to test the simulation's checks; `seed` selects the record. Returns
    /// `true` if the log was changed, and `false` if no record fits.
    pub fn apply(self, log: &mut Vec<u8>, seed: u64) -> bool {
        if self == LogCorruption::Passes {
            return move_kill_switch_before_order(log, seed);
        }
        let records = log.len().saturating_sub(LOG_OFFSET * 8) / RECORD_BYTES;
        let is_candidate =
            |record: &usize| self.points().contains(&(log[LOG_OFFSET * 8 + record * RECORD_BYTES + 7] >> 2));
        let candidates: Vec<usize> = (0..records).filter(is_candidate).collect();
        let Some(record) = candidates.get(seed as usize % candidates.len().max(1)) else { return false };
        let offset = LOG_OFFSET * 8 + record * RECORD_BYTES;
        let bytes = log[offset..offset + RECORD_BYTES].to_vec();
        match self {
            LogCorruption::Omits => drop(log.drain(offset..offset + RECORD_BYTES)),
            LogCorruption::Repeats => drop(log.splice(offset..offset, bytes)),
            // The lowest byte of the sequence.
            LogCorruption::Renames => log[offset] ^= 0x40,
            LogCorruption::Postdates => log[offset + 15] |= 0x20,
            // By one unit.
            LogCorruption::Misfills | LogCorruption::Misstates => log[offset + 8] ^= 1,
            LogCorruption::Passes => {}
        }
        true
    }
}

/// Moves the record of a kill switch before one of the new orders that it would have stopped. Only
/// for switches whose scope follows from the order's id.
fn move_kill_switch_before_order(log: &mut Vec<u8>, seed: u64) -> bool {
    let (header, records_bytes) = log.split_at(LOG_OFFSET * 8);
    let records = || {
        records_bytes.chunks_exact(RECORD_BYTES).enumerate().filter_map(|(index, bytes)| {
            let (words, _) = bytes.as_chunks::<8>();
            let [key, value] = [words.first()?, words.get(1)?].map(|word| u64::from_le_bytes(*word));
            Some((index, Stamp::from_words(key, value)?))
        })
    };
    let mut candidates = Vec::new();
    for (switch_index, record) in records() {
        let Some(KillSwitch { scope, is_on: true, .. }) = KillSwitch::from_record(&record) else { continue };
        if record.point != Point::KillSeen || !matches!(scope, Scope::All | Scope::Strategy(_)) {
            continue;
        }
        let is_new = |order: &Stamp| order.point == Point::OrchDispatch && order.detail == 0;
        let stopped = records()
            .take_while(|(index, _)| *index < switch_index)
            .filter(|(_, order)| is_new(order) && scope.contains(order.id.strategy(), 0, VenueIndex(0), 0));
        candidates.extend(stopped.map(|(order_index, order)| (switch_index, order_index, order.value)));
    }
    let Some((switch_index, order_index, ticks)) =
        candidates.get(seed as usize % candidates.len().max(1)).copied()
    else {
        return false;
    };
    let offset = |index: usize| header.len() + index * RECORD_BYTES;
    let (from, to) = (offset(switch_index), offset(order_index));
    let mut switch: Vec<u8> = log.drain(from..from + RECORD_BYTES).collect();
    switch[8..].copy_from_slice(&ticks.to_le_bytes());
    log.splice(to..to, switch);
    true
}
