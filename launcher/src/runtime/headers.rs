//! The headers of the segments that strategies can write: whether they are still as the launcher
//! wrote them.
//!
//! Nobody who attaches by the plan reads them, so an overwritten header harms nobody. But no honest
//! strategy writes there: one whose own segment has another header than it was created with is
//! quarantined. Where several write, nobody is blamed; the header is written again.

use protocol::plan::Plan;
use protocol::segments;
use protocol::supervision::ProtocolViolation;
use protocol::topology::Segment;
use shm::memory::AtomicWords;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;

/// A segment that strategies can write.
struct Guarded {
    what: String,
    /// The strategy that alone writes it; `None`: others do too.
    culprit: Option<u16>,
    words: AtomicWords,
    header: [u64; HEADER_WORDS],
}

impl Guarded {
    /// Memory that was taken away reads as zeros, which nobody wrote.
    fn is_forged(&self) -> bool {
        // Relaxed: compared with what never changes; nothing else is read by it.
        let differs =
            self.words.iter().zip(self.header).any(|(word, header)| word.load(Ordering::Relaxed) != header);
        differs && !self.words.is_lost()
    }
}

/// The headers of all segments of a run that strategies can write.
#[derive(Default)]
pub struct Headers(Vec<Guarded>);

impl Headers {
    /// Guards the header of a fresh segment, unless only trusted roles write it.
    pub(super) fn guard(&mut self, plan: &Plan, segment: &Segment, words: &AtomicWords) {
        if segment.is_open_to_strategies() {
            self.0.push(Guarded {
                what: segment.spec.name.clone(),
                culprit: segment.culprit(plan),
                words: words.slice(0, HEADER_WORDS),
                header: segments::header_of(plan, &segment.spec),
            });
        }
    }

    /// What to say of a strategy that has overwritten the header of a segment that it alone writes;
    /// `None`: it has not.
    pub fn forgery(&self, strategy: u16) -> Option<String> {
        let mut own = self.0.iter().filter(|guarded| guarded.culprit == Some(strategy));
        let what = &own.find(|guarded| guarded.is_forged())?.what;
        let why = ProtocolViolation::ForgedHeader;
        Some(format!("quarantined: {why}: it has overwritten the header of {what}"))
    }

    /// Writes the headers again of what a dead strategy alone could write, and of what several
    /// write.
    pub fn restore(&self, strategy: u16) {
        let concerned = |guarded: &&Guarded| guarded.culprit.is_none_or(|culprit| culprit == strategy);
        for guarded in self.0.iter().filter(concerned).filter(|guarded| guarded.is_forged()) {
            for (word, header) in guarded.words.iter().zip(guarded.header) {
                // Relaxed: nobody goes by it; see the module's documentation.
                word.store(header, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Machine;
    use crate::planner::tests::planned;
    use protocol::topology;

    #[test]
    fn an_overwritten_header_is_its_writers_alone() {
        for technique in ["spsc-mux", "array-queue"] {
            let settings = format!("strategies=3 orders=300 isolation=process technique={technique}");
            let (_, plan, _) = planned(&settings, &Machine::default()).unwrap();
            let mut headers = Headers::default();
            let mut all = Vec::new();
            for segment in topology::segments(&plan) {
                let words = segments::on_heap(&plan, &segment.spec).words();
                headers.guard(&plan, &segment, &words);
                all.push((segment, words));
            }
            let found =
                |headers: &Headers| (0..3).map(|of| headers.forgery(of).is_some()).collect::<Vec<_>>();
            assert_eq!(found(&headers), [false; 3]);
            for (segment, words) in &all {
                for word in [0, 3, HEADER_WORDS - 1] {
                    let before = words[word].fetch_xor(1 << 63, Ordering::Relaxed);
                    let culprit = segment.culprit(&plan);
                    let wanted: Vec<bool> = (0..3).map(|strategy| culprit == Some(strategy)).collect();
                    assert_eq!(found(&headers), wanted, "{technique} {} word {word}", segment.spec.name);
                    headers.restore(culprit.unwrap_or(0));
                    let is_guarded = segment.is_open_to_strategies();
                    assert_eq!(words[word].load(Ordering::Relaxed) == before, is_guarded);
                    words[word].store(before, Ordering::Relaxed);
                }
            }
        }
    }
}
