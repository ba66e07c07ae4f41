//! Surveys: the card of the golden one, and the surveys in the folder `results`, whose cards and
//! index page are what this build draws.

use super::{before, golden_file, saved_experiment};
use analysis::experiment::survey::{survey_index, svg_card, text_card};
use analysis::experiment::{Experiment, Survey};
use analysis::stats::Verdict;
use record::document::{Document, write_atomically};
use std::fs;
use std::path::{Path, PathBuf};

/// Compares a drawing with its golden file; `BULKHEAD_GOLDEN=1` writes it again.
fn check(name: &str, drawn: &str) {
    let path = golden_file::<Experiment>().with_file_name(name);
    if std::env::var_os("BULKHEAD_GOLDEN").is_some() {
        write_atomically(&path, drawn.as_bytes()).unwrap();
    }
    assert_eq!(drawn, fs::read_to_string(&path).unwrap(), "BULKHEAD_GOLDEN=1 writes {name} again");
}

#[test]
fn card_of_golden_survey_is_unchanged() {
    let survey: Survey = before("survey.json");
    let text = text_card(&survey);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    check("card.txt", &text);
    check("card.svg", &svg_card(&survey));
}

#[test]
fn incomplete_survey_says_so_everywhere() {
    let survey = Survey { complete: false, ..before("survey.json") };
    assert!(text_card(&survey).contains("INCOMPLETE"));
    assert!(svg_card(&survey).contains("INCOMPLETE"));
    assert!(survey_index(&[("a".into(), survey)]).markdown.contains("| incomplete |"));
}

#[test]
fn missing_answers_name_the_reason() {
    let empty = Survey {
        cores: None,
        recovery: Vec::new(),
        isolation_costs: None,
        queue: None,
        ..before("survey.json")
    };
    let text = text_card(&Survey { parts: Vec::new(), ..empty.clone() });
    assert_eq!(text.matches("not measured\n").count(), 5, "{text}");
    assert!(text_card(&empty).contains("not measured: no time for one run of each of 2 settings"));
}

/// A regression: a row read "not measured" next to the dots of its picture.
#[test]
fn row_with_dots_has_its_figures_in_words() {
    let mut survey = Survey { parts: Vec::new(), ..before("survey.json") };
    let pairs = &mut survey.cores.as_mut().unwrap().pairs;
    pairs.iter_mut().for_each(|pair| pair.unsynchronized_ns = -1.0);
    let drawn = svg_card(&survey);
    assert!(drawn.contains("class=\"pair\""), "{drawn}");
    let text = text_card(&survey);
    let row = text.lines().find(|line| line.starts_with("cores")).unwrap();
    assert!(!row.contains("not measured") && row.contains("a cache line takes"), "{text}");
    assert!(text.contains("a time not known"), "{text}");
}

/// A figure that decides nothing has its interval and its mark in both.
#[test]
fn open_row_has_its_interval_in_words_and_picture() {
    let mut survey: Survey = before("survey.json");
    let line = &mut survey.queue.as_mut().unwrap().comparisons[0].lines[0];
    let found = line.difference.as_mut().unwrap();
    (found.ratio.low, found.ratio.value, found.ratio.high) = (0.4, 0.986, 1.8);
    (line.verdict, line.why) = (Verdict::CannotTell, Vec::new());
    let text = text_card(&survey).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("100k/s p50 ? 0.986 [0.400–1.800], p99"), "{text}");
    let dots = |survey: &Survey| svg_card(survey).matches("class=\"dot\"").count();
    let all = dots(&survey);
    let line = &mut survey.queue.as_mut().unwrap().comparisons[0].lines[0];
    line.why = vec!["too few repeats: 3 of at least 5 pairs".into()];
    assert_eq!(dots(&survey), all - 1);
    assert!(svg_card(&survey).contains(">cannot tell<"));
}

fn results() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../results")
}

/// Returns what in a folder of surveys is not as this build draws it.
fn stale_files(folder: &Path) -> Vec<String> {
    let mut folders: Vec<PathBuf> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|path| path.is_dir());
    folders.sort();
    let mut expected = Vec::new();
    let mut surveys = Vec::new();
    for path in folders {
        let survey = Survey::read(&path).unwrap();
        assert!(survey.complete && survey.machine.hostname.is_empty(), "{}", path.display());
        expected.push((path.join("card.txt"), text_card(&survey)));
        expected.push((path.join("card.svg"), svg_card(&survey)));
        surveys.push((path.file_name().unwrap().to_string_lossy().into_owned(), survey));
    }
    let index = survey_index(&surveys);
    expected.extend([(folder.join("README.md"), index.markdown), (folder.join("index.svg"), index.svg)]);
    let stale = expected.iter().filter(|(path, text)| fs::read_to_string(path).ok().as_ref() != Some(text));
    stale.map(|(path, _)| path.display().to_string()).collect()
}

#[test]
fn results_are_surveys_with_current_cards() {
    let stale = stale_files(&results());
    assert!(stale.is_empty(), "launcher survey --index results draws them again: {stale:?}");
}

#[test]
fn stale_card_and_index_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let machine = folder.path().join("a-machine");
    fs::create_dir(&machine).unwrap();
    let experiment = saved_experiment("survey");
    let survey = Survey::from_experiment(&experiment).unwrap();
    experiment.save(&machine).unwrap();
    fs::write(machine.join("card.txt"), text_card(&survey)).unwrap();
    fs::write(machine.join("card.svg"), svg_card(&survey)).unwrap();
    assert_eq!(stale_files(folder.path()).len(), 2, "the index page is missing");
    fs::write(machine.join("card.txt"), "another card").unwrap();
    assert_eq!(stale_files(folder.path()).len(), 3);
}
