//! Faults in the strategy's own process: scribbling and forged headers.

use protocol::faults::Draws;
use protocol::plan::FaultKind;
use roles::faults::own::{FaultContext, perform, scribble_once};
use roles::faults::resources::Surroundings;
use shm::memory::header::HEADER_WORDS;
use shm::memory::{AtomicWords, Region};
use shm::sync::Ordering;

#[test]
fn scribbler_reaches_all_of_every_region() {
    let writable: Vec<AtomicWords> = [70, 1000, 64].map(|words| Region::heap(words).words()).into();
    let mut draws = Draws::new(1, Draws::SCRIBBLES);
    for _ in 0..100_000 {
        scribble_once(&writable, &mut draws);
    }
    for words in &writable {
        let touched = |word: &&shm::sync::AtomicU64| word.load(Ordering::Relaxed) != 0;
        let touched_count = words.iter().filter(touched).count();
        assert!(touched_count > words.len() / 2, "{touched_count} of {}", words.len());
    }
    scribble_once(&[], &mut draws);
}

#[test]
fn forging_overwrites_headers_only() {
    let words = Region::heap(64).words();
    let mut context = FaultContext::new(1, false, Surroundings::default());
    context.writable = vec![words.clone()];
    perform(FaultKind::ForgeHeader, &mut context);
    let is_forged = words.iter().map(|word| word.load(Ordering::Relaxed) == u64::MAX);
    assert!(is_forged.eq((0..64).map(|offset| offset < HEADER_WORDS)));
}
