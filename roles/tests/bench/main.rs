//! The measured loops of `lab` and `board`, over memory on the heap.

mod boards;
mod queues;

use roles::bench::control::{ControlSegment, segment_words};
use shm::memory::Region;

/// A control segment on the heap in that phase, whose run started at tick 0.
fn control(phase: u64) -> ControlSegment {
    let control = ControlSegment::new(Region::heap(segment_words(0)).words(), &[]);
    control.set_phase(phase);
    control
}
