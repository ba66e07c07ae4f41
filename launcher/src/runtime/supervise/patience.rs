//! How long the launcher waits for somebody: a time in which it was awake itself, in which whoever wanted to run could, and in which
//! nothing came of what it waits for.
//!
//! On a machine that stood still for longer than the whole wait (a virtual one that was paused), the clock alone would say at its next
//! look that nobody had come, whoever was about to; and on one that has too little processor for everybody, that the rest is lost while
//! it still comes in.

use super::Supervisor;
use std::time::Duration;

/// For so many limits more a thread that waits for a core holds the end up, and so does what still comes.
const HELD_UP: u64 = 5;
/// The launcher looks far more often than this, however short the wait is.
const ASLEEP_NS: u64 = 1_000_000_000;

/// A wait that has begun. Times are nanoseconds since one and the same moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    limit_ns: u64,
    /// When it began, or the launcher was first awake again.
    since_ns: u64,
    looked_ns: u64,
    /// How much had come at the last look, and when that was last something else.
    come: (u64, u64),
}

impl Patience {
    /// Begins now. It must be asked several times within the limit, or a second, whether it is over.
    pub const fn new(limit: Duration, now_ns: u64) -> Self {
        Self { limit_ns: limit.as_nanos() as u64, since_ns: now_ns, looked_ns: now_ns, come: (0, now_ns) }
    }

    /// So much of what it waits for has come so far, in any unit. More of it holds the end up, but only so long: a hostile strategy could make
    /// it go on for ever.
    pub const fn see(&mut self, come: u64, now_ns: u64) {
        if come != self.come.0 {
            self.come = (come, now_ns);
        }
    }

    /// Whether it is over. `starved_ns`: when a thread was last seen to wait for a core.
    pub fn is_over(&mut self, now_ns: u64, starved_ns: u64) -> bool {
        if now_ns.saturating_sub(self.looked_ns) > ASLEEP_NS.max(self.limit_ns / 2) {
            self.since_ns = now_ns;
        }
        self.looked_ns = now_ns;
        now_ns.saturating_sub(held_up(self.since_ns, starved_ns.max(self.come.1), self.limit_ns))
            > self.limit_ns
    }
}

/// Since when a limit counts that began then: a thread that waits for a core holds it up, but only so long: which thread is its own a
/// process says itself.
pub(super) fn held_up(since_ns: u64, starved_ns: u64, limit_ns: u64) -> u64 {
    let longest = since_ns.saturating_add(limit_ns.saturating_mul(HELD_UP));
    since_ns.max(starved_ns.min(longest))
}

impl Supervisor<'_> {
    /// A wait that begins now.
    pub(super) fn patience(&self, limit: Duration) -> Patience {
        Patience::new(limit, self.now_ns())
    }

    /// Whether that wait is over.
    pub(super) fn has_waited(&self, patience: &mut Patience) -> bool {
        patience.is_over(self.now_ns(), self.ns(self.liveness.starved()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    /// The second at which it is over for one who looks at these.
    fn over(looks: impl IntoIterator<Item = u64>, starved: impl Fn(u64) -> u64) -> Option<u64> {
        let mut patience = Patience::new(Duration::from_secs(5), 0);
        looks.into_iter().find(|second| patience.is_over(second * S, starved(*second) * S))
    }

    #[test]
    fn it_is_over_after_its_time() {
        assert_eq!(over(1..100, |_| 0), Some(6));
    }

    #[test]
    fn a_wait_shorter_than_a_look_is_over_at_the_first() {
        assert!(Patience::new(Duration::from_nanos(1), 0).is_over(S / 20, 0));
    }

    #[test]
    fn a_machine_that_stood_still_begins_anew() {
        assert_eq!(over((1..3).chain(60..100), |_| 0), Some(66));
        assert_eq!(over((1..3).chain(5..100), |_| 0), Some(11), "for longer than half of it");
        assert_eq!(over((1..3).chain(4..100), |_| 0), Some(6), "not for so short a time");
    }

    #[test]
    fn who_waits_for_a_core_holds_it_up_and_not_for_ever() {
        assert_eq!(over(1..100, |second| second.min(8)), Some(14));
        assert_eq!(over(1..100, |second| second), Some(31));
    }

    #[test]
    fn what_still_comes_holds_it_up_and_not_for_ever() {
        // Something comes every second until that one.
        let over_after = |last: u64| {
            let mut patience = Patience::new(Duration::from_secs(5), 0);
            (1..100).find(|second| {
                patience.see(second.min(&last) * 7, second * S);
                patience.is_over(second * S, 0)
            })
        };
        assert_eq!(over_after(0), Some(6), "nothing ever comes");
        assert_eq!(over_after(12), Some(18));
        assert_eq!(over_after(99), Some(31), "a flood that nobody ends");
    }
}
