//! Converts experiments of commit 2889d4c1 and before: each kind had a document of its own.
//!
//! Sweeps, bills, comparisons, containment tables and surveys are converted. Labs and boards are
//! refused: their runs have no figures that this version compares.

use super::order::ordered_rows;
use super::record::Setting;
use super::{
    ComparedSettings, Comparisons, Containments, Experiment, FaultOutcome, Figures, Kind, SearchLimits,
    Survey,
};
use crate::stats::RunOutline;
use record::document::{DocumentError, DocumentFault};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;
use system::folder::read_regular;

/// The largest document that is converted, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// The documents that held an experiment, with their schemas.
const DOCUMENTS: [(&str, &str, Converter); 5] = [
    ("survey.json", "bulkhead.survey/1", survey),
    ("sweep.json", "bulkhead.sweep/2", sweep),
    ("plan.json", "bulkhead.sweep-plan/2", plan),
    ("lab.json", "bulkhead.lab/2", refused),
    ("board.json", "bulkhead.board/2", refused),
];

type Converter = fn(&Path, Value) -> serde_json::Result<Experiment>;

/// Returns `true` if a folder has an experiment that an earlier version saved.
pub(super) fn is_in(folder: &Path) -> bool {
    DOCUMENTS.iter().any(|(file, ..)| folder.join(file).exists())
}

/// Reads the experiment that an earlier version saved in a folder. `None`: there is none.
pub(super) fn read(folder: &Path) -> Option<Result<Experiment, DocumentError>> {
    let (file, schema, convert) = DOCUMENTS.into_iter().find(|(file, ..)| folder.join(file).exists())?;
    let path = folder.join(file);
    let fail = |fault, why: String| {
        let name = path.display();
        DocumentError::new(fault, &path, format!("{name}: {}", record::escape::single_line(&why)))
    };
    let damaged = |error: serde_json::Error| {
        let remedy = "fetch it from a copy, or measure again: the runs' own folders are whole";
        fail(DocumentFault::Json, format!("no {schema}: {error}: damaged; {remedy}"))
    };
    Some((|| {
        let value: Value =
            value(&path).map_err(|error| fail(DocumentFault::Unreadable, error.to_string()))?;
        let found = value["schema"].as_str().unwrap_or_default();
        if found != schema {
            let is_old = found.split('/').next() == schema.split('/').next();
            let fault = if is_old { DocumentFault::Version } else { DocumentFault::Other };
            let remedy = "use the launcher that wrote it (commit 2889d4c1 reads it)";
            return Err(fail(fault, format!("schema {found:?}: saved before experiment.json: {remedy}")));
        }
        convert(folder, value).map_err(damaged)
    })())
}

fn value(path: &Path) -> std::io::Result<Value> {
    Ok(serde_json::from_slice(&read_regular(path, MAX_BYTES)?)?)
}

/// Reads another document of a folder, of whatever version: `None` if it is not there or damaged.
fn also<T: DeserializeOwned>(folder: &Path, file: &str) -> Option<T> {
    serde_json::from_value(value(&folder.join(file)).ok()?).ok()
}

fn refused(_: &Path, _: Value) -> serde_json::Result<Experiment> {
    Err(serde::de::Error::custom("of another version"))
}

fn survey(_: &Path, value: Value) -> serde_json::Result<Experiment> {
    Ok(serde_json::from_value::<Survey>(value)?.experiment())
}

fn plan(folder: &Path, mut value: Value) -> serde_json::Result<Experiment> {
    Ok(Experiment { is_shared: true, ..sweep(folder, value["sweep"].take())? })
}

/// What a sweep had in other places.
#[derive(Deserialize)]
struct OldSweep {
    points: Vec<OldPoint>,
    repeats: u32,
    search: Option<OldSearch>,
}

#[derive(Deserialize)]
struct OldPoint {
    #[serde(flatten)]
    setting: Setting,
    runs: Vec<OldRun>,
}

#[derive(Deserialize)]
struct OldRun {
    repeat: u32,
    folder: String,
    outline: RunOutline,
}

