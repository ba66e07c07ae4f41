//! Clock samples from frames: the tightest one per direction and time bucket.

/// Number of time buckets. Their length doubles as the run continues.
const BUCKETS: usize = 512;
/// Initial bucket length: 2^20 ns, about a millisecond.
const INITIAL_SHIFT: u32 = 20;
/// Maximum distance from the first frame: thirteen days, in which an `f64` resolves nanoseconds.
const MAX_SPAN_NS: i64 = 1 << 50;

/// An upper or lower bound on how far the other host's clock was ahead at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    /// Time in nanoseconds of this clock since the first frame.
    pub at: i64,
    /// Apparent lead relative to the first frame, in nanoseconds.
    pub ahead: i64,
}

/// Returns `true` if the first of two bounds is tighter.
type Tighter = fn(i64, i64) -> bool;

/// The bounds from the frames of one direction, the tightest of each time bucket.
#[derive(Clone, Debug)]
pub(super) struct Bounds(Box<[Option<Bound>]>);

impl Bounds {
    fn new() -> Self {
        Self(vec![None; BUCKETS].into())
    }

    fn merge(&mut self, is_tighter: Tighter) {
        for index in 0..BUCKETS {
            let pair = 2 * index;
            let merged = match (self.0.get(pair).copied().flatten(), self.0.get(pair + 1).copied().flatten())
            {
                (Some(one), Some(other)) if is_tighter(other.ahead, one.ahead) => Some(other),
                (one, other) => one.or(other),
            };
            self.0[index] = merged;
        }
    }

    fn keep(&mut self, index: usize, bound: Bound, is_tighter: Tighter) {
        let kept = &mut self.0[index];
        if kept.is_none_or(|kept| is_tighter(bound.ahead, kept.ahead)) {
            *kept = Some(bound);
        }
    }

    /// Returns the bounds on the clock offset from the frames of one direction, by time: the
    /// tightest of each time bucket.
    pub fn all(&self) -> Vec<Bound> {
        self.0.iter().flatten().copied().collect()
    }
}

/// Bounds on how far the other host's clock is ahead, from frames of both directions (ns).
#[derive(Clone, Debug)]
pub struct Samples {
    /// The first frame: its time by this clock, and the apparent lead of the other.
    pub(super) origin: Option<(u64, i128)>,
    shift: u32,
    pub(super) upper_bounds: Bounds,
    pub(super) lower_bounds: Bounds,
}

impl Default for Samples {
    fn default() -> Self {
        Self::new()
    }
}

impl Samples {
    /// Creates an empty set of samples of two hosts' clocks.
    pub fn new() -> Self {
        Self { origin: None, shift: INITIAL_SHIFT, upper_bounds: Bounds::new(), lower_bounds: Bounds::new() }
    }

    /// Records the two times (ns) of a frame to the other host: `sent` by this host's clock,
    /// `received` by the other's.
    pub fn record_outbound(&mut self, sent: u64, received: u64) {
        if let Some((index, bound)) = self.bucket(sent, received) {
            self.upper_bounds.keep(index, bound, |new, old| new < old);
        }
    }

    /// Records the two times (ns) of a frame from the other host: `sent` by the other host's clock,
    /// `received` by this one's.
    pub fn record_inbound(&mut self, sent: u64, received: u64) {
        if let Some((index, bound)) = self.bucket(received, sent) {
            self.lower_bounds.keep(index, bound, |new, old| new > old);
        }
    }

    /// Returns the bucket of a sample; `None` if it is too far from the first frame.
    fn bucket(&mut self, here: u64, there: u64) -> Option<(usize, Bound)> {
        let ahead = i128::from(there) - i128::from(here);
        let (first, base) = *self.origin.get_or_insert((here, ahead));
        let at =
            i64::try_from(i128::from(here) - i128::from(first)).ok().filter(|at| at.abs() < MAX_SPAN_NS)?;
        let ahead = i64::try_from(ahead - base).ok().filter(|ahead| ahead.abs() < MAX_SPAN_NS)?;
        while at >> self.shift >= BUCKETS as i64 {
            self.shift += 1;
            self.upper_bounds.merge(|new, old| new < old);
            self.lower_bounds.merge(|new, old| new > old);
        }
        // A frame sent before the first one was seen belongs to the first bucket.
        Some(((at.max(0) >> self.shift) as usize, Bound { at, ahead }))
    }
}
