//! `launcher predict`: wrong questions, dry runs, and calibrations of other machines.

use crate::common::{document, entries, output};
use std::path::Path;

/// A saved prediction, of another machine and build.
const SAVED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../analysis/tests/all/formats/saved/predict.json");

#[test]
fn wrong_questions_are_usage_errors() {
    for (flags, expected) in [
        ("--strategies 0 --rate 10k", "from 1 to 256"),
        ("--strategies 4", "--rate"),
        ("--strategies 4 --rate 10k --isolation thread", "compared with threads"),
        ("--strategies 4 --rate 0", "--rate 0"),
        ("--strategies 4 --rate 10k --strategy-cores 1000", "--strategy-cores 1000: this machine has"),
        ("--strategies 2 --rate 10k --idle spin", "--idle spin"),
        ("--grid --rate 10k", "--grid"),
    ] {
        let out = tempfile::tempdir().unwrap();
        output(&format!("predict {flags} --out {}", out.path().display())).fails(2, &[expected]);
        assert!(entries(out.path()).is_empty(), "{flags}");
    }
}

#[test]
fn dry_run_shows_the_first_run_and_measures_nothing() {
    let out = tempfile::tempdir().unwrap();
    let out = out.path();
    let shown = output(&format!("predict --strategies 4 --rate 10k --dry-run --out {}", out.display()));
    let shown = shown.succeeds();
    assert!(shown.contains("pilot: 4 strategies on 1 core at 10,000 orders/s"), "{shown}");
    assert!(entries(out).is_empty());
}

#[test]
fn calibration_of_another_machine_is_refused_with_the_reason() {
    let out = tempfile::tempdir().unwrap();
    let saved = out.path().join("a-predict");
    std::fs::create_dir(&saved).unwrap();
    std::fs::copy(Path::new(SAVED), saved.join("experiment.json")).unwrap();
    let name = saved.display();
    output(&format!("predict --strategies 4 --rate 10k --calibration {name}"))
        .fails(2, &["--calibration", "it is of another machine"]);
    let shown =
        output(&format!("predict --strategies 4 --rate 10k --dry-run --out {}", out.path().display()));
    let shown = shown.succeeds();
    assert!(shown.contains("calibrated again") && shown.contains("another machine"), "{shown}");
    assert_eq!(document(&saved, "experiment.json")["kind"], "predict");
    let page = output(&format!("open {name}")).succeeds();
    assert!(std::fs::read_to_string(page.trim()).unwrap().contains("What strategies will cost"));
}
