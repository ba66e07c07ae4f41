//! Gaps: times at which a thread did not run, and the rule by which its log keeps them.
//!
//! The capacity is used in four levels, each of which keeps only gaps of at least its minimum
//! length and counts shorter ones: space remains for long gaps. The first level has space for
//! six seconds of a core taken away ten thousand times a second. A kept gap is never moved or
//! overwritten, so a killed thread leaves all it had.
//!
//! *Sleeps*, times at which the thread's idle strategy gave the core away, are not gaps. Those that
//! ended with work are kept by the same rule in a capacity of their own.

use crate::record::{Point, Record};
use crate::wire::ID_WIDTH;
use shm::memory::AtomicWords;
use shm::sync::Ordering;

/// Number of fill levels of a stamp log; each next level raises the minimum length of the thread's
/// pauses that it records.
pub const LEVELS: usize = 4;
/// Maximum number of gaps (pauses of a thread) in a log, for all its incarnations together: 1 MiB.
pub const MAX_GAPS: u64 = 1 << 16;
/// Maximum number of sleeps that a plan may reserve space for in a thread's log: 4 MiB.
pub const MAX_SLEEPS: u64 = 1 << 18;
/// Minimum length (ns) of a gap (pause of a thread) that a log keeps, for each fill level. The
/// first is longer than any duty cycle that finds its rings in the cache; each further one is eight
/// times as long.
pub const MIN_NS: [u64; LEVELS] = [3_000, 24_000, 192_000, 1_536_000];

/// Number and total length of a thread's gaps (pauses) that its full log did not keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedGaps {
    /// Number of gaps that were not kept.
    pub count: u64,
    /// Total length of the gaps, in ticks.
    pub ticks: u64,
}

/// Returns how many gaps are kept when each level ends; the first has nine tenths of the capacity.
pub(crate) const fn level_ends(capacity: u64) -> [u64; LEVELS] {
    const SIXTY_FOURTHS: [u64; LEVELS] = [58, 60, 62, 64];
    let mut ends = [0; LEVELS];
    let mut level = 0;
    while level < LEVELS {
        ends[level] = capacity / 64 * SIXTY_FOURTHS[level] + capacity % 64 * SIXTY_FOURTHS[level] / 64;
        level += 1;
    }
    ends
}

/// Returns the capacity (records) with which a log keeps `gaps` gaps (pauses of its thread) without
/// raising their minimum length.
pub const fn capacity_for(gaps: u64) -> u64 {
    gaps.saturating_add(gaps / 58 * 6).saturating_add(8)
}

/// Returns the fill level of a log that has kept `kept` of `capacity` gaps (pauses); [`LEVELS`] if
/// it is full.
pub const fn level(kept: u64, capacity: u64) -> usize {
    let ends = level_ends(capacity);
    let mut level = 0;
    while level < LEVELS && kept >= ends[level] {
        level += 1;
    }
    level
}

/// Returns the times (ticks) at which a log raised its minimum gap length, and the new minimum (ns;
/// `None`: log full). `kept` are its gaps in the order of the log.
pub fn threshold_changes(kept: &[Gap], capacity: u64) -> impl Iterator<Item = (u64, Option<u64>)> + '_ {
    level_ends(capacity).into_iter().zip(1..).map_while(|(end, next): (u64, usize)| {
        let last = kept.get(usize::try_from(end.checked_sub(1)?).ok()?)?;
        Some((last.ended, MIN_NS.get(next).copied()))
    })
}

/// The quota of gaps (or sleeps) in a thread's log; its counts are in the status block, too.
pub(crate) struct GapQuota {
    capacity: u64,
    /// Number kept so far.
    pub kept: u64,
    /// Number kept, plus one.
    counted: AtomicWords,
    /// Number of those not kept, and their total time.
    dropped: AtomicWords,
}

impl GapQuota {
    /// Creates the quota of gaps (pauses of a thread) that a stamp log may keep. It includes the
    /// gaps that earlier incarnations kept: their number in the status block, or `count()` if that
    /// has none.
    pub fn new(capacity: u64, [dropped, counted]: [AtomicWords; 2], count: impl FnOnce() -> u64) -> Self {
        // Relaxed: the store of a dead predecessor. A wrong value only wastes capacity.
        let kept = match counted[0].load(Ordering::Relaxed) {
            0 => count(),
            kept => kept - 1,
        };
        Self { capacity: 0, kept, counted, dropped }.with_capacity(capacity)
    }