#[derive(Deserialize)]
struct OldSearch {
    bound_ns: u64,
    most_steps: u32,
    first_per_s: f64,
    points: Vec<OldSteps>,
}

#[derive(Deserialize)]
struct OldSteps {
    steps: Vec<super::RateStep>,
}

fn sweep(folder: &Path, mut value: Value) -> serde_json::Result<Experiment> {
    let old = OldSweep::deserialize(&value)?;
    let asked = value["base"]["repeats"].as_str().and_then(|text| text.parse().ok()).unwrap_or(old.repeats);
    let max_open = value["base"]["max_open"].as_str().map(str::to_owned);
    // The settings that all rows share are found again.
    value["base"] = Value::Object(serde_json::Map::new());
    value["asked_repeats"] = asked.into();
    value["rows"] = Value::Array(Vec::new());
    value["endpoint"] = serde_json::to_value(super::Endpoint::legacy())?;
    let mut experiment: Experiment = serde_json::from_value(value)?;
    let settings: Vec<Setting> = old.points.iter().map(|point| point.setting.clone()).collect();
    match old.search.filter(|_| experiment.kind == Kind::MaxRate) {
        Some(search) => {
            let limits = SearchLimits {
                bound_ns: search.bound_ns,
                max_steps: search.most_steps,
                first_per_s: search.first_per_s,
                max_open,
            };
            experiment.figures.insert(SearchLimits::NAME, &limits);
            experiment.rows = ordered_rows(&settings, 0..1, experiment.seed);
            for (setting, OldSteps { steps }) in settings.iter().zip(&search.points) {
                steps.iter().for_each(|step| experiment.add_step(&setting.name, step));
            }
            return Ok(experiment);
        }
        None => experiment.plan_rows(&settings),
    }
    let contained: Option<Containments> = also(folder, "contain.json");
    for row in &mut experiment.rows {
        let point = old.points.iter().find(|point| point.setting.name == row.setting.name);
        let run = point.and_then(|point| point.runs.iter().find(|run| run.repeat == row.repeat));
        let Some(run) = run else { continue };
        row.folder.clone_from(&run.folder);
        row.figures = Figures::from_outline(&run.outline);
        for outcome in contained.iter().flat_map(|all| outcomes(all, &run.folder)) {
            row.figures.insert_outcome(&outcome);
        }
    }
    add_answers(&mut experiment, folder, contained.as_ref());
    Ok(experiment)
}

/// The outcomes that a containment table has of the run in a folder.
fn outcomes(all: &Containments, folder: &str) -> Vec<FaultOutcome> {
    let strategies = all.rows.iter().filter(|row| row.folder == folder).cloned().map(FaultOutcome::Strategy);
    let venues = all.venues.iter().filter(|row| row.folder == folder).cloned().map(FaultOutcome::Venue);
    let roles = all.roles.iter().filter(|row| row.folder == folder).cloned().map(FaultOutcome::Role);
    strategies.chain(venues).chain(roles).collect()
}

/// Adds what the documents of answers had and the runs do not have.
fn add_answers(experiment: &mut Experiment, folder: &Path, contained: Option<&Containments>) {
    if let Some(isolation_costs) = also::<super::IsolationCosts>(folder, "bill.json") {
        // Only a complete bill was saved.
        experiment.kind = Kind::Bill;
        let contains = isolation_costs.rows.iter();
        let contains = contains.filter_map(|row| Some((row.isolation, row.technique, row.contains.clone()?)));
        experiment.set_contains(&contains.collect::<Vec<_>>(), None);
        let cost = isolation_costs.notes.into_iter().filter(|note| note.starts_with("the protection costs "));
        experiment.notes.extend(cost);
    }
    if let Some(cost) = contained.and_then(|all| all.cost) {
        experiment.figures.insert(super::ProtectionCost::NAME, &cost);
    }
    let compared = also::<Comparisons>(folder, "compare.json").filter(|_| experiment.kind != Kind::Compare);
    experiment.compared = compared.map(|Comparisons { comparisons, notes }| ComparedSettings {
        pairs: comparisons.into_iter().map(|one| [one.a, one.b]).collect(),
        notes,
    });
}
