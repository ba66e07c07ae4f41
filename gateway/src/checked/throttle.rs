//! The message throttle of a session: no more messages a second than the venue takes.

use protocol::token_bucket::TokenBucket;
use system::clock::Timebase;

/// How many messages a second a venue takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLimit {
    /// Messages a second, from 1.
    pub per_second: u32,
    /// A new order that comes when it is reached is rejected (`throttled`); a cancel or a replace
    /// is sent all the same, and takes its place in what may be sent later. Else all of them wait
    /// in the inbox, in their order: a cancel behind the orders before it.
    pub rejects: bool,
}

/// The burst as a part of a second: the messages of 10 ms may go at once, and one more.
const BURST: u32 = 100;

pub(super) struct Throttle {
    limit: MessageLimit,
    /// The time of the last look, in ticks.
    now: u64,
    /// The time of the first message, in ticks, and the bucket, which was full then.
    bucket: Option<(u64, TokenBucket)>,
}

impl Throttle {
    pub const fn new(limit: MessageLimit) -> Self {
        Self { limit, now: 0, bucket: None }
    }

    /// Moves the time on to `now`.
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Ticks until the venue takes another message.
    fn ticks_left(&self) -> u64 {
        self.bucket.map_or(0, |(start, bucket)| bucket.ticks_until_token(self.now - start))
    }

    /// Returns `true` if a message may be taken from the inbox now.
    pub fn takes(&self) -> bool {
        self.limit.rejects || self.ticks_left() == 0
    }

    /// Counts a message that is about to go. Returns `false` if it must be rejected instead.
    pub fn message(&mut self, now: u64, time: Timebase, is_new: bool) -> bool {
        self.advance(now);
        if self.limit.rejects && is_new && self.ticks_left() > 0 {
            return false;
        }
        let rate = self.limit.per_second.max(1);
        let (start, bucket) = self.bucket.get_or_insert_with(|| {
            let mut bucket = TokenBucket::default();
            bucket.set(Some(rate.into()), (rate / BURST + 1).into(), time.ns_per_tick);
            (self.now, bucket)
        });
        bucket.take(self.now - *start);
        true
    }

    /// When a message may be taken again, in ticks; `u64::MAX` while one may.
    pub fn next_deadline(&self) -> u64 {
        if self.takes() { u64::MAX } else { self.now + self.ticks_left() }
    }
}
