//! The gaps of a thread, and which of them its log keeps: at first all, then only the longer ones, so that the longest have room whatever
//! comes before them.
//!
//! The room is used in four parts. In each only gaps of at least that part's length are kept, and what is shorter is counted with its
//! time: nothing is forgotten without a trace. The first part keeps all that is recorded: a virtual machine's neighbour was seen to take
//! a core away for 11 µs ten thousand times a second, which it bears for six seconds. In the last one a thread that is away for
//! 1.5 ms at a time fills the room only after three seconds of standing still. Nothing kept is ever moved or overwritten, so that a
//! killed thread leaves what it had, and when each part began can be read off the log.
//!
//! *Sleeps*, times in which the thread had given its core away by its idle strategy, are no gaps: nobody took the core from it. Those behind
//! which it had work are kept by the same rule in a room of their own, which the plan has for threads that do not spin. So they push out no
//! gap, however many there are.

use crate::record::{Point, Record};
use crate::wire::ID_WIDTH;
use shm::memory::Words;
use shm::sync::Ordering;

/// Parts of the room.
pub const PARTS: usize = 4;
/// The most gaps that a log holds, all incarnations of its thread together; how much room it has for them: 1 MiB.
pub const MAX_GAPS: u64 = 1 << 16;
/// The most sleeps that a plan may have room for in a log: 4 MiB.
pub const MAX_SLEEPS: u64 = 1 << 18;
/// From which length on each part keeps gaps, in nanoseconds. The first is longer than any duty cycle that finds all its rings in the
/// cache; each further one is eight times as long.
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
const fn ends(room: u64) -> [u64; PARTS] {
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

/// When a log ceased to keep shorter gaps: the time (ticks), and from which length on it kept them from then on (nanoseconds; `None`:
/// none at all). `kept`: its gaps in the order of the log, out of so much room.
pub fn raised(kept: &[Gap], room: u64) -> impl Iterator<Item = (u64, Option<u64>)> + '_ {
    ends(room).into_iter().zip(1..).map_while(|(end, next): (u64, usize)| {
        let last = kept.get(usize::try_from(end.checked_sub(1)?).ok()?)?;
        Some((last.ended, LEAST_NS.get(next).copied()))
    })
}

/// The writing end of a room: how much of it is used, and what had none. Both stand in the thread's status block too, of all its
/// incarnations.
pub(crate) struct Keeper {
    room: u64,
    /// Kept so far.
    pub kept: u64,
    /// Kept, plus one.
    counted: Words,
    /// Not kept: how many, and their time.
    dropped: Words,
}

impl Keeper {
    /// A room with what earlier incarnations of the thread have kept in it: what the status block says, or else the `count` of the log.
    pub fn new(room: u64, [dropped, counted]: [Words; 2], count: impl FnOnce() -> u64) -> Self {
        // Relaxed: a dead predecessor's, whose death is certain. It says no more than that some room is used up.
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
            // Before the record: who dies between them has one room less, not one too many. Relaxed: our own word.
            self.counted[0].store(self.kept + 1, Ordering::Relaxed);
        }
        is_kept
    }
}

