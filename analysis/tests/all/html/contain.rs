//! The chart of a containment table.

use super::dom::{check_alone, having, text};
use super::fixtures::keep;
use crate::common::evaluate_into;
use crate::fixture::killing::StrategyDeath;
use crate::fixture::{Fixture, Shape};
use analysis::document::Document;
use analysis::experiment::{Contained, Containment, Containments};
use analysis::merge::OrderLosses;
use protocol::plan::{Isolation, Technique};

#[test]
fn containment_table_draws_each_cell() {
    let folder = tempfile::tempdir().unwrap();
    let mut fixture = Fixture::new(Shape { orders: 2_000, strategies: 3, ..Shape::PLAIN });
    fixture.kill(StrategyDeath { restart: Some(100_000), ..StrategyDeath::new(1, 4_000_000) });
    let run = folder.path().join("run-1");
    std::fs::create_dir(&run).unwrap();
    evaluate_into(&run, &fixture);
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
                    losses: OrderLosses::default(),
                    lost_of_others: 0,
                    detect_ns: Some(20_000),
                    repair_ns: (contained == Contained::Yes).then_some(7_000 + 3_000 * t as u64),
                    restart_ns: None,
                    before_p999_ns: None,
                    before_max_ns: Some(400_000),
                    during_p999_ns: None,
                    during_max_ns: Some(300_000 * 4u64.pow(f as u32)),
                    // Only one exists, and a path is not a name.
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
        conditions: String::new(),
        notes,
    };
    table.save(folder.path()).unwrap();
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
        assert_eq!(cell.get("data-contained"), Some(row.contained.name()));
        assert_eq!(
            (cell.whole("data-repair-ns"), cell.whole("data-others-ns")),
            (row.repair_ns, row.during_max_ns)
        );
    }
    let around = having(&html, "data-around");
    assert_eq!(around.len(), 1, "the run that is there");
    assert!(text(&html).contains("measured 2026-01-01: 4 venues"));
}
