//! The gaps of a thread, and which of them its log keeps: at first all, then only the longer ones,
//! so that the longest have room whatever comes before them.
//!
//! The room is used in four parts. In each only gaps of at least that part's length are kept, and
//! what is shorter is counted with its time: nothing is forgotten without a trace. The first part
//! keeps all that is recorded: a virtual machine's neighbour was seen to take a core away for 11 µs
//! ten thousand times a second, which it bears for six seconds. In the last one a thread that is
//! away for 1.5 ms at a time fills the room only after three seconds of standing still. Nothing
//! kept is ever moved or overwritten, so that a killed thread leaves what it had, and when each
//! part began can be read off the log.
//!
//! *Sleeps*, times in which the thread had given its core away by its idle strategy, are no gaps:
//! nobody took the core from it. Those behind which it had work are kept by the same rule in a room
//! of their own, which the plan has for threads that do not spin. So they push out no gap, however
//! many there are.

use crate::record::{Point, Record};
use crate::wire::ID_WIDTH;
use shm::memory::AtomicWords;
use shm::sync::Ordering;

/// Parts of the room.
pub const PARTS: usize = 4;
/// The most gaps that a log holds, all incarnations of its thread together; how much room it has
/// for them: 1 MiB.
pub const MAX_GAPS: u64 = 1 << 16;
/// The most sleeps that a plan may have room for in a log: 4 MiB.
pub const MAX_SLEEPS: u64 = 1 << 18;
/// From which length on each part keeps gaps, in nanoseconds. The first is longer than any duty
/// cycle that finds all its rings in the cache; each further one is eight times as long.
pub const LEAST_NS: [u64; PARTS] = [3_000, 24_000, 192_000, 1_536_000];

/// Gaps that a log did not keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// How many.
    pub count: u64,
    /// How long they were together, in ticks.
    pub ticks: u64,
}

/// Where each part of a room ends: the first has nine tenths of it.
pub(crate) const fn ends(room: u64) -> [u64; PARTS] {
    const SIXTY_FOURTHS: [u64; PARTS] = [58, 60, 62, 64];
    let mut ends = [0; PARTS];
    let mut part = 0;
    while part < PARTS {
        ends[part] = room / 64 * SIXTY_FOURTHS[part] + room % 64 * SIXTY_FOURTHS[part] / 64;
        part += 1;
    }
    ends
}

/// How much room keeps all of so many gaps: they are its first part.
pub const fn room_for(gaps: u64) -> u64 {
    gaps.saturating_add(gaps / 58 * 6).saturating_add(8)
}

/// The part that is filled when so many have been kept; [`PARTS`]: the room is used up.
pub const fn part(kept: u64, room: u64) -> usize {
    let ends = ends(room);
    let mut part = 0;
    while part < PARTS && kept >= ends[part] {
        part += 1;
    }
    part
}

/// When a log ceased to keep shorter gaps: the time (ticks), and from which length on it kept them
/// from then on (nanoseconds; `None`: none at all). `kept`: its gaps in the order of the log, out
/// of so much room.
pub fn raised(kept: &[Gap], room: u64) -> impl Iterator<Item = (u64, Option<u64>)> + '_ {
    ends(room).into_iter().zip(1..).map_while(|(end, next): (u64, usize)| {
        let last = kept.get(usize::try_from(end.checked_sub(1)?).ok()?)?;
        Some((last.ended, LEAST_NS.get(next).copied()))
    })
}

/// The writing end of a room: how much of it is used, and what had none. Both stand in the thread's
/// status block too, of all its incarnations.
pub(crate) struct Keeper {
    room: u64,
    /// Kept so far.
    pub kept: u64,
    /// Kept, plus one.
    counted: AtomicWords,
    /// Not kept: how many, and their time.
    dropped: AtomicWords,
}

impl Keeper {
    /// A room with what earlier incarnations of the thread have kept in it: what the status block
    /// says, or else the `count` of the log.
    pub fn new(room: u64, [dropped, counted]: [AtomicWords; 2], count: impl FnOnce() -> u64) -> Self {
        // Relaxed: a dead predecessor's, whose death is certain. It says no more than that some
        // room is used up.
        let kept = match counted[0].load(Ordering::Relaxed) {
            0 => count(),
            kept => kept - 1,
        };
        Self { room: 0, kept, counted, dropped }.with_room(room)
    }

