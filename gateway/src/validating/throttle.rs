//! The message throttle of a session: limits the messages per second to what the venue accepts.

use protocol::token_bucket::TokenBucket;
use system::clock::Timebase;

/// The message rate that a venue accepts, and the reaction to more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageLimit {
    /// Messages per second, at least 1.
    pub per_second: u32,
    /// A new order above the limit is rejected (`throttled`); a cancel or replace is sent anyway
    /// and uses up later capacity. If `false`, all messages wait in the inbox in order.
    pub rejects: bool,
}

/// The burst as a fraction of a second: 10 ms worth of messages, and one more.
const BURST: u32 = 100;

pub(super) struct Throttle {
    limit: MessageLimit,
    /// The current time, in ticks.
    now: u64,
    /// The time of the first message, in ticks, and the bucket, which was full then.
    bucket: Option<(u64, TokenBucket)>,
}

impl Throttle {
    pub const fn new(limit: MessageLimit) -> Self {
        Self { limit, now: 0, bucket: None }
    }

    /// Advances the throttle's time to `now`, so that the venue's limit allows more messages.
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
    }

    /// Returns the ticks until another message may be sent.
    fn ticks_left(&self) -> u64 {
        self.bucket.map_or(0, |(start, bucket)| bucket.ticks_until_token(self.now - start))
    }

    /// Returns `true` if the venue's message limit allows to take another message from the inbox.
    pub fn can_take(&self) -> bool {
        self.limit.rejects || self.ticks_left() == 0
    }

    /// Counts a message that is about to be sent to the venue. Returns `false` if it must be
    /// rejected instead.
    pub fn try_count_message(&mut self, now: u64, time: Timebase, is_new: bool) -> bool {
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

    /// Returns the tick at which the next message may be taken; `u64::MAX` while one may now.
    pub fn next_deadline(&self) -> u64 {
        if self.can_take() { u64::MAX } else { self.now + self.ticks_left() }
    }
}
