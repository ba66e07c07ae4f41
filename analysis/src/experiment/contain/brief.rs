//! The sentence on a containment table's first screen: whether the faults were contained, and how
//! long it took until service was restored.

use super::{Contained, Containment, Containments, RoleContainment};
use crate::grouping::{distinct, grouped};
use protocol::plan::Journaling;
use record::numbers::{count, duration};
use record::spread::median;

/// Maximum number of faults that are named.
const MAX_NAMED: usize = 4;

/// Returns what became of the faults, and how long it took until service was back; empty without a
/// fault of a strategy, or of a role with a journal.
pub(super) fn sentence(all: &Containments) -> String {
    let sentences: Vec<String> = roles(all).into_iter().chain(strategies(all)).collect();
    sentences.join(". ")
}

/// Returns the median of some durations, with the shortest and the longest: `243 ms (195 ms–387
/// ms)`; `None` without any.
fn typical(ns: &[u64]) -> Option<String> {
    let (min, max) = (ns.iter().min()?, ns.iter().max()?);
    let middle = duration(median(&ns.iter().map(|ns| *ns as f64).collect::<Vec<_>>())? as u64);
    let range =
        if min == max { String::new() } else { format!(" ({}–{})", duration(*min), duration(*max)) };
    Some(middle + &range)
}

/// Returns a sentence for each kind of fault of a role with a journal: `kill of engine: service
/// again after 243 ms (195 ms–387 ms), 8 of 8, 0 lost`.
fn roles(all: &Containments) -> Vec<String> {
    let journaled = all.roles.iter().filter(|row| row.journal != Journaling::None);
    let faults = grouped(journaled.map(|row| (format!("{} of {}", row.fault, row.role), row)));
    let sentence = |(fault, rows): (String, Vec<&RoleContainment>)| {
        let back = rows.iter().filter(|row| row.contained == Contained::Yes).count();
        let served: Vec<u64> = rows.iter().filter_map(|row| row.served_ns).collect();
        let service = typical(&served)
            .map_or_else(|| "no service after it".to_owned(), |after| format!("service again after {after}"));
        let lost = rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.lost));
        format!("{fault}: {service}, {back} of {}, {} lost", rows.len(), count(lost))
    };
    faults.into_iter().map(sentence).collect()
}

/// Returns what became of the strategies' faults at each level, and how long the repair took:
/// `kill: contained at process 12 of 12; not at thread (0 of 1). Repaired 11.0 ms after it …`.
fn strategies(all: &Containments) -> Option<String> {
    let faults = distinct(all.rows.iter().map(|row| row.fault.as_str()));
    let named = match faults.len() {
        0 => return None,
        1..=MAX_NAMED => faults.join(", "),
        several => format!("{several} faults"),
    };
    let is_back = |row: &&Containment| matches!(row.contained, Contained::Yes | Contained::Waited);
    let fired: Vec<&Containment> =
        all.rows.iter().filter(|row| row.contained != Contained::Nothing).collect();
    let levels = grouped(fired.iter().map(|row| (row.levels(), *row)));
    let (mut held, mut broken) = (Vec::new(), Vec::new());
    for (level, rows) in &levels {
        let contained = rows.iter().copied().filter(|row| is_back(row)).count();
        let text = format!("{level} ({contained} of {})", rows.len());
        if contained == rows.len() { held.push(text) } else { broken.push(text) }
    }
    let mut parts = Vec::new();
    if !held.is_empty() {
        parts.push(format!("contained at {}", held.join(", ")));
    }
    if !broken.is_empty() {
        parts.push(format!("not at {}", broken.join(", ")));
    }
    if fired.len() < all.rows.len() {
        parts.push(format!("never came in {} of {}", all.rows.len() - fired.len(), all.rows.len()));
    }
    let repaired = all.rows.iter().filter(is_back).filter_map(|row| Some(row.detect_ns? + row.repair_ns?));
    let repaired = typical(&repaired.collect::<Vec<_>>());
    let lost = all.rows.iter().filter(is_back).filter_map(|row| row.lost_of_others);
    let lost = lost.fold(0, u64::saturating_add);
    parts.extend(
        repaired.map(|after| format!("repaired {after} after the fault, {} of others lost", count(lost))),
    );
    Some(format!("{named}: {}", parts.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typical_duration_has_its_range() {
        assert_eq!(typical(&[]), None);
        assert_eq!(typical(&[5_000]).unwrap(), "5,000 ns");
        let text = typical(&[243_000_000, 387_000_000, 195_000_000]).unwrap();
        assert_eq!(text, "243 ms (195 ms–387 ms)");
    }
}
