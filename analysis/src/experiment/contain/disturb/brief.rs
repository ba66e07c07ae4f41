//! The first screen of disturbances: at each level, how many of them disturb the other strategies,
//! and which most.

use super::{Disturbance, Disturbances, Effect, is_within_margin};
use crate::experiment::BriefReport;
use crate::grouping::{distinct, grouped};
use crate::stats::{Estimate, Verdict};
use record::numbers::plain;
use verdict::table::{Grid, GridRow};

/// Returns sentence and table: the heaviest storms if they were searched, else what each
/// disturbance does at each level.
pub(super) fn brief(all: &Disturbances, heaviest_storms: Option<Grid>) -> BriefReport {
    let table = heaviest_storms.unwrap_or_else(|| by_level(all));
    BriefReport { answer: sentence(all), table: Some(table) }
}

/// Returns the longest time of a disturbed row against calm runs; `None` if only the engine lost
/// time, or nothing is shown.
fn longest(row: &Disturbance, all: &Disturbances) -> Option<Estimate> {
    let lines = row.declared(&all.endpoint);
    let slower =
        lines.filter(|line| line.verdict == Verdict::Slower && !is_within_margin(line, &all.endpoint));
    let ratios = slower.filter_map(|line| Some(line.evidence().difference?.ratio));
    ratios.max_by(|a, b| a.value.total_cmp(&b.value))
}

/// Describes what one row shows, in two words.
fn cell(row: &Disturbance, all: &Disturbances) -> String {
    match row.effect(&all.endpoint) {
        Effect::NotTried => "not tried".into(),
        Effect::Refused => "refused".into(),
        Effect::Spread => "not survived".into(),
        Effect::Undisturbed => "undisturbed".into(),
        Effect::CannotTell => "cannot tell".into(),
        Effect::Disturbed => {
            longest(row, all).map_or_else(|| "disturbed".into(), |ratio| format!("× {}", plain(ratio.value)))
        }
    }
}

/// Returns a sentence for each level: `thread: 3 of 8 disturb the others, most of all fork-storm
/// (× 10.6 [7.0–12.9]); 5 cannot tell`.
fn sentence(all: &Disturbances) -> String {
    let levels = grouped(all.real().map(|(row, _)| (row.isolation.to_string(), row)));
    let sentence = |(level, rows): (String, Vec<&Disturbance>)| {
        let count = |effect| rows.iter().filter(|row| row.effect(&all.endpoint) == effect).count();
        let disturbed = rows.iter().filter(|row| row.effect(&all.endpoint) == Effect::Disturbed);
        let known = disturbed.filter_map(|row| Some((row.name(), longest(row, all)?)));
        let most = known.max_by(|(_, a), (_, b)| a.value.total_cmp(&b.value));
        let most = most.map_or_else(String::new, |(name, ratio)| {
            let [value, low, high] = [ratio.value, ratio.low, ratio.high].map(plain);
            format!(", most of all {name} (× {value} [{low}–{high}])")
        });
        let others = [
            (Effect::Undisturbed, "shown not to"),
            (Effect::Refused, "refused"),
            (Effect::Spread, "not survived"),
            (Effect::CannotTell, "cannot tell"),
            (Effect::NotTried, "not tried"),
        ];
        let others = others.map(|(effect, words)| (count(effect), words)).into_iter();
        let others: String = others
            .filter(|(count, _)| *count > 0)
            .map(|(count, words)| format!("; {count} {words}"))
            .collect();
        format!("{level}: {} of {} disturb the others{most}{others}", count(Effect::Disturbed), rows.len())
    };
    levels.into_iter().map(sentence).collect::<Vec<_>>().join(". ")
}

/// Returns the table with a row for each disturbance and a column for each level.
fn by_level(all: &Disturbances) -> Grid {
    let rows: Vec<&Disturbance> = all.real().map(|(row, _)| row).collect();
    let is_one = distinct(rows.iter().map(|row| row.technique)).len() < 2;
    let name = |row: &Disturbance| {
        if is_one { row.name() } else { format!("{}, {}", row.name(), row.technique) }
    };
    let levels = distinct(rows.iter().map(|row| row.isolation.to_string()));
    let grid_row = |of: String| {
        let at = |level: &String| {
            let found = rows.iter().find(|row| name(row) == of && row.isolation.to_string() == *level);
            found.map_or_else(|| "–".into(), |row| cell(row, all))
        };
        let cells = levels.iter().map(at).collect::<Vec<_>>();
        GridRow::plain([vec![of], cells].concat())
    };
    let names = distinct(rows.iter().map(|row| name(row)));
    let head = ["the strategy does"].map(String::from).into_iter().chain(levels.clone());
    let title = "What it does to the others, or the engine, at its worst: times longer than calm";
    Grid::new("disturb_brief", title, 1, head, names.into_iter().map(grid_row))
}

#[cfg(test)]
mod tests {
    use super::super::tests::compared;
    use super::*;
    use protocol::plan::{FaultKind, Isolation};

    #[test]
    fn every_level_has_a_column_and_a_sentence() {
        let (disturbed, endpoint) = compared(900.0, 500, "", 0);
        let (refused, _) = compared(301.0, 1, "signal 31 (SIGSYS)", 0);
        let refused = Disturbance { isolation: Isolation::Sandbox.into(), ..refused };
        let calm = Disturbance { kind: FaultKind::Calm, ..disturbed.clone() };
        let rows = vec![calm, disturbed, refused];
        let all = Disturbances { endpoint, rows, limits: vec![], conditions: String::new(), notes: vec![] };
        let BriefReport { answer, table } = brief(&all, None);
        assert_eq!(
            answer,
            "process: 1 of 1 disturb the others, most of all map-storm (× 3.00 [3.00–3.00]). \
             sandbox: 0 of 1 disturb the others; 1 refused"
        );
        let table = table.unwrap();
        assert_eq!(table.head, ["the strategy does", "process", "sandbox"]);
        assert_eq!(table.rows, [GridRow::plain(["map-storm", "× 3.00", "refused"].map(String::from).into())]);
    }
}
