//! The spares of a simulated run: the real ones, which have their turns when the launcher has
//! looked after them. Now and then one is gone.

use super::scenario::Scenario;
use protocol::control::Control;
use protocol::plan::Plan;
use roles::faults::Draws;
use roles::{Standby, standby};
use shm::attached::Attached;

/// A process that stands ready.
pub(super) struct Spare<'a> {
    standby: Box<dyn Standby + 'a>,
    attached: Attached<'a>,
    /// It has a state that follows its journal.
    follows: bool,
}

impl<'a> Spare<'a> {
    /// It is its role from now on, with what it has of the segments.
    pub fn go_on(mut self) -> Attached<'a> {
        self.standby.go_on(&mut self.attached);
        self.attached
    }

    /// A turn; whether it follows, if it ever did.
    fn turn(&mut self) -> bool {
        self.standby.look();
        let follows = self.standby.follows();
        let is_well = follows || !self.follows;
        self.follows = follows;
        is_well
    }
}

/// All of them, by their places in the plan.
pub(super) struct Spares<'a> {
    all: Vec<Option<Spare<'a>>>,
    draws: Draws,
    is_asked: bool,
    /// What went wrong with one.
    failed: Option<String>,
}

impl<'a> Spares<'a> {
    /// None yet.
    pub fn new(scenario: &Scenario) -> Self {
        let all = scenario.plan.processes.iter().map(|_| None).collect();
        let draws = Draws::new(scenario.seed ^ 1 << 32, Draws::SPARES);
        Self { all, draws, is_asked: scenario.has_spares, failed: None }
    }

    /// Whether they do what they are there for.
    ///
    /// # Errors
    /// One could not be started, or lost the journal that it followed.
    pub fn check(&mut self) -> Result<(), String> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// The spare of a process has a turn, or ends, if that is drawn; whether there is to be a new
    /// one.
    pub fn has_turn(&mut self, process: usize) -> bool {
        if !self.is_asked {
            return false;
        }
        let drawn = self.draws.below(32);
        let Some(spare) = &mut self.all[process] else { return drawn < 16 };
        if drawn == 0 {
            self.all[process] = None;
        } else if drawn < 8 && !spare.turn() {
            self.failed = Some(lost(process));
        }
        false
    }

    /// Starts one, with what its process has.
    pub fn start(&mut self, plan: &'a Plan, process: usize, control: &Control, mut attached: Attached<'a>) {
        match standby(plan, &plan.processes[process], control, &mut attached) {
            Ok(standby) => self.all[process] = Some(Spare { standby, attached, follows: false }),
            Err(error) => self.failed = Some(format!("the spare of process {process}: {error:#}")),
        }
    }

    /// The spare of a process, which may have a last turn; `None`: there is none.
    pub fn take(&mut self, process: usize) -> Option<Spare<'a>> {
        let mut spare = self.all[process].take()?;
        if self.draws.below(2) == 0 && !spare.turn() {
            self.failed = Some(lost(process));
        }
        Some(spare)
    }
}

fn lost(process: usize) -> String {
    format!("the spare of process {process} does not follow its journal any more")
}
