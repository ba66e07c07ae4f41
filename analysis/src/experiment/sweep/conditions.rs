//! The measuring conditions of an experiment, for its pages and tables: shared settings, seeds and
//! core-to-core round trips.

use super::{SweepPoint, SweepRecord};
use crate::numbers::{duration, plain};
use crate::stats::placement;
use crate::units::{Count, Nanos};

/// Settings that tables have in their own places, or that are irrelevant for what was measured.
const LEFT_OUT: [&str; 6] = ["seed", "out", "repeats", "technique", "isolation", "fault"];

/// Returns name and text of each measuring condition of an experiment, in the order of the
/// settings' names.
pub fn conditions(record: &SweepRecord) -> Vec<(String, String)> {
    let Some(first) = record.points.first() else { return Vec::new() };
    let is_varied = |key: &str| {
        let text = |point: &SweepPoint| point.settings.get(key).cloned();
        record.points.iter().any(|point| text(point) != text(first))
    };
    let shared =
        first.settings.iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str()) && !is_varied(key));
    let mut said: Vec<(String, String)> =
        shared.map(|(key, text)| (key.replace('_', " "), text.clone())).collect();
    let mut say = |name: &str, text: String| said.push((name.to_owned(), text));
    let count = |key: &str| first.settings.get(key).and_then(|text| text.parse::<Count>().ok());
    let time = |key: &str| first.settings.get(key).and_then(|text| text.parse::<Nanos>().ok());
    if let (Some(orders), Some(window)) = (count("orders"), time("window"))
        && window.0 > 0
        && !is_varied("orders")
        && !is_varied("window")
    {
        say("rate", format!("{} orders/s", plain(orders.0 as f64 / (window.0 as f64 / 1e9))));
    }
    match (record.seed, record.seed_of(record.repeats.saturating_sub(1))) {
        (first, last) if first == last => say("seed", first.to_string()),
        (first, last) => say("seeds", format!("{first} to {last}")),
    }
    let floors = || record.runs().filter_map(|run| placement::core_rtt(&run.outline));
    if let (Some(min), Some(max)) = (floors().reduce(f64::min), floors().reduce(f64::max)) {
        say("core to core", format!("{} to {}", duration(min as u64), duration(max as u64)));
    }
    said
}
