//! Detects and repairs overwritten segment headers in memory that strategies can write.
//!
//! Processes attach by the plan and do not read headers, so an overwritten header causes no harm.
//! But no correct strategy writes there: a strategy that has overwritten the header of its own
//! segment is quarantined. Where several strategies can write, none is blamed, and the header is
//! restored.

use protocol::index::StrategyIndex;
use protocol::plan::Plan;
use protocol::segments;
use protocol::supervision::ProtocolViolation;
use protocol::topology::RunSegment;
use shm::memory::AtomicWords;
use shm::memory::header::HEADER_WORDS;
use shm::sync::Ordering;

/// The header of a segment that strategies can write.
struct GuardedHeader {
    what: String,
    /// The only strategy that can write it; `None` if several can.
    culprit: Option<StrategyIndex>,
    words: AtomicWords,
    header: [u64; HEADER_WORDS],
}

impl GuardedHeader {
    /// Memory that was taken away reads as zeros, which no process wrote.
    fn is_forged(&self) -> bool {
        // Relaxed: compared with what never changes; nothing else is read by it.
        let differs =
            self.words.iter().zip(self.header).any(|(word, header)| word.load(Ordering::Relaxed) != header);
        differs && !self.words.is_lost()
    }
}

/// The planned headers of all segments that strategies can write, from which overwritten headers
/// are detected and restored.
#[derive(Default)]
pub struct SegmentHeaders(Vec<GuardedHeader>);

impl SegmentHeaders {
    /// Adds a new segment's planned header to those that are checked for overwriting, unless only
    /// trusted roles write the segment.
    pub fn guard(&mut self, plan: &Plan, segment: &RunSegment, words: &AtomicWords) {
        if segment.is_writable_by_isolated() {
            self.0.push(GuardedHeader {
                what: segment.spec.name.clone(),
                culprit: segment.sole_strategy_writer(plan),
                words: words.slice(0, HEADER_WORDS),
                header: segments::header_of(plan, &segment.spec),
            });
        }
    }

    /// Returns the reason to quarantine this strategy if it has overwritten a header that only it
    /// can write; `None` otherwise.
    pub fn forged_by(&self, strategy: StrategyIndex) -> Option<String> {
        let mut own = self.0.iter().filter(|guarded| guarded.culprit == Some(strategy));
        let what = &own.find(|guarded| guarded.is_forged())?.what;
        let why = ProtocolViolation::ForgedHeader;
        Some(format!("quarantined: {why}: it has overwritten the header of {what}"))
    }

    /// Restores the overwritten headers of segments that only this dead strategy, or several
    /// strategies, could write.
    pub fn restore(&self, strategy: StrategyIndex) {
        let concerned = |guarded: &&GuardedHeader| guarded.culprit.is_none_or(|culprit| culprit == strategy);
        for guarded in self.0.iter().filter(concerned).filter(|guarded| guarded.is_forged()) {
            for (word, header) in guarded.words.iter().zip(guarded.header) {
                // Relaxed: no process depends on it; see the module's documentation.
                word.store(header, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planner::fixtures::planned;
    use planner::host::Machine;
    use protocol::index::StrategyIndex;
    use protocol::topology;

    #[test]
    fn an_overwritten_header_is_its_writers_alone() {
        for technique in ["spsc-mux", "array-queue"] {
            let settings = format!("strategies=3 orders=300 isolation=process technique={technique}");
            let (_, plan, _) = planned(&settings, &Machine::default()).unwrap();
            let mut headers = SegmentHeaders::default();
            let mut all = Vec::new();
            for segment in topology::segments(&plan) {
                let words = segments::heap_segment(&plan, &segment.spec).words();
                headers.guard(&plan, &segment, &words);
                all.push((segment, words));
            }
            let found = |headers: &SegmentHeaders| {
                (0..3).map(|of| headers.forged_by(StrategyIndex(of)).is_some()).collect::<Vec<_>>()
            };
            assert_eq!(found(&headers), [false; 3]);
            for (segment, words) in &all {
                for word in [0, 3, HEADER_WORDS - 1] {
                    let before = words[word].fetch_xor(1 << 63, Ordering::Relaxed);
                    let culprit = segment.sole_strategy_writer(&plan);
                    let wanted: Vec<bool> =
                        StrategyIndex::first(3).map(|strategy| culprit == Some(strategy)).collect();
                    assert_eq!(found(&headers), wanted, "{technique} {} word {word}", segment.spec.name);
                    headers.restore(culprit.unwrap_or(StrategyIndex(0)));
                    let is_guarded = segment.is_writable_by_isolated();
                    assert_eq!(words[word].load(Ordering::Relaxed) == before, is_guarded);
                    words[word].store(before, Ordering::Relaxed);
                }
            }
        }
    }
}
