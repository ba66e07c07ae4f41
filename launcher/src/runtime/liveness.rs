//! When a thread counts as hanging: it should run and has not begun a duty cycle for longer than the plan allows.
//!
//! A machine that stands still (a virtual one that is paused, a laptop that sleeps) makes every thread silent at once, the
//! launcher as well. So the deadline counts only from where the launcher itself has been awake without a break.

use analysis::units::Nanos;
use protocol::plan::Plan;
use protocol::status::{Field, State, Status};

/// The deadline, and how long the launcher has been awake.
#[derive(Clone, Debug)]
pub struct Liveness {
    limit_ns: u64,
    limit_ticks: u64,
    now: u64,
    awake_since: u64,
}

impl Liveness {
    /// The plan's deadline, from `now` on, in ticks.
    pub fn new(plan: &Plan, now: u64) -> Self {
        let limit_ticks = (plan.liveness_ns as f64 / plan.ns_per_tick) as u64;
        Self { limit_ns: plan.liveness_ns, limit_ticks, now, awake_since: now }
    }

    /// The launcher is awake at this tick; it says so several times within each deadline.
    pub fn awake(&mut self, now: u64) {
        if now.saturating_sub(self.now) > self.limit_ticks / 2 {
            self.awake_since = now;
        }
        self.now = now;
    }

    /// How often it must say so, at least.
    pub fn interval(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(self.limit_ns / 4)
    }

    /// Whether a thread with this status hangs.
    pub fn hangs(&self, status: &Status) -> bool {
        let heard = status.get(Field::HeartbeatTicks).max(self.awake_since);
        status.state() == State::Running && self.now.saturating_sub(heard) > self.limit_ticks
    }
}

impl core::fmt::Display for Liveness {
    /// What is said of a thread that hangs.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "hangs: no duty cycle for {}", Nanos(self.limit_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::status::STATUS_WORDS;

    #[test]
    fn who_is_silent_while_everybody_sleeps_does_not_hang() {
        let mut words = [0; STATUS_WORDS];
        words[Field::State as usize] = State::Running as u64;
        words[Field::HeartbeatTicks as usize] = 100;
        let status = Status::from_words(words);
        let mut liveness = Liveness { limit_ns: 1000, limit_ticks: 1000, now: 100, awake_since: 0 };
        for now in [500, 1000] {
            liveness.awake(now);
            assert!(!liveness.hangs(&status));
        }
        liveness.awake(1101);
        assert!(liveness.hangs(&status), "silent for longer than the limit");
        liveness.awake(1_000_000);
        assert!(!liveness.hangs(&status), "the launcher was away too");
        for now in (1_000_000..1_001_700).step_by(400) {
            liveness.awake(now);
        }
        assert!(liveness.hangs(&status), "it has had its time since");
        words[Field::State as usize] = State::Done as u64;
        assert!(!liveness.hangs(&Status::from_words(words)));
    }
}
