//! How an orchestrator is put together.

use super::{Core, Orchestrator, Outputs};
use journal::InputLog;
use protocol::desk::Desk;
use shm::ring::Consumer;

impl<R: Consumer> Orchestrator<R> {
    /// An orchestrator over these links, without a journal. Without [`Orchestrator::supervised`] no strategy is ever retired or
    /// started again.
    ///
    /// # Panics
    /// If core and outputs are for other numbers of strategies and gateways.
    pub fn new(submit: R, completion: R, core: Core, outputs: Outputs) -> Self {
        Self::with_journal(submit, completion, core, outputs, ())
    }
}

impl<R: Consumer, J: InputLog> Orchestrator<R, J> {
    /// As [`Orchestrator::new`], recording its inputs.
    ///
    /// # Panics
    /// As [`Orchestrator::new`].
    pub fn with_journal(submit: R, completion: R, core: Core, outputs: Outputs, journal: J) -> Self {
        assert!(
            core.strategies() == outputs.strategies.len() && core.gateways() == outputs.gateways.len(),
            "core and outputs are of one run"
        );
        Self { submit, completion, core, outputs, supervision: None, journal, failed: None }
    }

    /// Takes commands from operators at this desk.
    #[must_use]
    pub fn commanded(self, desk: Desk) -> Self {
        Self { outputs: self.outputs.commanded(desk), ..self }
    }
}
