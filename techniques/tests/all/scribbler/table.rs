//! The table of the results of all techniques.

use super::round::Round;
use comfy_table::{CellAlignment, Table, presets};
use techniques::Technique;

/// The results of all rounds of one technique at one pace.
pub struct ScribblerRow {
    technique: Technique,
    pace: &'static str,
    pub rounds: u64,
    pub quarantined: u64,
    seconds: f64,
    words: u64,
    sent: u64,
    whole: u64,
    damaged: u64,
    doubled: u64,
    faults: u64,
    checks: u64,
    went_on: u64,
    succeeded: u64,
    /// The number of words until each block of the ring.
    stood_after: Vec<u64>,
}

impl ScribblerRow {
    pub fn new(technique: Technique, pace: &'static str) -> Self {
        Self {
            technique,
            pace,
            rounds: 0,
            quarantined: 0,
            seconds: 0.0,
            words: 0,
            sent: 0,
            whole: 0,
            damaged: 0,
            doubled: 0,
            faults: 0,
            checks: 0,
            went_on: 0,
            succeeded: 0,
            stood_after: Vec::new(),
        }
    }

    pub fn add(&mut self, round: &Round) {
        self.rounds += 1;
        self.quarantined += u64::from(round.seen.is_found_out);
        self.seconds += round.seconds;
        self.words += round.words;
        self.sent += round.sent;
        self.whole += round.seen.honest();
        self.damaged += round.seen.damaged;
        self.doubled += round.seen.doubled;
        self.faults += round.seen.faults;
        self.checks += u64::from(round.seen.checks_failed > 0);
        self.went_on += u64::from(round.went_on);
        self.succeeded += u64::from(round.succeeded);
        self.stood_after.extend(round.stood.then_some(round.words_until));
    }

    fn cells(&self) -> Vec<String> {
        let mut stood_after = self.stood_after.clone();
        stood_after.sort_unstable();
        let median = stood_after.get(stood_after.len() / 2);
        let of_rounds = |count: u64| format!("{count}/{}", self.rounds);
        vec![
            self.technique.to_string(),
            self.pace.into(),
            format!("{:.1}", self.seconds),
            self.words.to_string(),
            self.sent.to_string(),
            self.whole.to_string(),
            (self.sent - self.whole).to_string(),
            self.damaged.to_string(),
            self.doubled.to_string(),
            self.faults.to_string(),
            of_rounds(self.quarantined),
            of_rounds(self.checks),
            of_rounds(stood_after.len() as u64),
            median.map_or_else(|| "–".into(), u64::to_string),
            of_rounds(self.went_on),
            of_rounds(self.succeeded),
        ]
    }
}

const COLUMNS: [&str; 16] = [
    "technique",
    "scribbles",
    "s",
    "hostile words",
    "sent",
    "whole",
    "lost",
    "not whole",
    "doubled",
    "faults",
    "found out",
    "check failed",
    "stood still",
    "words until",
    "went on",
    "successor",
];

/// Makes the table. Sent, whole, lost and doubled are of the correct producers; `not whole`
/// includes the scribbler's own messages. The columns with a fraction count rounds.
pub fn print(rows: &[ScribblerRow]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(COLUMNS);
    for row in rows {
        table.add_row(row.cells());
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
