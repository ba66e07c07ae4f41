//! Experiments that commit 2889d4c1 saved: converted when they are read, or refused with the
//! version that reads them.

use super::{before, before_file, golden};
use analysis::experiment::{
    Comparisons, Containments, Experiment, ExperimentRuns, ExperimentState, IsolationCosts, Kind, RateSearch,
    Survey,
};
use protocol::index::StrategyIndex;
use record::document::{Document, DocumentFault};
use serde_json::{Value, json};
use std::fs;
use tempfile::TempDir;

/// A folder with these documents of commit 2889d4c1.
fn folder(documents: &[(&str, Value)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (file, document) in documents {
        fs::write(folder.path().join(file), document.to_string()).unwrap();
    }
    folder
}

/// The sweep of the tests as another kind and without a search.
fn sweep(kind: &str) -> Value {
    let mut sweep: Value = before("sweep.json");
    (sweep["kind"], sweep["search"]) = (kind.into(), Value::Null);
    sweep
}

fn converted(documents: &[(&str, Value)]) -> Experiment {
    let folder = folder(documents);
    let experiment = Experiment::read(folder.path()).unwrap();
    assert!(analysis::html::render(folder.path()).unwrap().contains("<html"));
    // From now on the folder has the new document.
    experiment.save(folder.path()).unwrap();
    fs::write(folder.path().join("sweep.json"), "damaged").unwrap();
    assert_eq!(Experiment::read(folder.path()).unwrap(), experiment);
    experiment
}

#[test]
fn sweep_becomes_rows_with_equal_figures() {
    let old = sweep("sweep");
    let found = converted(&[("sweep.json", old.clone())]);
    assert_eq!((found.kind, found.state), (Kind::Sweep, ExperimentState::Interrupted));
    let run = &old["points"][0]["runs"][0];
    let [row] = &found.rows[..] else { panic!("{:#?}", found.rows) };
    assert_eq!(json!(row.outline().unwrap()), run["outline"]);
    assert_eq!((row.folder.as_str(), row.seed), ("run-1", 7));
    let point = &ExperimentRuns::new(&found).points[0];
    assert_eq!(json!(point.settings), old["points"][0]["settings"]);
    assert_eq!(point.name, "work=500ns");
}

#[test]
fn missing_runs_of_sweep_are_planned_in_turns() {
    let mut old = sweep("sweep");
    let mut other = old["points"][0].clone();
    (other["name"], other["values"]["work"]) = ("work=0ns".into(), "0ns".into());
    other["runs"] = json!([]);
    old["points"].as_array_mut().unwrap().push(other);
    old["repeats"] = 2.into();
    let found = converted(&[("sweep.json", old)]);
    let made: Vec<bool> = found.rows.iter().map(analysis::experiment::Row::is_made).collect();
    assert_eq!(made, [true, false, false, false]);
    assert_eq!(found.rows[3].seed, 8);
}

#[test]
fn search_keeps_tried_rates_and_result() {
    let mut old: Value = before("sweep.json");
    old["kind"] = "max-rate".into();
    let found = converted(&[("sweep.json", old.clone())]);
    let search = RateSearch::all(&found).unwrap().remove(0);
    assert_eq!(json!(search.steps), old["search"]["points"][0]["steps"]);
    assert_eq!(found.folders(), ["run-1", "run-1"]);
}

#[test]
fn bill_keeps_what_levels_contain() {
    let mut isolation_costs: IsolationCosts = before("bill.json");
    (isolation_costs.rows[0].isolation, isolation_costs.rows[0].technique) = golden_setting();
    isolation_costs.rows[0].contains = Some("11 of 12".into());
    let mut old = sweep("bill");
    old["axes"] = json!([]);
    old["state"] = "complete".into();
    old["points"][0]["settings"] = json!({"isolation": "thread", "technique": "spsc-mux"});
    let found = converted(&[("sweep.json", old), ("bill.json", json!(isolation_costs))]);
    assert_eq!(found.kind, Kind::Bill);
    let isolation_costs = IsolationCosts::from_runs(&ExperimentRuns::new(&found)).unwrap();
    assert_eq!(isolation_costs.rows[0].contains.as_deref(), Some("11 of 12"));
    assert_eq!(isolation_costs.rows[0].p50_ns, Some(640.0));
}

fn golden_setting() -> (protocol::plan::Isolation, protocol::plan::Technique) {
    let run = golden::<Experiment>().rows[0].outline().unwrap();
    (run.isolation.of(StrategyIndex(0)), run.technique)
}

#[test]
fn settings_compared_afterwards_stay_compared() {
    let mut compared: Value = before("compare.json");
    (compared["comparisons"][0]["a"], compared["comparisons"][0]["b"]) =
        ("work=500ns".into(), "work=500ns".into());
    let found = converted(&[("sweep.json", sweep("sweep")), ("compare.json", compared)]);
    let comparisons = Comparisons::of_settings(&found).unwrap();
    assert_eq!((comparisons.comparisons.len(), comparisons.notes), (1, vec!["a note".to_owned()]));
    let mut own = sweep("compare");
    let mut other = own["points"][0].clone();
    other["name"] = "B: work=0ns".into();
    own["points"].as_array_mut().unwrap().push(other);
    let own = converted(&[("sweep.json", own), ("compare.json", before("compare.json"))]);
    assert_eq!(own.compared, None, "a comparison is compared by its kind");
}

#[test]
fn containment_table_keeps_every_outcome() {
    let mut table: Value = before("contain.json");
    for name in ["rows", "venues", "roles"] {
        table[name].as_array_mut().unwrap().iter_mut().for_each(|row| row["folder"] = "run-1".into());
    }
    let found = converted(&[("sweep.json", sweep("contain")), ("contain.json", table.clone())]);
    let all = Containments::from_experiment(&found).unwrap();
    let shown = json!(all);
    for name in ["rows", "venues", "roles", "cost"] {
        assert_eq!(shown[name], table[name], "{name}");
    }
}

#[test]
fn survey_is_equal_after_conversion() {
    let found = converted(&[("survey.json", before("survey.json"))]);
    assert_eq!(found.kind, Kind::Survey);
    assert_eq!(Survey::from_experiment(&found).unwrap(), before::<Survey>("survey.json"));
}

#[test]
fn planned_sweep_is_shared() {
    let found = converted(&[("plan.json", before("plan.json"))]);
    assert!(found.is_shared && !found.rows.is_empty());
}

#[test]
fn lab_and_board_name_the_version_that_reads_them() {
    for file in ["lab.json", "board.json"] {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(before_file(file), folder.path().join(file)).unwrap();
        let error = Experiment::read(folder.path()).unwrap_err();
        assert_eq!(error.fault, DocumentFault::Version);
        let said = error.to_string();
        assert!(said.contains(file) && said.contains("2889d4c1"), "{said}");
    }
}

#[test]
fn damaged_documents_are_refused_without_panic() {
    for file in ["sweep.json", "survey.json", "plan.json", "lab.json", "board.json"] {
        let whole = fs::read(before_file(file)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let read = |bytes: &[u8]| {
            fs::write(folder.path().join(file), bytes).unwrap();
            Experiment::read(folder.path())
        };
        for at in (0..whole.len()).step_by(whole.len() / 61 + 1) {
            let mut torn = whole.clone();
            torn[at] ^= 0x15;
            let _ = read(&torn);
            assert!(read(&whole[..at]).is_err());
        }
    }
}
