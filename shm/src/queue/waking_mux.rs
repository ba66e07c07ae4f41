//! The technique of typed queues: `spsc-mux`, and a wake-up of the receiver.

use super::wake::{FIFO, FLAG};
use crate::attached::Attached;
use crate::bell::{self, BELL_WORDS};
use crate::memory::RegionError;
use crate::ring::spsc_mux::{Mux, SpscMux, SpscMuxProducer};
use crate::ring::{EndRights, Home, Link, LinkSpec, SegmentPlace, SegmentSpec, TechniqueInfo};

pub(super) struct WakingMux;

impl Link for WakingMux {
    const INFO: TechniqueInfo =
        TechniqueInfo::new("message-queue", Home::Memory).apart().consumer_resumable().producer_resumable();

    type Producer = SpscMuxProducer;
    type Consumer = Mux;

    fn segments(spec: &LinkSpec) -> Vec<SegmentSpec> {
        let flag = SegmentSpec::memory(FLAG, bell::KIND, BELL_WORDS, EndRights::ALL_WRITE);
        let fifo = SegmentSpec::memory(FIFO, bell::KIND, 0, EndRights::ALL_WRITE);
        let fifo = SegmentSpec { place: SegmentPlace::Fifo, ..fifo };
        SpscMux::segments(spec).into_iter().chain([flag, fifo]).collect()
    }

    fn producer(
        spec: &LinkSpec,
        index: usize,
        attached: &mut Attached<'_>,
    ) -> Result<SpscMuxProducer, RegionError> {
        SpscMux::resume_producer(spec, index, attached)
    }

    fn consumer(spec: &LinkSpec, attached: &mut Attached<'_>) -> Result<Mux, RegionError> {
        SpscMux::resume_consumer(spec, attached)
    }
}
