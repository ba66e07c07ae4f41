//! The page of a lab, from synthetic rows: every cell is in every chart, with its figures.

use super::browser::{check_quiet, open};
use super::dom::having;
use super::fixtures::written;
use crate::formats::before;
use analysis::experiment::{Lab, LabRun, Wait, histogram};

#[test]
fn lab_page_draws_each_cell() {
    let mut lab: Lab = before("lab.json");
    lab.runs = 20;
    let cell = lab.cells[0].clone();
    for number in 2..20 {
        let run_ns = if number % 3 == 0 { 90_000_000 } else { 52_000_000 } + u64::from(number);
        let run = LabRun { number, run_ns, ..cell.made[0].clone() };
        lab.cells[0].add_run(run, &histogram()).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    lab.save(folder.path()).unwrap();
    let page = written(folder.path());
    assert!(page.contains(&format!("started {}", lab.started)), "{page}");
    // A dot and a strip for each cell.
    for wait in [Wait::Busy, Wait::Park] {
        let name = format!("data-cell=\"array-queue process 2→1 slow→fast {wait}\"");
        assert_eq!(page.matches(&name).count(), 2, "{wait}");
    }
    assert!(page.contains("data-p50=\"240\" data-p99=\"900\""), "{page}");
    assert!(page.contains("data-cpu=\"5800\""), "of 10,000 events");
    assert_eq!(having(&page, "data-runs").len(), 2);
    let Some(seen) = open(&folder.path().join("report.html"), false) else { return };
    check_quiet(&seen);
    assert_eq!(having(&seen.dom, "data-cell").len(), having(&page, "data-cell").len());
}
