//! The chart of a containment table.

use super::dom::{check_alone, having, plot, series, text};
use super::fixtures::keep;
use crate::common::evaluate_into;
use crate::fixture::killing::StrategyDeath;
use crate::fixture::{Fixture, Shape};
use crate::formats::{before, golden};
use analysis::experiment::{Contained, Containment, Containments, Experiment, FaultOutcome, Kind, Row};
use protocol::plan::{Isolation, Technique};
use record::document::Document;

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
                    isolation: isolation.into(),
                    technique,
                    fault: (*fault).into(),
                    contained,
                    repair_ns: (contained == Contained::Yes).then_some(7_000 + 3_000 * t as u64),
                    during_max_ns: Some(300_000 * 4u64.pow(f as u32)),
                    // Only one exists, and a path is not a name.
                    folder: if rows.is_empty() { "run-1".into() } else { "../run-2".into() },
                    ..before::<Containments>("contain.json").rows[0].clone()
                });
            }
        }
    }
    let known: Experiment = golden();
    let row = |outcome: &Containment| {
        let mut row = Row { folder: outcome.folder.clone(), ..known.rows[0].clone() };
        row.setting.name = format!("{} {} {}", outcome.fault, outcome.technique, outcome.isolation);
        row.figures.insert_outcome(&FaultOutcome::Strategy(outcome.clone()));
        row
    };
    let experiment = Experiment {
        kind: Kind::Contain,
        rows: rows.iter().map(row).collect(),
        notes: vec!["a remark on 4 venues".into()],
        compared: None,
        ..known
    };
    experiment.save(folder.path()).unwrap();
    let table = Containments::from_experiment(&experiment).unwrap();
    assert_eq!(table.rows, rows);
    let screen = experiment.answer(folder.path()).unwrap().report.first_screen(false);
    // Twenty faults at each level; a quarter never came, but at level thread.
    let [held, broken] = ["process (10 of 15)", "thread (0 of 20)"];
    assert!(screen.contains("not at") && screen.contains("of others lost"), "{screen}");
    let screen = screen.replace("\n  ", " ");
    assert!(screen.contains(held) && screen.contains(broken), "{screen}");
    assert!(screen.contains("never came in 10 of 60") && screen.contains("isolation  contained"), "{screen}");
    let html = analysis::html::render(folder.path()).unwrap();
    keep("contain.html", &html);
    check_alone(&html);
    assert!(html.contains(&format!("started {}", experiment.started)), "a page has its date");
    let cells = having(&html, "data-cell");
    assert_eq!(cells.len(), table.rows.len());
    for cell in &cells {
        let place = ["data-cell", "data-technique", "data-level"].map(|name| cell.get(name).unwrap());
        let is_it =
            |row: &&Containment| [&row.fault, row.technique.name(), &row.isolation.to_string()] == place;
        let row = table.rows.iter().find(is_it).unwrap();
        assert_eq!(cell.get("data-contained"), Some(row.contained.name()));
        let times = (cell.whole("data-repair-ns"), cell.whole("data-others-ns"));
        assert_eq!(times, (row.repair_ns, row.during_max_ns));
    }
    let around = having(&html, "data-around");
    assert_eq!(around.len(), 1, "the run that is there");
    let drawn = plot(&html, "around-0");
    assert!(series(&drawn, "greatest")["y"].as_array().unwrap().len() > 10, "{drawn}");
    assert_eq!(drawn["lines"][0]["at"], 0.0, "the fault is at 0");
    assert!(text(&html).contains("a remark on 4 venues"));
}