/// A time in which a thread began no duty cycle: its own work, somebody else on its core; or a *sleep*, its idling.
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

    /// The words of its record, of [`Point::Gap`] or [`Point::Slept`]: the length stands where strategy, epoch and sequence of an order do.
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::record::RECORD_WORDS;
    use crate::stamps::StampLog;
    use crate::status::{self, LOG_OFFSET};
    use proptest::prelude::*;
    use shm::memory::Region;
    use shm::sync::Ordering;

    /// What keeps gaps; nanoseconds for ticks.
    type Offer = fn(&mut StampLog, u64, u64);

    fn ours(log: &mut StampLog, ended: u64, ticks: u64) {
        log.offer_gap(ended, ticks, &LEAST_NS, || Switches(0));
    }

    /// Broken: the room is for whoever comes first, whatever its length.
    fn first_come(log: &mut StampLog, ended: u64, ticks: u64) {
        log.append_gap(Gap { ended, ticks, switches: Switches(0) });
    }

    /// Broken: keeps the short ones and has no room for the long.
    fn drops_the_longest(log: &mut StampLog, ended: u64, ticks: u64) {
        log.offer_gap(ended, ticks, &[0; PARTS], || Switches(0));
    }

    const SLEEPS: u64 = 30_000;

    /// Sleeps in a room of their own.
    fn sleeps(log: &mut StampLog, ended: u64, ticks: u64) {
        log.offer_sleep(ended, ticks, &LEAST_NS);
    }

    /// Gaps of all lengths, short ones far more often: when each ended, and how long it was.
    fn gaps(seed: u64, count: usize) -> Vec<(u64, u64)> {
        let (mut state, mut at) = (seed | 1, 0);
        let mut draw = move || {
            // Marsaglia's xorshift.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let gap = |_| {
            // Pareto: of 10,000 gaps one is a hundred times as long as what one of a hundred reaches.
            let ticks = (3_000.0 / (1.0 - draw()).max(1e-6)) as u64;
            at += ticks + (draw() * 20_000.0) as u64;
            (at, ticks)
        };
        (0..count).map(gap).collect()
    }

    /// A log with room for both, and one to spare.
    fn log() -> (Words, StampLog) {
        let records = (MAX_GAPS + SLEEPS) as usize + 1;
        let segment = Region::heap(LOG_OFFSET + records * RECORD_WORDS).words();
        let log = StampLog::new(&segment).keeping(SLEEPS);
        (segment, log)
    }

    /// What a log has of that point.
    fn kept(segment: &Words, point: Point) -> Vec<Gap> {
        let words = segment[LOG_OFFSET..].chunks_exact(RECORD_WORDS);
        let records = words.map_while(|words| {
            Record::from_words(words[0].load(Ordering::Relaxed), words[1].load(Ordering::Relaxed))
        });
        records.filter(|record| record.point == point).filter_map(|record| Gap::of(&record)).collect()
    }

    /// What is wrong with what a log kept of these gaps.
    fn wrong(offered: &[(u64, u64)], offer: Offer) -> Option<String> {
        wrong_of(Point::Gap, offered, offer)
    }

    /// The same of gaps or of sleeps.
    fn wrong_of(point: Point, offered: &[(u64, u64)], offer: Offer) -> Option<String> {
        let (segment, mut log) = log();
        offered.iter().for_each(|(ended, ticks)| offer(&mut log, *ended, *ticks));
        let kept = kept(&segment, point);
        let (room, place) = if point == Point::Gap { (MAX_GAPS, 0) } else { (SLEEPS, 1) };
        if kept.len() as u64 > room || log.dropped() > 0 {
            return Some("more than there is room for".into());
        }
        let Dropped { count, ticks } = status::read(&segment.clone().into()).dropped_gaps(SLEEPS)[place];
        let all: u64 = offered.iter().map(|(_, ticks)| ticks).sum();
        let found: u64 = kept.iter().map(|gap| gap.ticks).sum();
        if (kept.len() as u64 + count, found + ticks) != (offered.len() as u64, all) {
            return Some(format!("{} kept and {count} dropped of {}", kept.len(), offered.len()));
        }
        // What a reader says of it: from when on nothing below which length was kept.
        let least = |ended: u64| {
            raised(&kept, room)
                .take_while(|(since, _)| *since < ended)
                .last()
                .map_or(Some(LEAST_NS[0]), |last| last.1)
        };
        let has = |ended: u64| kept.binary_search_by_key(&ended, |gap| gap.ended).is_ok();
        let lost = offered
            .iter()
            .find(|(ended, ticks)| least(*ended).is_some_and(|least| *ticks >= least) != has(*ended));
        if let Some((ended, ticks)) = lost {
            return Some(format!("a gap of {ticks} at {ended}: kept is {}", has(*ended)));
        }
        let longest = offered.iter().map(|(_, ticks)| *ticks).max();
        (longest > kept.iter().map(|gap| gap.ticks).max()).then(|| "the longest is not there".into())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 48 }))]

        #[test]
        fn the_longest_are_kept_and_the_rest_is_counted(seed in any::<u64>(), count in 0_usize..300_000) {
            let count = if cfg!(miri) { count / 250 } else { count };
            prop_assert_eq!(wrong(&gaps(seed, count), ours), None);
            prop_assert_eq!(wrong_of(Point::Slept, &gaps(seed, count), sleeps), None);
        }
    }

    /// What is kept of gaps among which there are sleeps, a hundred of them for each.
    fn among_sleeps(offered: &[(u64, u64)], sleep: Offer) -> Vec<Gap> {
        let (segment, mut log) = log();
        for (ended, ticks) in offered {
            (0..100).for_each(|_| sleep(&mut log, *ended, 50_000));
            ours(&mut log, *ended, *ticks);
        }
        kept(&segment, Point::Gap)
    }

    #[test]
    #[cfg_attr(miri, ignore = "many gaps")]
    fn sleeps_push_out_no_gap() {
        let gaps = gaps(7, 2_000);
        let all: Vec<Gap> = gaps
            .iter()
            .map(|(ended, ticks)| Gap { ended: *ended, ticks: *ticks, switches: Switches(0) })
            .collect();
        assert_eq!(among_sleeps(&gaps, sleeps), all);
        // Broken: what a thread does itself is kept as what is done to it.
        let mixed = among_sleeps(&gaps, ours);
        assert!(all.iter().any(|gap| !mixed.contains(gap)));
    }

    #[test]
    fn who_has_no_room_for_sleeps_says_nothing_of_them() {
        let segment = Region::heap(LOG_OFFSET + 4 * RECORD_WORDS).words();
        let mut log = StampLog::new(&segment);
        sleeps(&mut log, 9, 1 << 30);
        log.offer_gap(10, 5_000, &LEAST_NS, || Switches(0));
        let status = status::read(&segment.clone().into());
        assert_eq!(kept(&segment, Point::Slept).len() + kept(&segment, Point::Gap).len(), 1);
        assert_eq!(status.dropped_gaps(0), [Dropped::default(); 2]);
        // An earlier build counted gaps in four parts: all of them are gaps'.
        let at = status::GAPS.start;
        (0..8).for_each(|word| segment[at + word].store(word as u64 + 1, Ordering::Relaxed));
        let [gaps, sleeps] = status::read(&segment.clone().into()).dropped_gaps(0);
        assert_eq!((gaps.count, gaps.ticks, sleeps.count), (1 + 3 + 5 + 7, 2 + 4 + 6 + 8, 0));
    }

    #[test]
    fn a_room_keeps_what_it_is_for() {
        for sleeps in [0, 1, 57, 58, 1_000, 100_003, 1 << 40] {
            assert!(part(sleeps, room_for(sleeps)) == 0, "{sleeps}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "many gaps")]
    fn a_log_that_drops_the_longest_is_found() {
        let gaps = gaps(5, 200_000);
        assert_eq!(wrong(&gaps, ours), None);
        for broken in [first_come as Offer, drops_the_longest] {
            assert!(wrong(&gaps, broken).is_some());
        }
    }

    #[test]
    fn parts_follow_each_other() {
        assert_eq!(ends(MAX_GAPS), [59_392, 61_440, 63_488, 65_536]);
        let of = [0, 59_391, 59_392, MAX_GAPS - 1, MAX_GAPS, u64::MAX].map(|kept| part(kept, MAX_GAPS));
        assert_eq!(of, [0, 0, 1, PARTS - 1, PARTS, PARTS]);
        assert_eq!((part(0, 0), ends(u64::MAX)[PARTS - 1]), (PARTS, u64::MAX));
    }
}
