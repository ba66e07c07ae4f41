//! Which gaps of a thread its log keeps: at first all of them, then only the longer ones, so that the longest have room whatever
//! comes before them.
//!
//! The room is used in four parts. In each only gaps of at least that part's length are kept, and what is shorter is counted with its
//! time: nothing is forgotten without a trace. The first part keeps all that is recorded: a virtual machine's neighbour was seen to take
//! a core away for 11 µs ten thousand times a second, which it bears for six seconds. In the last one a thread that is away for
//! 1.5 ms at a time fills the room only after three seconds of standing still. Nothing kept is ever moved or overwritten, so that a
//! killed thread leaves what it had, and when each part began can be read off the log.

use crate::record::Gap;

/// Parts of the room.
pub const PARTS: usize = 4;
/// The most gaps that a log holds, all incarnations of its thread together; how much room it has for them: 1 MiB.
pub const MAX_GAPS: u64 = ENDS[PARTS - 1];
/// Where each part of the room ends.
const ENDS: [u64; PARTS] = [59_392, 61_440, 63_488, 65_536];
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

/// The part that is filled when so many gaps have been kept; [`PARTS`]: the room is used up.
pub const fn part(kept: u64) -> usize {
    let mut part = 0;
    while part < PARTS && kept >= ENDS[part] {
        part += 1;
    }
    part
}

/// When a log ceased to keep shorter gaps: the time (ticks), and from which length on it kept them from then on (nanoseconds; `None`:
/// none at all). `kept`: its gaps in the order of the log.
pub fn raised(kept: &[Gap]) -> impl Iterator<Item = (u64, Option<u64>)> + '_ {
    ENDS.into_iter().zip(1..).map_while(|(end, next): (u64, usize)| {
        let last = kept.get(end as usize - 1)?;
        Some((last.ended, LEAST_NS.get(next).copied()))
    })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::record::{RECORD_WORDS, Record, Switches};
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

    /// What is wrong with what a log kept of these gaps.
    fn wrong(offered: &[(u64, u64)], offer: Offer) -> Option<String> {
        let segment = Region::heap(LOG_OFFSET + (MAX_GAPS as usize + 1) * RECORD_WORDS).words();
        let mut log = StampLog::new(&segment);
        offered.iter().for_each(|(ended, ticks)| offer(&mut log, *ended, *ticks));
        let word = |at: usize| segment[LOG_OFFSET + at].load(Ordering::Relaxed);
        let records = (0..=MAX_GAPS as usize).map(|record| record * RECORD_WORDS);
        let kept: Vec<Gap> =
            records.filter_map(|at| Gap::of(&Record::from_words(word(at), word(at + 1))?)).collect();
        if kept.len() as u64 > MAX_GAPS || log.dropped() > 0 {
            return Some("more than there is room for".into());
        }
        let dropped = status::read(&segment.clone().into()).dropped_gaps();
        let (count, ticks) =
            dropped.iter().fold((0, 0), |sum, part| (sum.0 + part.count, sum.1 + part.ticks));
        let all: u64 = offered.iter().map(|(_, ticks)| ticks).sum();
        let found: u64 = kept.iter().map(|gap| gap.ticks).sum();
        if (kept.len() as u64 + count, found + ticks) != (offered.len() as u64, all) {
            return Some(format!("{} kept and {count} dropped of {}", kept.len(), offered.len()));
        }
        // What a reader says of it: from when on nothing below which length was kept.
        let least = |ended: u64| {
            raised(&kept)
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
        let of = [0, ENDS[0] - 1, ENDS[0], MAX_GAPS - 1, MAX_GAPS, u64::MAX].map(part);
        assert_eq!(of, [0, 0, 1, PARTS - 1, PARTS, PARTS]);
    }
}
