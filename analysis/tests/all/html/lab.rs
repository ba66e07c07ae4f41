//! The page of a lab, from synthetic rows: every cell is in every chart, with its figures.

use super::browser::{check_quiet, open};
use super::dom::{numbers, plot, plots, series, texts};
use super::fixtures::{keep, written};
use crate::formats::saved_experiment;
use analysis::experiment::{Figures, Lab, LabRun, Row, Wait};
use record::document::Document;

#[test]
fn lab_page_draws_each_cell() {
    let mut experiment = saved_experiment("lab");
    experiment.figures.insert("runs", &20);
    let first = experiment.rows[0].clone();
    let made: LabRun = first.figures.record().unwrap();
    for number in 2..20 {
        let run_ns = if number % 3 == 0 { 90_000_000 } else { 52_000_000 } + u64::from(number);
        let figures = Figures::from_record(&LabRun { number, run_ns, ..made.clone() });
        experiment.rows.push(Row { repeat: number, figures, ..first.clone() });
    }
    let lab = Lab::from_experiment(&experiment).unwrap();
    let folder = tempfile::tempdir().unwrap();
    experiment.save(folder.path()).unwrap();
    let page = written(folder.path());
    keep("lab.html", &page);
    assert!(page.contains(&format!("started {}", lab.started)), "{page}");
    // A dot and a lane for each cell.
    let (dots, lanes) = (plot(&page, "lab-pareto-slow-fast"), plot(&page, "lab-runs-0"));
    for wait in [Wait::Busy, Wait::Park] {
        let dot = series(&dots, &wait.to_string());
        assert_eq!(texts(&dot["names"]), [format!("array-queue, process, 2 to 1 {wait}")]);
        assert!(texts(&lanes["y"]["names"]).contains(&wait.name()));
    }
    let busy = series(&dots, "busy");
    assert_eq!([&busy["y"], &busy["high"]].map(numbers), [[Some(240.0)], [Some(900.0)]]);
    assert_eq!(
        numbers(&series(&dots, "park")["x"])[0].map(|cpu| cpu as u64),
        Some(5_800),
        "of 10,000 events"
    );
    let bars = series(&lanes, "busy");
    assert_eq!(bars["note"], format!("{} runs", lab.cells[0].valid_runs().count()));
    assert_eq!(bars["x"].as_array().unwrap().len(), 2, "52 and 90 ms");
    let Some(rendered) = open(&folder.path().join("report.html"), false) else { return };
    check_quiet(&rendered);
    assert_eq!(rendered.dom.matches("<canvas").count(), plots(&page).len());
}