    /// Sets how many pauses of its thread the stamp log may record. Publishes the count unless the
    /// capacity is 0.
    #[must_use]
    pub fn with_capacity(self, capacity: u64) -> Self {
        if capacity > 0 {
            self.counted[0].store(self.kept.saturating_add(1), Ordering::Relaxed);
        }
        Self { capacity, ..self }
    }

    /// Returns `true` if the log keeps a gap (pause) of `ticks`; counts it as dropped if not.
    pub fn try_admit(&mut self, ticks: u64, thresholds: &[u64; LEVELS]) -> bool {
        let is_kept = thresholds.get(level(self.kept, self.capacity)).is_some_and(|min| ticks >= *min);
        if !is_kept && self.capacity > 0 {
            for (word, by) in self.dropped.iter().zip([1, ticks]) {
                // Relaxed: only this thread writes these words.
                word.store(word.load(Ordering::Relaxed).saturating_add(by), Ordering::Relaxed);
            }
        }
        is_kept
    }

    /// Reserves space for one gap (pause) in the log; returns `false` if its capacity is used up.
    pub fn try_reserve(&mut self) -> bool {
        let is_kept = self.kept < self.capacity;
        if is_kept {
            self.kept += 1;
            // Before the record: a death between the two wastes one place. Relaxed: the only
            // writer.
            self.counted[0].store(self.kept + 1, Ordering::Relaxed);
        }
        is_kept
    }
}

/// A pause between two duty cycles of a thread, such as while another thread had its core, or a
/// sleep of its idle strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The end of the gap, in ticks.
    pub ended: u64,
    /// The length of the gap in ticks, at most [`Gap::MAX_TICKS`].
    pub ticks: u64,
    /// The kernel events of the thread since the last kept gap; none for a sleep.
    pub events: KernelEvents,
}

/// Kernel events during a gap (pause) of a thread, such as page faults, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelEvents(pub u8);

impl KernelEvents {
    /// The bit for an involuntary context switch: the kernel took the core away.
    pub const INVOLUNTARY: u8 = 1;
    /// The bit for a voluntary context switch: the thread slept or yielded.
    pub const VOLUNTARY: u8 = 2;
    /// The bit for a page fault that was served from memory.
    pub const MINOR_FAULT: u8 = 4;
    /// The bit for a page fault that read from a device.
    pub const MAJOR_FAULT: u8 = 8;

    /// Returns `true` if the kernel event `bit` occurred in the gap (pause of a thread).
    pub const fn has_counted(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

impl core::fmt::Display for Gap {
    /// `7000 ticks, preempted`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ticks", self.ticks)?;
        for (bit, name) in [
            (KernelEvents::INVOLUNTARY, "preempted"),
            (KernelEvents::VOLUNTARY, "slept"),
            (KernelEvents::MINOR_FAULT, "minor fault"),
            (KernelEvents::MAJOR_FAULT, "major fault"),
        ] {
            if self.events.has_counted(bit) {
                write!(f, ", {name}")?;
            }
        }
        Ok(())
    }
}

impl Gap {
    /// Maximum length of a thread's gap (pause) in a record, in ticks of the clock: 2^50 − 1.
    pub const MAX_TICKS: u64 = (1 << (ID_WIDTH - 8)) - 1;

    /// Encodes the gap as a record of [`Point::Gap`] or [`Point::Slept`], its length in the id.
    pub(crate) const fn words(self, point: Point) -> [u64; 2] {
        let ticks = if self.ticks < Self::MAX_TICKS { self.ticks } else { Self::MAX_TICKS };
        let (low, high) = (ticks & 0xFFFF_FFFF, ticks >> 32);
        let key = ((point as u64) << ID_WIDTH) | (high << 40) | ((self.events.0 as u64) << 32) | low;
        [key, self.ended]
    }

    /// Decodes a thread's gap or sleep from a record; `None` for a record of another point.
    pub const fn from_record(record: &Record) -> Option<Self> {
        if !matches!(record.point, Point::Gap | Point::Slept) {
            return None;
        }
        let word = record.id.word();
        let ticks = (word & 0xFFFF_FFFF) | ((word >> 40) << 32);
        Some(Self { ended: record.value, ticks, events: KernelEvents(record.detail) })
    }
}
