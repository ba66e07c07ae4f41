//! The measured loops of `lab` and `board`, over memory on the heap.

mod boards;
mod queues;

use protocol::control::{ControlWriter, PLAN, RunState};
use protocol::counters::AgentCounters;
use protocol::plan::Role;
use protocol::status::{LOG_OFFSET, StatusWriter, counters_of};
use shm::memory::{AtomicWords, Region};

/// A control segment on the heap in that state, whose run started at tick 0.
fn control(state: RunState) -> ControlWriter {
    let control = ControlWriter::new(Region::heap(PLAN + 1).words());
    control.set_state(state);
    control
}

/// A thread's segment on the heap, for one role.
struct ThreadMemory(AtomicWords);

impl ThreadMemory {
    fn new() -> Self {
        Self(Region::heap(LOG_OFFSET).words())
    }

    fn status(&self) -> StatusWriter {
        StatusWriter::new(&self.0)
    }

    fn counters(&self, role: Role) -> AgentCounters {
        counters_of(&self.0.clone().into(), &[role], role)
    }
}
