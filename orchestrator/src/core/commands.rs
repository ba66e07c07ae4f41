//! Operators' commands: kill switches and limits.

use super::{Core, Effects, Moment, Notice};
use crate::risk::SettingError;
use protocol::desk::{Command, Status};
use protocol::kill::{Cause, Scope};
use protocol::limits::{Control, LimitSetting};

impl Core {
    /// Carries out a command and answers it.
    pub(super) fn command(
        &mut self,
        number: u32,
        command: Option<Command>,
        at: Moment,
        out: &mut impl Effects,
    ) {
        let done = match command {
            Some(Command::Kill(scope)) => {
                let is_known = self.kill(scope, Cause::Operator, Some(number), at, out);
                is_known.then_some(()).ok_or(Status::NoSuchScope)
            }
            Some(Command::Revive(scope)) => {
                self.revive(scope, Some(number), out).then_some(()).ok_or(Status::NoSuchScope)
            }
            Some(Command::SetLimit { scope, control, value }) => {
                self.set_limit(scope, control, value).map(|()| {
                    out.notify(Notice::CommandSeen { number, ticks: None, orders: 0 });
                })
            }
            None => Err(Status::Unknown),
        };
        if let Err(why) = done {
            out.notify(Notice::CommandRefused { number, why });
        }
    }

    fn set_limit(&mut self, scope: Scope, control: u8, value: u64) -> Result<(), Status> {
        let control = Control::from_code(control).ok_or(Status::NoSuchLimit)?;
        self.risk.set(&LimitSetting { scope, control, value }, &self.positions).map_err(|error| match error {
            SettingError::NoSuch(_) => Status::NoSuchScope,
            SettingError::Limit(_) => Status::NoSuchLimit,
        })
    }
}
