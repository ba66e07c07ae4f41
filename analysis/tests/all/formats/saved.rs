//! Experiments in the format of commit 67916126: each kind is read and shown.

use super::saved_experiment;
use analysis::experiment::{Experiment, Kind};
use record::document::Document;
use record::experiment::ExperimentHead;
use std::path::Path;

/// Reads a saved experiment from a folder of its own.
fn saved(name: &str) -> Experiment {
    let (experiment, folder) = (saved_experiment(name), tempfile::tempdir().unwrap());
    experiment.save(folder.path()).unwrap();
    if !experiment.is_shared {
        assert!(analysis::html::render(folder.path()).unwrap().contains("<html"), "{name}");
        assert!(!experiment.answer(folder.path()).unwrap().json.is_empty(), "{name}");
    }
    experiment
}

#[test]
fn every_saved_kind_is_read_and_shown() {
    for (name, kind) in [
        ("sweep", Kind::Sweep),
        ("max-rate", Kind::MaxRate),
        ("bill", Kind::Bill),
        ("compare", Kind::Sweep),
        ("contain", Kind::Contain),
        ("lab", Kind::Lab),
        ("board", Kind::Board),
        ("survey", Kind::Survey),
        ("predict", Kind::Predict),
        ("plan", Kind::Sweep),
    ] {
        assert_eq!(saved(name).kind, kind, "{name}");
    }
    assert!(saved("plan").is_shared);
    assert!(saved("compare").compared.is_some());
}

#[test]
fn every_kind_names_its_folder_and_command() {
    let text = |kind: &str| {
        let head = ExperimentHead { kind: kind.into(), ..ExperimentHead::default() };
        head.describe_folder(Path::new("runs/x"))
    };
    let unknown = text("no-kind");
    for kind in Kind::ALL {
        assert_ne!(text(kind.name()), unknown, "{kind}: missing in record::experiment");
    }
}

/// The folder and the next commands need three more lines.
#[test]
fn first_screen_of_every_kind_fits_the_terminal() {
    for name in ["sweep", "max-rate", "bill", "compare", "contain", "lab", "board", "survey", "predict"] {
        let folder = tempfile::tempdir().unwrap();
        let screen = saved_experiment(name).answer(folder.path()).unwrap().report.first_screen(false);
        assert!(screen.lines().count() <= 21, "{name}:\n{screen}");
        let wide = screen.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None, "{name}:\n{screen}");
        assert!(screen.contains("───") && screen.contains("fit for latency claims"), "{name}:\n{screen}");
    }
}
