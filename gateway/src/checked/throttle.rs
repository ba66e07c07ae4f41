//! The message throttle of a session: no more messages a second than the venue takes.
//!
//! It is the token bucket in the form of one time (the generic cell rate algorithm): each message moves the time at which the bucket
//! is full again by one interval, and a message may go while that time is no further away than the burst.

use system::clock::Timebase;

/// How many messages a second a venue takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLimit {
    /// Messages a second, from 1.
    pub per_second: u32,
    /// A new order that comes when it is reached is rejected (`throttled`); a cancel or a replace is sent all the same, and takes
    /// its place in what may be sent later. Else all of them wait in the inbox, in their order: a cancel behind the orders before it.
    pub rejects: bool,
}

/// The burst, as a part of a second: what 10 ms take may go at once.
const BURST: u64 = 100;

pub(super) struct Throttle {
    limit: MessageLimit,
    /// The time of the last look, in ticks.
    now: u64,
    /// When the bucket is full again, in ticks.
    full_at: u64,
    /// Ticks a message and of a burst; 0 before the first message.
    interval: u64,
    burst: u64,
}

impl Throttle {
    pub const fn new(limit: MessageLimit) -> Self {
        Self { limit, now: 0, full_at: 0, interval: 0, burst: 0 }
    }

    /// Time has come to `now`.
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    const fn has_token(&self) -> bool {
        self.full_at <= self.now.saturating_add(self.burst)
    }

    /// Whether a message may be taken from the inbox now.
    pub const fn takes(&self) -> bool {
        self.limit.rejects || self.has_token()
    }

    /// A message is about to go; `false`: it must be rejected.
    pub fn message(&mut self, now: u64, time: Timebase, is_new: bool) -> bool {
        self.advance(now);
        if self.interval == 0 {
            let per_second = u64::from(self.limit.per_second.max(1));
            self.interval = time.ticks(1_000_000_000 / per_second).max(1);
            self.burst = self.interval * (per_second / BURST);
        }
        if self.limit.rejects && is_new && !self.has_token() {
            return false;
        }
        self.full_at = self.full_at.max(self.now) + self.interval;
        true
    }

    /// When a message may be taken again, in ticks; `u64::MAX` while one may.
    pub const fn next_deadline(&self) -> u64 {
        if self.takes() { u64::MAX } else { self.full_at - self.burst }
    }
}
