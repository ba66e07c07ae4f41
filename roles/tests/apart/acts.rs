//! What a strategy does to itself: memory that it writes over, floods and leaks.

use protocol::plan::FaultKind;
use roles::faults::Draws;
use roles::faults::own::{Means, act, scribble_once};
use roles::faults::takings::Place;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, Region};
use shm::sync::Ordering;

#[test]
fn a_scribbler_reaches_every_region_its_head_and_its_end() {
    let writable: Vec<AtomicWords> = [70, 1000, 64].map(|words| Region::heap(words).words()).into();
    let mut draws = Draws::new(1, Draws::SCRIBBLES);
    for _ in 0..100_000 {
        scribble_once(&writable, &mut draws);
    }
    for words in &writable {
        let touched = |word: &&shm::sync::AtomicU64| word.load(Ordering::Relaxed) != 0;
        let all = words.iter().filter(touched).count();
        assert!(all > words.len() / 2, "{all} of {}", words.len());
    }
    scribble_once(&[], &mut draws);
}

#[test]
fn forged_headers_are_all_of_a_header_and_nothing_else() {
    let words = Region::heap(64).words();
    let mut means = Means::new(1, false, Place::default());
    means.writable = vec![words.clone()];
    act(FaultKind::ForgeHeader, &mut means);
    let is_forged = words.iter().map(|word| word.load(Ordering::Relaxed) == u64::MAX);
    assert!(is_forged.eq((0..64).map(|place| place < HEADER_WORDS)));
}

#[test]
fn a_leak_is_nothing_until_it_begins() {
    let mut means = Means::new(0, false, Place::default());
    means.leak();
    act(FaultKind::Flood, &mut means);
    assert!(means.floods && !means.leaks);
    act(FaultKind::Leak, &mut means);
    means.leak();
    assert!(means.leaks);
}
