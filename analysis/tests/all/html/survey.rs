//! The page of a survey.

use super::browser::{check_quiet, open};
use super::dom::{having, text};
use super::fixtures::{keep, written};
use crate::formats::saved_experiment;
use analysis::experiment::Survey;
use record::document::Document;

#[test]
fn survey_page_has_card_parts_and_checks() {
    let experiment = saved_experiment("survey");
    let survey = Survey::from_experiment(&experiment).unwrap();
    let folder = tempfile::tempdir().unwrap();
    experiment.save(folder.path()).unwrap();
    let html = written(folder.path());
    keep("survey.html", &html);
    let drawn = having(&html, "role");
    assert_eq!(drawn.iter().filter(|svg| svg.get("aria-labelledby") == Some("card-title")).count(), 1);
    let text = text(&html);
    let commands = survey.parts.iter().flat_map(|part| &part.commands).map(String::as_str);
    let found = survey.checks.iter().map(|check| check.found.as_str());
    for words in commands.chain(found).chain([survey.started.as_str()]) {
        assert!(text.contains(&words.replace('&', "&amp;").replace('"', "&quot;")), "{words}: {text}");
    }
    let Some(rendered) = open(&folder.path().join("report.html"), false) else { return };
    check_quiet(&rendered);
}
