//! Rings and logs that are broken on purpose: each shows that the judge finds what it looks for.

use protocol::kill::{Scope, Switch};
use protocol::stamps::{Point, RECORD_BYTES, Record as Stamp};
use protocol::status::LOG_OFFSET;
use shm::attached::Attached;
use shm::memory::RegionError;
use shm::ring::step::whole;
use shm::ring::{Full, Link, LinkSpec, MESSAGE_WORDS, Message, Producer, SegmentSpec, Step, TechniqueInfo};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::{ControlFlow, RangeInclusive};
use system::names;

names! {
    /// What is broken.
    Defect {
        /// A message comes out twice.
        Doubles = "doubles",
        /// A message is lost.
        Drops = "drops",
        /// A message is overtaken by the next one.
        Reorders = "reorders",
        /// The second half of a message is that of the one before.
        Tears = "tears",
    }
}

/// Every so many messages of a producer the defect shows.
const EVERY: u64 = 7;

thread_local! {
    /// What is broken about the rings that this thread attaches.
    static DEFECT: Cell<Defect> = const { Cell::new(Defect::Doubles) };
}

/// Breaks the rings that this thread attaches from now on, where they are a [`BrokenLink`]'s.
pub(super) fn set(defect: Defect) {
    DEFECT.set(defect);
}

/// The technique `L`, broken.
pub struct BrokenLink<L>(PhantomData<L>);

/// Its sending end.
pub struct BrokenProducer<P> {
    inner: P,
    defect: Defect,
    taken: u64,
    last: Message,
    /// The message that is to be overtaken.
    held: Option<Message>,
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
        let shows = (self.taken + 1).is_multiple_of(EVERY);
        match self.defect {
            Defect::Drops if shows => {}
            Defect::Reorders if shows => self.held = Some(*message),
            Defect::Tears if shows => {
                let mut torn = *message;
                // Not the id, which is the first word.
                torn[1..MESSAGE_WORDS / 2].copy_from_slice(&self.last[1..MESSAGE_WORDS / 2]);
                self.inner.try_push(&torn)?;
            }
            _ => self.inner.try_push(message)?,
        }
        match self.defect {
            Defect::Doubles if shows => drop(self.inner.try_push(message)),
            Defect::Reorders if !shows => {
                let _ = self.held.take_if(|held| self.inner.try_push(held).is_ok());
            }
            _ => {}
        }
        (self.taken, self.last) = (self.taken + 1, *message);
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
            taken: 0,
            last: [0; MESSAGE_WORDS],
            held: None,
        })
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Self::Consumer, RegionError> {
        L::consumer(spec, attached)
    }
}

names! {
    /// How a log lies.
    Lie {
        /// A record is left out.
        Omits = "omits",
        /// A record is there twice.
        Repeats = "repeats",
        /// A record is of another order.
        Renames = "renames",
        /// A time is a hundred years late.
        Postdates = "postdates",
        /// A fill is of another quantity, or at another price.
        Misfills = "misfills",
        /// The orchestrator states another position.
        Misstates = "misstates",
        /// A new order is dispatched after a kill switch that concerns it was seen.
        Passes = "passes",
    }
}

impl Lie {
    /// The points of the records that it is about.
    fn points(self) -> RangeInclusive<u8> {
        match self {
            Lie::Misfills => Point::FillQuantity as u8..=Point::FillPrice as u8,
            Lie::Misstates => Point::Position as u8..=Point::Position as u8,
            Lie::Passes => Point::KillSeen as u8..=Point::KillSeen as u8,
            // Not what the thread says at its very end.
            _ => Point::StrategySend as u8..=Point::StrategyRecv as u8,
        }
    }

    /// Changes a saved log so; `seed` says where. `false`: it has no record that the lie is about,
    /// and stays as it is.
    pub fn tell(self, log: &mut Vec<u8>, seed: u64) -> bool {
        if self == Lie::Passes {
            return passes(log, seed);
        }
        let records = log.len().saturating_sub(LOG_OFFSET * 8) / RECORD_BYTES;
        let is_meant =
            |record: &usize| self.points().contains(&(log[LOG_OFFSET * 8 + record * RECORD_BYTES + 7] >> 2));
        let meant: Vec<usize> = (0..records).filter(is_meant).collect();
        let Some(record) = meant.get(seed as usize % meant.len().max(1)) else { return false };
        let at = LOG_OFFSET * 8 + record * RECORD_BYTES;
        let bytes = log[at..at + RECORD_BYTES].to_vec();
        match self {
            Lie::Omits => drop(log.drain(at..at + RECORD_BYTES)),
            Lie::Repeats => drop(log.splice(at..at, bytes)),
            // The lowest byte of the sequence.
            Lie::Renames => log[at] ^= 0x40,
            Lie::Postdates => log[at + 15] |= 0x20,
            // By one unit.
            Lie::Misfills | Lie::Misstates => log[at + 8] ^= 1,
            Lie::Passes => {}
        }
        true
    }
}

/// Says that a switch was seen just before one of the new orders was dispatched that it would have
/// stopped. Only of switches that tell by the order's id whom they concern.
fn passes(log: &mut Vec<u8>, seed: u64) -> bool {
    let (head, body) = log.split_at(LOG_OFFSET * 8);
    let records = || {
        body.chunks_exact(RECORD_BYTES).enumerate().filter_map(|(place, bytes)| {
            let (words, _) = bytes.as_chunks::<8>();
            let [key, value] = [words.first()?, words.get(1)?].map(|word| u64::from_le_bytes(*word));
            Some((place, Stamp::from_words(key, value)?))
        })
    };
    let mut chances = Vec::new();
    for (seen, record) in records() {
        let Some(Switch { scope, is_on: true, .. }) = Switch::of(&record) else { continue };
        if record.point != Point::KillSeen || matches!(scope, Scope::Venue(_) | Scope::Instrument(_)) {
            continue;
        }
        let is_new = |order: &Stamp| order.point == Point::OrchDispatch && order.detail == 0;
        let stopped = records().take_while(|(place, _)| *place < seen).filter(|(_, order)| {
            // There is one credential.
            is_new(order) && scope.concerns(order.id.strategy(), 0, 0, 0)
        });
        chances.extend(stopped.map(|(dispatched, order)| (seen, dispatched, order.value)));
    }
    let Some((seen, dispatched, ticks)) = chances.get(seed as usize % chances.len().max(1)).copied() else {
        return false;
    };
    let at = |place: usize| head.len() + place * RECORD_BYTES;
    let (from, to) = (at(seen), at(dispatched));
    let mut switch: Vec<u8> = log.drain(from..from + RECORD_BYTES).collect();
    switch[8..].copy_from_slice(&ticks.to_le_bytes());
    log.splice(to..to, switch);
    true
}
