//! A user-defined technique, composed of bulkhead's rings.

use core::ops::ControlFlow;
use launcher::shm::attached::Attached;
use launcher::shm::memory::RegionError;
use launcher::shm::ring::spsc_mux::ring_segments;
use launcher::shm::ring::{
    Consumer, Full, Home, Link, LinkSpec, Message, PeerFault, Producer, SegmentSpec, Step, TechniqueInfo,
    spsc,
};

/// How many messages one ring gives before the next has its turn.
const BURST: usize = 8;

/// The technique (kind of queue) `drain-mux`: a ring per producer, from each of which the consumer
/// takes up to `BURST` messages in turn. It polls fewer empty rings under load than `spsc-mux`, and
/// is less fair.
pub struct DrainMux;

/// A producer of the technique `drain-mux`: it writes a ring of its own.
pub struct Sender(spsc::Producer);

/// The consumer of `drain-mux`: the rings of all producers, and the index of the one to poll next.
pub struct Receiver {
    /// Whether each is taken from: not while its producer is dead, and no more if it misbehaved.
    rings: Vec<(spsc::Consumer, bool)>,
    turn: usize,
    /// Messages that the ring whose turn it is may still give.
    left: usize,
    fault: Option<(usize, PeerFault)>,
}

impl Receiver {
    fn pass_on(&mut self) {
        self.turn = if self.turn + 1 == self.rings.len() { 0 } else { self.turn + 1 };
        self.left = BURST;
    }
}

impl Producer for Sender {
    #[inline(always)]
    fn try_push_with(
        &mut self,
        message: &Message,
        at: &mut impl FnMut(Step) -> ControlFlow<()>,
    ) -> Result<(), Full> {
        self.0.try_push_with(message, at)
    }
}

impl Consumer for Receiver {
    #[inline]
    fn try_pop(&mut self) -> Option<(Option<usize>, Message)> {
        // One more than there are rings: the first poll may be of one that has used up its burst.
        for _ in 0..=self.rings.len() {
            let producer = self.turn;
            let (ring, is_open) = &mut self.rings[producer];
            if *is_open && self.left > 0 {
                match ring.try_pop() {
                    Ok(Some(message)) => {
                        self.left -= 1;
                        return Some((Some(producer), message));
                    }
                    Ok(None) => {}
                    Err(fault) => {
                        *is_open = false;
                        self.fault = Some((producer, fault));
                        return None;
                    }
                }
            }
            self.pass_on();
        }
        None
    }

    fn take_fault(&mut self) -> Option<(Option<usize>, PeerFault)> {
        self.fault.take().map(|(producer, fault)| (Some(producer), fault))
    }

    fn retire(&mut self, producer: usize) -> bool {
        let (ring, is_open) = &mut self.rings[producer];
        if *is_open && !ring.looks_empty() {
            return false;
        }
        *is_open = false;
        // Now, while no producer pushes there: a new producer may start before `renew`.
        ring.renew();
        true
    }

    fn renew(&mut self, producer: usize) {
        self.rings[producer].1 = true;
    }
}

fn ring_name(spec: &LinkSpec<'_>, index: usize) -> String {
    format!("{}-{index}", spec.name)
}

impl Link for DrainMux {
    const INFO: TechniqueInfo = TechniqueInfo::new("drain-mux", Home::Memory)
        .steps(&[Step::Entered, Step::HalfWritten, Step::Written, Step::Published])
        .apart();

    type Producer = Sender;
    type Consumer = Receiver;

    fn segments(spec: &LinkSpec<'_>) -> Vec<SegmentSpec> {
        let ring = |i| ring_segments(ring_name(spec, i), spec.capacity, i as u64, i);
        (0..spec.producers).flat_map(ring).collect()
    }

    fn producer(
        spec: &LinkSpec<'_>,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<Sender, RegionError> {
        attached.sender(&ring_name(spec, index)).map(Sender)
    }

    fn consumer(spec: &LinkSpec<'_>, attached: &mut Attached<'_>) -> Result<Receiver, RegionError> {
        let rings = (0..spec.producers).map(|index| Ok((attached.receiver(&ring_name(spec, index))?, true)));
        Ok(Receiver { rings: rings.collect::<Result<_, RegionError>>()?, turn: 0, left: BURST, fault: None })
    }
}
