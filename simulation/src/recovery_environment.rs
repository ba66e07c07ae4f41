//! The recovery of simulated processes, on the virtual clock and a simulated disk. The clock is
//! read through `fuse`, which may crash the process there.

use super::fuse;
use super::machine::SimulatedMachine;
use anyhow::Result;
use journal::{Durability, Options, Watermark};
use orchestrator::OutputWatermarks;
use protocol::control::Control;
use protocol::plan::{Journaling, Plan, ProcessPlan};
use roles::{RecoveredRoles, RecoveryEnvironment, StandbyState, SystemRecovery};
use shm::attached::Attached;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Hooks with which a test changes how simulated processes recover from their journals; the
/// simulation supplies clock and disk. Tests replace the hooks by broken ones, to prove that the
/// simulation finds them.
pub trait SimulatedRecovery: RecoveryEnvironment + Debug + Sync {
    /// Called before a process recovers.
    fn on_start(&self, plan: &Plan, process: &ProcessPlan) {
        let _ = (plan, process);
    }

    /// Called when a hot standby is promoted.
    fn on_promotion(&self, standby: &mut StandbyState) {
        let _ = standby;
    }

    /// Called before the roles of a process are built from its recovered state.
    fn on_recovery(&self, recovered: &mut RecoveredRoles) {
        let _ = recovered;
    }
}

impl SimulatedRecovery for SystemRecovery {}

/// A recovery on the machine of a simulated run.
pub(super) struct MachineRecovery<'a> {
    plan: &'a Plan,
    machine: &'a Arc<SimulatedMachine>,
    inner: &'static dyn SimulatedRecovery,
}

impl<'a> MachineRecovery<'a> {
    /// Creates the environment in which simulated processes recover from their journals; through
    /// the hooks `inner`, a test can break steps of the recovery.
    pub fn new(
        plan: &'a Plan,
        machine: &'a Arc<SimulatedMachine>,
        inner: &'static dyn SimulatedRecovery,
    ) -> Self {
        Self { plan, machine, inner }
    }

    /// Recovers the roles of a simulated process from their journals, starting from a hot standby's
    /// state if there is one.
    pub fn recover(
        &self,
        process: &ProcessPlan,
        control: &Control,
        mut standby: Option<StandbyState>,
        attached: &mut Attached<'_>,
    ) -> Result<RecoveredRoles> {
        self.inner.on_start(self.plan, process);
        standby.iter_mut().for_each(|standby| self.inner.on_promotion(standby));
        let mut recovered = roles::recover(self.plan, process, control, standby, attached, self)?;
        self.inner.on_recovery(&mut recovered);
        Ok(recovered)
    }

    fn has_disk(&self) -> bool {
        self.plan.trading().journal != Journaling::Process
    }
}

impl RecoveryEnvironment for MachineRecovery<'_> {
    fn now(&self, _: &Plan) -> u64 {
        fuse::virtual_now()
    }

    fn journal_options(&self, options: Options) -> Options {
        if !self.has_disk() {
            return options;
        }
        let durability = match options.durability {
            // The simulation draws when a group is synced.
            Durability::GroupCommit { .. } => {
                Durability::GroupCommit { records: u64::MAX, within: Duration::MAX }
            }
            other => other,
        };
        self.inner.journal_options(Options { durability, disk: self.machine.disk(), ..options })
    }

    fn on_journal_open(&self, folder: &Path, journal: Watermark) {
        if self.has_disk() {
            self.machine.on_journal_open(folder, journal);
        }
    }

    fn engine_outputs(&self, outputs_found: OutputWatermarks) -> OutputWatermarks {
        self.inner.engine_outputs(outputs_found)
    }

    fn exchange_outputs(&self, outputs_found: venue::OutputWatermarks) -> venue::OutputWatermarks {
        self.inner.exchange_outputs(outputs_found)
    }
}
