//! Tests of the gaps and sleeps that a thread's log keeps.

use crate::gaps::*;
use crate::record::{Point, RECORD_WORDS, Record};
use crate::stamps::StampLog;
use crate::status::{self, LOG_OFFSET};
use proptest::prelude::*;
use shm::memory::{AtomicWords, Region};
use shm::random::SplitMix64;
use shm::sync::Ordering;

/// A function that offers a gap to a log; ticks are nanoseconds.
type Offer = fn(&mut StampLog, u64, u64);

fn ours(log: &mut StampLog, ended: u64, ticks: u64) {
    log.offer_gap(ended, ticks, &MIN_NS, || KernelEvents(0));
}

/// Faulty: keeps the first gaps, of any length.
fn first_come(log: &mut StampLog, ended: u64, ticks: u64) {
    log.append_gap(Gap { ended, ticks, events: KernelEvents(0) });
}

/// Faulty: keeps the short gaps and drops the long ones.
fn drops_the_longest(log: &mut StampLog, ended: u64, ticks: u64) {
    log.offer_gap(ended, ticks, &[0; LEVELS], || KernelEvents(0));
}

const SLEEPS: u64 = 30_000;

/// Sleeps, with their own capacity.
fn sleeps(log: &mut StampLog, ended: u64, ticks: u64) {
    log.offer_sleep(ended, ticks, &MIN_NS);
}

/// Makes gaps of all lengths, short ones far more often: end and length of each.
fn gaps(seed: u64, count: usize) -> Vec<(u64, u64)> {
    let (mut random, mut at) = (SplitMix64(seed), 0);
    let gap = |_| {
        // Pareto: the longest of 10,000 gaps is a hundred times as long as the longest of a
        // hundred.
        let ticks = (3_000.0 / (1.0 - random.share()).max(1e-6)) as u64;
        at += ticks + (random.share() * 20_000.0) as u64;
        (at, ticks)
    };
    (0..count).map(gap).collect()
}

/// A log with capacity for both, and one more record.
fn log() -> (AtomicWords, StampLog) {
    let records = (MAX_GAPS + SLEEPS) as usize + 1;
    let segment = Region::heap(LOG_OFFSET + records * RECORD_WORDS).words();
    let log = StampLog::new(&segment).with_sleep_records(SLEEPS);
    (segment, log)
}

fn logged_gaps(segment: &AtomicWords, point: Point) -> Vec<Gap> {
    let words = segment[LOG_OFFSET..].chunks_exact(RECORD_WORDS);
    let records = words.map_while(|words| {
        Record::from_words(words[0].load(Ordering::Relaxed), words[1].load(Ordering::Relaxed))
    });
    records.filter(|record| record.point == point).filter_map(|record| Gap::from_record(&record)).collect()
}

/// Returns the violations of the rule in what a log kept of these gaps.
fn wrong(offered: &[(u64, u64)], offer: Offer) -> Option<String> {
    wrong_of(Point::Gap, offered, offer)
}

/// As `wrong`, for gaps or for sleeps.
fn wrong_of(point: Point, offered: &[(u64, u64)], offer: Offer) -> Option<String> {
    let (segment, mut log) = log();
    offered.iter().for_each(|(ended, ticks)| offer(&mut log, *ended, *ticks));
    let logged_gaps = logged_gaps(&segment, point);
    let (capacity, kind_index) = if point == Point::Gap { (MAX_GAPS, 0) } else { (SLEEPS, 1) };
    if logged_gaps.len() as u64 > capacity || log.dropped() > 0 {
        return Some("more than there is room for".into());
    }
    let DroppedGaps { count, ticks } = status::read(&segment.clone().into()).dropped_gaps(SLEEPS)[kind_index];
    let all: u64 = offered.iter().map(|(_, ticks)| ticks).sum();
    let found: u64 = logged_gaps.iter().map(|gap| gap.ticks).sum();
    if (logged_gaps.len() as u64 + count, found + ticks) != (offered.len() as u64, all) {
        return Some(format!("{} kept and {count} dropped of {}", logged_gaps.len(), offered.len()));
    }
    // A reader's view: when the minimum length was raised, and to which value.
    let threshold_at = |ended: u64| {
        threshold_changes(&logged_gaps, capacity)
            .take_while(|(since, _)| *since < ended)
            .last()
            .map_or(Some(MIN_NS[0]), |last| last.1)
    };
    let has = |ended: u64| logged_gaps.binary_search_by_key(&ended, |gap| gap.ended).is_ok();
    let lost = offered
        .iter()
        .find(|(ended, ticks)| threshold_at(*ended).is_some_and(|min| *ticks >= min) != has(*ended));
    if let Some((ended, ticks)) = lost {
        return Some(format!("a gap of {ticks} at {ended}: kept is {}", has(*ended)));
    }
    let longest = offered.iter().map(|(_, ticks)| *ticks).max();
    (longest > logged_gaps.iter().map(|gap| gap.ticks).max()).then(|| "the longest is not there".into())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 1 } else { 48 }))]

    #[test]
    fn longest_gaps_are_kept_and_others_counted(seed in any::<u64>(), count in 0_usize..300_000) {
        let count = if cfg!(miri) { count / 250 } else { count };
        prop_assert_eq!(wrong(&gaps(seed, count), ours), None);
        prop_assert_eq!(wrong_of(Point::Slept, &gaps(seed, count), sleeps), None);
    }
}