    /// The same with so much room. Who has none says nothing.
    #[must_use]
    pub fn with_room(self, room: u64) -> Self {
        if room > 0 {
            self.counted[0].store(self.kept.saturating_add(1), Ordering::Relaxed);
        }
        Self { room, ..self }
    }

    /// Whether one of that length is kept; counts it if not. `least`: [`LEAST_NS`] in ticks.
    pub fn takes(&mut self, ticks: u64, least: &[u64; PARTS]) -> bool {
        let is_kept = least.get(part(self.kept, self.room)).is_some_and(|least| ticks >= *least);
        if !is_kept && self.room > 0 {
            for (word, by) in self.dropped.iter().zip([1, ticks]) {
                // Relaxed: our own words, for whoever reads the status.
                word.store(word.load(Ordering::Relaxed).saturating_add(by), Ordering::Relaxed);
            }
        }
        is_kept
    }

    /// Takes room for one; `false`: there is none.
    pub fn keep(&mut self) -> bool {
        let is_kept = self.kept < self.room;
        if is_kept {
            self.kept += 1;
            // Before the record: who dies between them has one room less, not one too many.
            // Relaxed: our own word.
            self.counted[0].store(self.kept + 1, Ordering::Relaxed);
        }
        is_kept
    }
}

/// A time in which a thread began no duty cycle: its own work, somebody else on its core; or a *sleep*,
/// its idling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// When it ended, in ticks.
    pub ended: u64,
    /// How long it was, in ticks; [`Gap::LONGEST`] and more are that.
    pub ticks: u64,
    /// What the kernel counted for the thread since the last gap that was kept; of a sleep nothing.
    pub switches: Switches,
}

/// What the kernel counted for a thread, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches(pub u8);

impl Switches {
    /// The kernel took the core away.
    pub const INVOLUNTARY: u8 = 1;
    /// The thread gave the core away: it slept or yielded.
    pub const VOLUNTARY: u8 = 2;
    /// A page fault that was served from memory.
    pub const MINOR_FAULT: u8 = 4;
    /// A page fault that read from a device.
    pub const MAJOR_FAULT: u8 = 8;

    /// Whether that was counted.
    pub const fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }
}

impl core::fmt::Display for Gap {
    /// `7000 ticks, preempted`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} ticks", self.ticks)?;
        for (bit, name) in [
            (Switches::INVOLUNTARY, "preempted"),
            (Switches::VOLUNTARY, "slept"),
            (Switches::MINOR_FAULT, "minor fault"),
            (Switches::MAJOR_FAULT, "major fault"),
        ] {
            if self.switches.has(bit) {
                write!(f, ", {name}")?;
            }
        }
        Ok(())
    }
}

impl Gap {
    /// The longest that a record holds, in ticks: 2^50 − 1, far beyond any run.
    pub const LONGEST: u64 = (1 << (ID_WIDTH - 8)) - 1;

    /// The words of its record, of [`Point::Gap`] or [`Point::Slept`]: the length stands where
    /// strategy, epoch and sequence of an order do.
    pub(crate) const fn words(self, point: Point) -> [u64; 2] {
        let ticks = if self.ticks < Self::LONGEST { self.ticks } else { Self::LONGEST };
        let (low, high) = (ticks & 0xFFFF_FFFF, ticks >> 32);
        let key = ((point as u64) << ID_WIDTH) | (high << 40) | ((self.switches.0 as u64) << 32) | low;
        [key, self.ended]
    }

    /// The gap or the sleep of a record, as its point says; `None` if it is of something else.
    pub const fn of(record: &Record) -> Option<Self> {
        if !matches!(record.point, Point::Gap | Point::Slept) {
            return None;
        }
        let word = record.id.word();
        let ticks = (word & 0xFFFF_FFFF) | ((word >> 40) << 32);
        Some(Self { ended: record.value, ticks, switches: Switches(record.detail) })
    }
}
