//! Reads from the engine's stamp log which kill switches are on, and what turned them on.

use crate::active_view::SegmentFile;
use protocol::kill::{KillCause, KillSwitch, Scope};
use protocol::record::{Point, RECORD_WORDS, Record};
use protocol::status::LOG_OFFSET;
use std::collections::BTreeMap;
use std::io;

const BATCH: usize = 4_096;

/// The kill switches of a run that are on, as read from the engine's log up to an index.
#[derive(Default)]
pub struct KillSwitchTracker {
    /// Index of the next record to be read.
    next: usize,
    on: BTreeMap<Scope, KillCause>,
}

impl KillSwitchTracker {
    /// Reads the records that the engine has logged since the last call, and updates the kill
    /// switches from them. Invalid ones are skipped.
    pub fn read_new_records(&mut self, log: &SegmentFile) -> io::Result<()> {
        let capacity = log.len()?.saturating_sub(LOG_OFFSET) / RECORD_WORDS;
        while self.next < capacity {
            let mut words = vec![0; BATCH.min(capacity - self.next) * RECORD_WORDS];
            log.read(LOG_OFFSET + self.next * RECORD_WORDS, &mut words)?;
            for record in words.chunks_exact(RECORD_WORDS) {
                // The end: the first word of a record is not 0.
                if record[0] == 0 {
                    return Ok(());
                }
                self.next += 1;
                let record = Record::from_words(record[0], record[1]);
                let switch = record.filter(|record| record.point == Point::KillSeen);
                if let Some(switch) = switch.as_ref().and_then(KillSwitch::from_record) {
                    self.apply(switch);
                }
            }
        }
        Ok(())
    }

    fn apply(&mut self, KillSwitch { scope, is_on, cause, .. }: KillSwitch) {
        match (is_on, scope) {
            (true, _) => drop(self.on.insert(scope, cause)),
            (false, Scope::All) => self.on.clear(),
            (false, _) => drop(self.on.remove(&scope)),
        }
    }

    /// Returns the scopes whose kill switch is on, each with a text about its cause: `all by
    /// operator`, `strategy-1 by max-position`.
    pub fn switches(&self) -> impl Iterator<Item = (Scope, String)> + '_ {
        self.on.iter().map(|(&scope, cause)| {
            let cause = match cause {
                KillCause::Operator => "operator".into(),
                KillCause::Death => "its death".into(),
                KillCause::Limit(code) => protocol::limits::RiskControl::from_code(*code)
                    .map_or("a limit".into(), |control| control.to_string()),
            };
            (scope, format!("{scope} by {cause}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::active_view::tests::segment_of;
    use protocol::index::{StrategyIndex, VenueIndex};
    use protocol::wire::OrderId;

    #[test]
    fn switches_are_turned_on_and_off() {
        let changes: [(Scope, bool, KillCause, &[&str]); 5] = [
            (Scope::Strategy(StrategyIndex(2)), true, KillCause::Death, &["strategy-2 by its death"]),
            (Scope::All, true, KillCause::Operator, &["all by operator", "strategy-2 by its death"]),
            (Scope::Strategy(StrategyIndex(2)), false, KillCause::Operator, &["all by operator"]),
            (
                Scope::Venue(VenueIndex(1)),
                true,
                KillCause::Limit(253),
                &["all by operator", "venue-1 by a limit"],
            ),
            (Scope::All, false, KillCause::Operator, &[]),
        ];
        let other = Record { point: Point::Due, id: OrderId::new(1, 0, 1), detail: 0, value: 7 };
        let mut words = vec![0; LOG_OFFSET];
        words.extend(vec![other.words(); 2 * BATCH - 1].as_flattened());
        let mut tracker = KillSwitchTracker::default();
        for (scope, is_on, cause, expected) in changes {
            let (id, detail) = KillSwitch { number: 0, scope, is_on, cause }.to_record();
            words.extend(Record { point: Point::KillSeen, id, detail, value: 1 }.words());
            let log = [words.clone(), vec![0; BATCH]].concat();
            tracker.read_new_records(&segment_of(&log)).unwrap();
            assert_eq!(tracker.switches().map(|(_, text)| text).collect::<Vec<_>>(), expected);
        }
        assert_eq!(LOG_OFFSET + tracker.next * RECORD_WORDS, words.len());
    }

    #[test]
    fn scribbled_log_is_read_to_its_end() {
        let words = vec![u64::MAX; LOG_OFFSET + 3 * BATCH + 1];
        let mut tracker = KillSwitchTracker::default();
        tracker.read_new_records(&segment_of(&words)).unwrap();
        assert_eq!((tracker.next, tracker.on.len()), (3 * BATCH / RECORD_WORDS, 0));
        tracker.read_new_records(&segment_of(&[])).unwrap();
    }
}
