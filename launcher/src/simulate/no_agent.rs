//! The agent of a process that died before it had one.

use protocol::agent::{Agent, Cycle};
use system::clock::AnyClock;

/// The agent of a process that died before it had one.
pub(super) struct NoAgent;

impl Agent<AnyClock> for NoAgent {
    fn duty_cycle(&mut self, _: &mut Cycle<AnyClock>) -> usize {
        0
    }
}
