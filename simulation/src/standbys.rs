//! The hot standbys of a simulated run: real ones, whose code runs when the launcher polls them.
//! Some are killed at random.

use super::scenario::Scenario;
use protocol::control::Control;
use protocol::faults::Draws;
use protocol::plan::Plan;
use roles::{StandbyRole, StandbyState, standby};
use shm::attached::Attached;

/// A hot standby of a simulated run.
pub(super) struct StandbyProcess<'a> {
    standby: Box<dyn StandbyRole + 'a>,
    attached: Attached<'a>,
    /// Its state follows the journal.
    is_following: bool,
}

impl<'a> StandbyProcess<'a> {
    /// Promotes the hot standby to the role that it stands by for. Returns its segments and state.
    pub fn promote(self) -> (Attached<'a>, Option<StandbyState>) {
        (self.attached, Some(self.standby.resume()))
    }

    /// Runs one turn. Returns `false` if it has stopped following its journal.
    fn try_step(&mut self) -> bool {
        self.standby.try_follow();
        let is_following = self.standby.has_state();
        let has_kept_following = is_following || !self.is_following;
        self.is_following = is_following;
        has_kept_following
    }
}

/// All hot standbys of a simulated run, by the index of their process in the plan.
pub(super) struct Standbys<'a> {
    by_process: Vec<Option<StandbyProcess<'a>>>,
    draws: Draws,
    is_enabled: bool,
    /// The failure of a standby.
    failure: Option<String>,
}

impl<'a> Standbys<'a> {
    /// Creates an empty collection of the hot standbys of a scenario's processes.
    pub fn new(scenario: &Scenario) -> Self {
        let by_process = scenario.plan.processes.iter().map(|_| None).collect();
        let draws = Draws::new(scenario.seed ^ 1 << 32, Draws::STANDBYS);
        Self { by_process, draws, is_enabled: scenario.has_standbys, failure: None }
    }

    /// Checks that no hot standby of the simulated run has failed.
    ///
    /// # Errors
    /// A standby could not be started, or stopped following its journal.
    pub fn check(&mut self) -> Result<(), String> {
        self.failure.take().map_or(Ok(()), Err)
    }

    /// Lets a simulated process's hot standby run once, or ends it, by a random draw. Returns
    /// `true` if a new one is to be started.
    pub fn run_drawn_turn(&mut self, process: usize) -> bool {
        if !self.is_enabled {
            return false;
        }
        let drawn = self.draws.below(32);
        let Some(standby) = &mut self.by_process[process] else { return drawn < 16 };
        if drawn == 0 {
            self.by_process[process] = None;
        } else if drawn < 8 && !standby.try_step() {
            self.failure = Some(lost(process));
        }
        false
    }

    /// Starts a simulated hot standby with the segments of the process that it stands by for.
    pub fn start(&mut self, plan: &'a Plan, process: usize, control: &Control, mut attached: Attached<'a>) {
        match standby(plan, &plan.processes[process], control, &mut attached) {
            Ok(standby) => {
                self.by_process[process] = Some(StandbyProcess { standby, attached, is_following: false })
            }
            Err(error) => self.failure = Some(format!("the spare of process {process}: {error:#}")),
        }
    }

    /// Takes the hot standby of a dead simulated process out of the collection, to be promoted. It
    /// may have a last turn; `None` if there is none.
    pub fn promote(&mut self, process: usize) -> Option<StandbyProcess<'a>> {
        let mut standby = self.by_process[process].take()?;
        if self.draws.below(2) == 0 && !standby.try_step() {
            self.failure = Some(lost(process));
        }
        Some(standby)
    }
}

fn lost(process: usize) -> String {
    format!("the spare of process {process} does not follow its journal any more")
}
