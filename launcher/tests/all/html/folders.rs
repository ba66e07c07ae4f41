//! The picture of a containment table, and `launcher open`.

use super::dom::{having, text};
use super::fixture::{Fixture, Shape};
use super::fixtures::{evaluated, tailed};
use super::killing::Death;
use super::run_page::check_alone;
use crate::common::{command, output, text as said};
use analysis::document::Document;
use analysis::experiment::{Contained, Containment, Containments};
use analysis::merge::Losses;
use protocol::plan::{Isolation, Technique};
use std::path::Path;
use tempfile::TempDir;

/// Moves a run into a folder of many.
fn into(all: &TempDir, name: &str, run: &TempDir) {
    let to = all.path().join(name);
    std::fs::create_dir(&to).unwrap();
    for entry in std::fs::read_dir(run.path()).unwrap().flatten() {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn keep(name: &str, html: &str) {
    if let Some(pages) = std::env::var_os("BULKHEAD_PAGES") {
        std::fs::write(Path::new(&pages).join(name), html).unwrap();
    }
}

#[test]
fn page_of_a_run_is_found_and_other_folders_are_refused() {
    let all = tempfile::tempdir().unwrap();
    let (run, _) = evaluated(&tailed(2_000));
    into(&all, "20260101-one", &run);
    let one = all.path().join("20260101-one");
    std::fs::remove_file(one.join("report.html")).unwrap();
    let printed = said(&output(&["open", one.to_str().unwrap()]).stdout);
    assert_eq!(Path::new(printed.trim()), one.join("report.html").canonicalize().unwrap());
    let refused = command(&["open", all.path().to_str().unwrap()]).output().unwrap();
    assert!(!refused.status.success() && said(&refused.stderr).contains("not the folder of a run"));
    assert_eq!(std::fs::read_dir(all.path()).unwrap().count(), 1, "nothing is written there");
}

#[test]
fn a_containment_table_is_drawn_cell_by_cell() {
    let folder = tempfile::tempdir().unwrap();
    let mut fixture = Fixture::new(Shape { orders: 2_000, strategies: 3, ..Shape::default() });
    fixture.kill(Death { restart: Some(100_000), ..Death::of(1, 4_000_000) });
    let (run, _) = evaluated(&fixture);
    into(&folder, "run-1", &run);
    let faults = ["kill", "hang in a push, half-written", "segv", "scribble"];
    let mut rows = Vec::new();
    for (t, technique) in Technique::all().into_iter().take(5).enumerate() {
        for isolation in [Isolation::Thread, Isolation::Process, Isolation::Sandbox] {
            for (f, fault) in faults.iter().enumerate() {
                let contained = [Contained::Yes, Contained::Waited, Contained::No, Contained::Nothing];
                let contained =
                    if isolation == Isolation::Thread { Contained::No } else { contained[(t + f) % 4] };
                rows.push(Containment {
                    isolation,
                    technique,
                    fault: (*fault).into(),
                    contained,
                    seen: "signal 9 (SIGKILL)".into(),
                    losses: Losses::default(),
                    lost_of_others: 0,
                    detect_ns: Some(20_000),
                    repair_ns: (contained == Contained::Yes).then_some(7_000 + 3_000 * t as u64),
                    restart_ns: None,
                    before_p999_ns: None,
                    before_max_ns: Some(400_000),
                    during_p999_ns: None,
                    during_max_ns: Some(300_000 * 4u64.pow(f as u32)),
                    // Only one is there, and a path is no name.
                    folder: if rows.is_empty() { "run-1".into() } else { "../run-2".into() },
                });
            }
        }
    }
    let (all, notes) = (rows.len(), vec!["measured 2026-01-01: 4 venues".into()]);
    let table = Containments {
        machine: "a processor".into(),
        rows,
        venues: vec![],
        roles: vec![],
        cost: None,
        notes,
    };
    std::fs::write(folder.path().join(Containments::FILE), table.json().unwrap()).unwrap();
    let html = analysis::html::render(folder.path()).unwrap();
    keep("contain.html", &html);
    check_alone(&html);
    let cells = having(&html, "data-cell");
    assert_eq!(cells.len(), all);
    for (cell, row) in cells.iter().map(|cell| {
        let same = |row: &&Containment| {
            cell.get("data-cell") == Some(&row.fault)
                && cell.get("data-technique") == Some(row.technique.name())
                && cell.get("data-level") == Some(row.isolation.name())
        };
        (cell, table.rows.iter().find(same).unwrap())
    }) {
        assert_eq!(cell.get("data-contained"), Some(row.contained.word()));
        assert_eq!(
            (cell.whole("data-repair-ns"), cell.whole("data-others-ns")),
            (row.repair_ns, row.during_max_ns)
        );
    }
    let around = having(&html, "data-around");
    assert_eq!(around.len(), 1, "the run that is there");
    assert!(text(&html).contains("measured 2026-01-01: 4 venues"));
}
