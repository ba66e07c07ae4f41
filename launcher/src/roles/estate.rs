//! What was recovered of an engine, where the threads of its process find it when they are built.

use gateway::GatewayEstate;
use journal::Follower;
use orchestrator::{Estate, Mute, Orchestrator, Recovered, Shadow};
use protocol::tally::LogTail;
use shm::attached::Attached;
use shm::memory::View;
use std::sync::{Arc, Mutex, PoisonError};

/// What was recovered, for the threads of the engine's process to be built from.
pub(super) type Recovery = Mutex<Option<Engine>>;

/// The engine before it is attached.
pub(super) struct Engine {
    pub orchestrator: Option<Orchestrator<Mute>>,
    pub recovered: Recovered,
    /// By their index; empty where it does not come back.
    pub gateways: Vec<GatewayEstate>,
}

/// What was recovered; `None` where nothing was.
pub(super) fn recovery(attached: &mut Attached<'_>) -> Arc<Recovery> {
    attached.shared("engine", Recovery::default)
}

/// What was recovered of a gateway.
pub(super) fn gateway(attached: &mut Attached<'_>, index: u16) -> Option<GatewayEstate> {
    let recovery = recovery(attached);
    let engine = recovery.lock().unwrap_or_else(PoisonError::into_inner);
    engine.as_ref()?.gateways.get(usize::from(index)).cloned()
}

/// What of the orchestrator is in its log, counted in one pass that can go on later.
#[derive(Default)]
pub(super) struct LogCount {
    tail: LogTail,
    pub estate: Estate,
}

impl LogCount {
    /// Counts what was appended since.
    pub(super) fn look(&mut self, log: &View) {
        self.tail.look(log, |record| self.estate.count(record.point));
    }
}

/// The state of a follower, if it is of use, and what it has counted in the log.
pub(super) type Kept = (Option<Follower<Shadow>>, LogCount);

fn place(attached: &mut Attached<'_>) -> Arc<Mutex<Option<Kept>>> {
    attached.shared("kept-engine", Mutex::default)
}

/// The engine, once it is recovered, goes on from there.
pub(super) fn keep(attached: &mut Attached<'_>, what: Kept) {
    *place(attached).lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
}

/// What was kept for it.
pub(super) fn take(attached: &mut Attached<'_>) -> Option<Kept> {
    place(attached).lock().unwrap_or_else(PoisonError::into_inner).take()
}
