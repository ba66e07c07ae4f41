//! `launcher survey`: interrupted, wrong flags, the index page.

use crate::common::{Running, command, document, entries, list, output, wait_until};
use serde_json::Value;
use std::path::Path;

/// A saved survey.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../analysis/tests/all/formats/saved/survey.json");

#[test]
fn interrupted_survey_is_saved_as_incomplete() {
    let out = tempfile::tempdir().unwrap();
    let running = Running::spawn(&mut command(&format!("survey --quick --out {}", out.path().display())));
    let folder = || entries(out.path()).pop().filter(|folder| folder.join("experiment.json").exists());
    wait_until("the cores are measured", || {
        folder().is_some_and(|folder| {
            list(&document(&folder, "experiment.json")["rows"]).iter().any(|row| row["figures"].is_object())
        })
    });
    let result = running.interrupt().fails(130, &["not complete"]);
    assert!(result.stdout.contains("not fit for latency claims"), "{result:?}");
    let folder = folder().unwrap();
    let survey = document(&folder, "experiment.json");
    assert_eq!((&survey["state"], &survey["machine"]["hostname"]), (&"interrupted".into(), &"".into()));
    let is_pair = |row: &Value| row["settings"]["of"] == "cores";
    assert!(list(&survey["rows"]).iter().any(is_pair), "what was measured is kept");
    for card in ["card.txt", "card.svg"] {
        let card = std::fs::read_to_string(folder.join(card)).unwrap();
        assert!(card.contains("INCOMPLETE"), "{card}");
    }
}

#[test]
fn wrong_flags_are_usage_errors() {
    for flags in ["--minutes 0", "--minutes 5 --quick", "--index x --quick", "5"] {
        output(&format!("survey {flags}")).fails(2, &[]);
    }
    let empty = tempfile::tempdir().unwrap();
    output(&format!("survey --index {}", empty.path().display())).fails(2, &["--index"]);
}

#[test]
fn index_draws_cards_of_every_survey() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b-machine", "a-machine"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::copy(GOLDEN, folder.path().join(name).join("experiment.json")).unwrap();
    }
    let printed = output(&format!("survey --index {}", folder.path().display())).succeeds();
    for file in ["README.md", "index.svg"] {
        assert!(printed.contains(&folder.path().join(file).display().to_string()), "{printed}");
    }
    assert!(printed.contains("2 surveys"), "{printed}");
    let page = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    let rows: Vec<usize> = ["a-machine", "b-machine"].iter().map(|name| page.find(name).unwrap()).collect();
    assert!(rows[0] < rows[1], "{page}");
    assert!(folder.path().join("a-machine/card.svg").exists() && folder.path().join("index.svg").exists());
}

#[test]
fn survey_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(GOLDEN, folder.path().join("experiment.json")).unwrap();
    let name = folder.path().display();
    let page = output(&format!("open {name}")).succeeds();
    let page = std::fs::read_to_string(page.trim()).unwrap();
    assert!(page.contains("<svg") && page.contains("What doctor found"), "{page}");
    let report = output(&format!("report {name}")).succeeds();
    assert!(report.contains("fit for latency claims"), "{report}");
    output(&format!("inspect {name} --worst 3")).fails(2, &["the folder of a survey"]);
}

#[test]
fn survey_with_a_foreign_file_is_listed_and_kept() {
    let out = tempfile::tempdir().unwrap();
    let survey = out.path().join("a-survey");
    let experiment = survey.join("a-sweep");
    std::fs::create_dir_all(&experiment).unwrap();
    std::fs::copy(GOLDEN, survey.join("experiment.json")).unwrap();
    std::fs::write(survey.join("card.svg"), "a card").unwrap();
    std::fs::copy(Path::new(GOLDEN).with_file_name("sweep.json"), experiment.join("experiment.json"))
        .unwrap();
    let listed = output(&format!("list {}", out.path().display())).stdout;
    assert!(listed.contains("survey of at most 5 minutes") && listed.contains("not fit"), "{listed}");
    std::fs::write(experiment.join("thesis.md"), "not ours").unwrap();
    output(&format!("delete {}", survey.display())).fails(1, &[]);
    assert!(experiment.join("thesis.md").exists());
}
