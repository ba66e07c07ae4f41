//! The agent of a process that died before its agent was built.

use protocol::agent::{Agent, Cycle};
use system::clock::AnyClock;

/// The agent of a process that died before its agent was built.
pub(super) struct NoAgent;

impl Agent<AnyClock> for NoAgent {
    fn duty_cycle(&mut self, _: &mut Cycle<AnyClock>) -> usize {
        0
    }
}
