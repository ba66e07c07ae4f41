//! Clock samples from frames: of each direction and interval the tightest one.

/// How many stretches of time there are. They become longer as time goes on.
const STRETCHES: usize = 512;
/// The first ones are a millisecond long (2^20 ns).
const SHIFT: u32 = 20;
/// Thirteen days: further from the first frame nothing is kept, and floating-point numbers tell
/// nanoseconds apart.
const FURTHEST: i64 = 1 << 50;

/// That the other clock was ahead by at most, or at least, so much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bound {
    /// When, in nanoseconds of this clock since the first frame.
    pub at: i64,
    /// By how much more than at the first frame it seemed, in nanoseconds.
    pub ahead: i64,
}

/// Bounds from one direction.
#[derive(Clone, Debug)]
pub(super) struct Bounds(Box<[Option<Bound>]>);

impl Bounds {
    fn new() -> Self {
        Self(vec![None; STRETCHES].into())
    }

    fn merge(&mut self, says_more: impl Fn(i64, i64) -> bool) {
        for place in 0..STRETCHES {
            let pair = 2 * place;
            let merged = match (self.0.get(pair).copied().flatten(), self.0.get(pair + 1).copied().flatten())
            {
                (Some(one), Some(other)) if says_more(other.ahead, one.ahead) => Some(other),
                (one, other) => one.or(other),
            };
            self.0[place] = merged;
        }
    }

    fn keep(&mut self, place: usize, bound: Bound, says_more: impl Fn(i64, i64) -> bool) {
        let kept = &mut self.0[place];
        if kept.is_none_or(|kept| says_more(bound.ahead, kept.ahead)) {
            *kept = Some(bound);
        }
    }

    /// In the order of time, but for those of one stretch.
    pub fn all(&self) -> Vec<Bound> {
        self.0.iter().flatten().copied().collect()
    }
}

/// Bounds on how far the other clock is ahead, from both directions, in bounded memory however long
/// the run. All times in nanoseconds.
#[derive(Clone, Debug)]
pub struct Samples {
    /// The first frame: when, by this clock, and how far ahead the other seemed.
    pub(super) origin: Option<(u64, i128)>,
    shift: u32,
    pub(super) at_most: Bounds,
    pub(super) at_least: Bounds,
}

impl Default for Samples {
    fn default() -> Self {
        Self::new()
    }
}

impl Samples {
    /// None yet.
    pub fn new() -> Self {
        Self { origin: None, shift: SHIFT, at_most: Bounds::new(), at_least: Bounds::new() }
    }

    /// A frame went from here: it left at `sent` by this clock and was seen at `seen` by the other.
    pub fn went(&mut self, sent: u64, seen: u64) {
        if let Some((place, bound)) = self.place(sent, seen) {
            self.at_most.keep(place, bound, |new, old| new < old);
        }
    }

    /// A frame came from there: it left at `sent` by the other clock and was seen at `seen` by this
    /// one.
    pub fn came(&mut self, sent: u64, seen: u64) {
        if let Some((place, bound)) = self.place(seen, sent) {
            self.at_least.keep(place, bound, |new, old| new > old);
        }
    }

    /// Where it belongs; `None`: further from the first frame than clocks are.
    fn place(&mut self, here: u64, there: u64) -> Option<(usize, Bound)> {
        let ahead = i128::from(there) - i128::from(here);
        let (first, base) = *self.origin.get_or_insert((here, ahead));
        let at = i64::try_from(i128::from(here) - i128::from(first)).ok().filter(|at| at.abs() < FURTHEST)?;
        let ahead = i64::try_from(ahead - base).ok().filter(|ahead| ahead.abs() < FURTHEST)?;
        while at >> self.shift >= STRETCHES as i64 {
            self.shift += 1;
            self.at_most.merge(|new, old| new < old);
            self.at_least.merge(|new, old| new > old);
        }
        // One that was sent before the first was seen belongs to the beginning.
        Some(((at.max(0) >> self.shift) as usize, Bound { at, ahead }))
    }
}
