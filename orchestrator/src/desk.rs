//! The desk: an operator's commands are carried out, and answered.

use super::{Event, Orchestrator};
use crate::risk::SettingError;
use protocol::agent::Cycle;
use protocol::desk::{Command, Desk, Entry, Status};
use protocol::kill::{Cause, Scope};
use protocol::limits::{Control, LimitSetting};
use shm::clock::Clock;
use shm::ring::Consumer;

impl<R: Consumer> Orchestrator<R> {
    /// The same, commanded by operators at a desk.
    #[must_use]
    pub fn commanded(self, desk: Desk) -> Self {
        Self { desk: Some(desk), ..self }
    }

    /// Carries out what is new on the desk.
    #[cold]
    pub(crate) fn obey<C: Clock>(&mut self, cycle: &mut Cycle<C>) {
        while let Some(Entry { number, command, .. }) = self.desk.as_mut().and_then(Desk::take) {
            if !self.keep(&Event::Command { number, command }, cycle.now) {
                return;
            }
            self.carry_out(number, command, cycle);
        }
    }

    /// Carries out a command, and answers it.
    pub(crate) fn carry_out<C: Clock>(
        &mut self,
        number: u32,
        command: Option<Command>,
        cycle: &mut Cycle<C>,
    ) {
        let refused = match command {
            Some(Command::Kill(scope)) => {
                (!self.kill(scope, Cause::Operator, Some(number), cycle)).then_some(Status::NoSuchScope)
            }
            Some(Command::Revive(scope)) => {
                (!self.revive(scope, Some(number), cycle)).then_some(Status::NoSuchScope)
            }
            Some(Command::SetLimit { scope, control, value }) => {
                match self.set_limit(scope, control, value) {
                    None => {
                        if let Some(desk) = &self.desk {
                            desk.seen(number, cycle.clock.now(), 0);
                        }
                        None
                    }
                    refused => refused,
                }
            }
            None => Some(Status::Unknown),
        };
        if let (Some(why), Some(desk)) = (refused, &self.desk) {
            desk.refused(number, cycle.clock.now(), why);
        }
    }

    /// Sets a limit; why it cannot be set.
    fn set_limit(&mut self, scope: Scope, control: u8, value: u64) -> Option<Status> {
        let Some(control) = Control::from_code(control) else { return Some(Status::NoSuchLimit) };
        match self.risk.set(&LimitSetting { scope, control, value }, &self.positions) {
            Ok(()) => None,
            Err(SettingError::NoSuch(_)) => Some(Status::NoSuchScope),
            Err(SettingError::Limit(_)) => Some(Status::NoSuchLimit),
        }
    }
}