/// Returns the gaps that are kept among a hundred times as many sleeps.
fn among_sleeps(offered: &[(u64, u64)], sleep: Offer) -> Vec<Gap> {
    let (segment, mut log) = log();
    for (ended, ticks) in offered {
        (0..100).for_each(|_| sleep(&mut log, *ended, 50_000));
        ours(&mut log, *ended, *ticks);
    }
    logged_gaps(&segment, Point::Gap)
}

#[test]
#[cfg_attr(miri, ignore = "many gaps")]
fn sleeps_never_displace_gaps() {
    let gaps = gaps(7, 2_000);
    let all: Vec<Gap> = gaps
        .iter()
        .map(|(ended, ticks)| Gap { ended: *ended, ticks: *ticks, events: KernelEvents(0) })
        .collect();
    assert_eq!(among_sleeps(&gaps, sleeps), all);
    // Faulty: sleeps are kept like gaps.
    let mixed = among_sleeps(&gaps, ours);
    assert!(all.iter().any(|gap| !mixed.contains(gap)));
}

#[test]
fn log_without_sleep_capacity_records_no_sleeps() {
    let segment = Region::heap(LOG_OFFSET + 4 * RECORD_WORDS).words();
    let mut log = StampLog::new(&segment);
    sleeps(&mut log, 9, 1 << 30);
    log.offer_gap(10, 5_000, &MIN_NS, || KernelEvents(0));
    let status = status::read(&segment.clone().into());
    assert_eq!(logged_gaps(&segment, Point::Slept).len() + logged_gaps(&segment, Point::Gap).len(), 1);
    assert_eq!(status.dropped_gaps(0), [DroppedGaps::default(); 2]);
    // An earlier build counted gaps in four parts: all words belong to gaps.
    let at = status::GAPS.start;
    (0..8).for_each(|word| segment[at + word].store(word as u64 + 1, Ordering::Relaxed));
    let [gaps, sleeps] = status::read(&segment.clone().into()).dropped_gaps(0);
    assert_eq!((gaps.count, gaps.ticks, sleeps.count), (1 + 3 + 5 + 7, 2 + 4 + 6 + 8, 0));
}

#[test]
fn capacity_for_n_gaps_keeps_n_gaps() {
    for sleeps in [0, 1, 57, 58, 1_000, 100_003, 1 << 40] {
        assert!(level(sleeps, capacity_for(sleeps)) == 0, "{sleeps}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "many gaps")]
fn log_that_drops_longest_gaps_is_detected() {
    let gaps = gaps(5, 200_000);
    assert_eq!(wrong(&gaps, ours), None);
    for broken in [first_come as Offer, drops_the_longest] {
        assert!(wrong(&gaps, broken).is_some());
    }
}

#[test]
fn levels_are_ascending_and_fill_capacity() {
    assert_eq!(level_ends(MAX_GAPS), [59_392, 61_440, 63_488, 65_536]);
    let of = [0, 59_391, 59_392, MAX_GAPS - 1, MAX_GAPS, u64::MAX].map(|kept| level(kept, MAX_GAPS));
    assert_eq!(of, [0, 0, 1, LEVELS - 1, LEVELS, LEVELS]);
    assert_eq!((level(0, 0), level_ends(u64::MAX)[LEVELS - 1]), (LEVELS, u64::MAX));
}
