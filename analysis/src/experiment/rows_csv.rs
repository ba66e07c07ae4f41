//! `rows.csv`: a line for each run of an experiment, of whatever kind, with every figure.

use super::{Experiment, Row};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Returns the contents of `rows.csv`: settings that vary, then the figures that any row has, by
/// name.
pub fn rows_csv(experiment: &Experiment) -> Result<Vec<u8>, csv::Error> {
    let axes: Vec<_> = experiment.axes.iter().map(|axis| axis.axis).collect();
    let settings: BTreeSet<&String> = experiment.made().flat_map(|row| row.setting.settings.keys()).collect();
    let settings: Vec<_> =
        settings.into_iter().filter(|key| axes.iter().all(|axis| axis.key() != **key)).collect();
    let figures: BTreeSet<&str> =
        experiment.made().flat_map(|row| row.figures.iter().map(|(name, _)| name)).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    let head =
        axes.iter().map(|axis| axis.name().to_owned()).chain(settings.iter().map(|key| (*key).clone()));
    let head = head.chain(["point", "repeat", "seed", "folder"].map(String::from));
    writer.write_record(head.chain(figures.iter().map(|name| column(name))))?;
    for row in experiment.made() {
        let Row { setting, repeat, seed, folder, .. } = row;
        let values = axes.iter().map(|axis| setting.values.get(axis).cloned().unwrap_or_default());
        let own = settings.iter().map(|key| setting.settings.get(*key).cloned().unwrap_or_default());
        let run = [setting.name.clone(), repeat.to_string(), seed.to_string(), folder.clone()];
        let known: BTreeMap<&str, &Value> = row.figures.iter().collect();
        let cells = figures.iter().map(|name| known.get(name).map_or_else(String::new, |value| cell(value)));
        writer.write_record(values.chain(own).chain(run).chain(cells))?;
    }
    writer.into_inner().map_err(|error| error.into_error().into())
}

/// The head of a figure's column: `rt_venue_p50_ns` of `measures.rt_venue.p50_ns`.
fn column(name: &str) -> String {
    name.strip_prefix("measures.").unwrap_or(name).replace('.', "_")
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(all) => all.iter().map(cell).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}
