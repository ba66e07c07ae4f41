//! `launcher survey`: interrupted, wrong flags, the index page.

use super::{done, only};
use crate::common::{Running, assert_nothing_left, command, signal, wait_until};
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;

/// The golden survey of the crate `analysis`.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../analysis/tests/all/formats/golden/survey.json");

#[test]
fn interrupted_survey_is_saved_as_incomplete() {
    let out = tempfile::tempdir().unwrap();
    let mut survey = command(&["survey", "--quick", "--out", out.path().to_str().unwrap()]);
    let child = survey.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running = Running { child };
    let read = || -> Value {
        let folder = std::fs::read_dir(out.path()).unwrap().next().map(|entry| entry.unwrap().path());
        let text = folder.and_then(|folder| std::fs::read_to_string(folder.join("survey.json")).ok());
        text.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
    };
    wait_until("the cores are measured", || {
        read()["parts"].as_array().is_some_and(|parts| !parts.is_empty())
    });
    let pid = running.pid();
    signal(pid, "INT");
    let (code, stdout, stderr) = running.end();
    assert_eq!(code, Some(130), "{stderr}");
    assert_nothing_left(pid);
    let survey = read();
    assert_eq!((&survey["complete"], &survey["machine"]["hostname"]), (&false.into(), &"".into()));
    assert!(!survey["cores"]["pairs"].as_array().unwrap().is_empty(), "what was measured is kept");
    for card in ["card.txt", "card.svg"] {
        let card = std::fs::read_to_string(only(&out).join(card)).unwrap();
        assert!(card.contains("INCOMPLETE"), "{card}");
    }
    assert!(
        stderr.contains("not complete") && stdout.contains("not fit for latency claims"),
        "{stdout}{stderr}"
    );
}

#[test]
fn index_draws_cards_of_every_survey() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["b-machine", "a-machine"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        std::fs::copy(GOLDEN, folder.path().join(name).join("survey.json")).unwrap();
    }
    done(&mut command(&["survey", "--index", folder.path().to_str().unwrap()]));
    let page = std::fs::read_to_string(folder.path().join("README.md")).unwrap();
    let rows: Vec<usize> = ["a-machine", "b-machine"].iter().map(|name| page.find(name).unwrap()).collect();
    assert!(rows[0] < rows[1], "{page}");
    assert!(folder.path().join("a-machine/card.svg").exists() && folder.path().join("index.svg").exists());
}

#[test]
fn survey_folder_is_listed_and_deleted_whole() {
    let out = tempfile::tempdir().unwrap();
    let survey = out.path().join("a-survey");
    let experiment = survey.join("a-bill");
    std::fs::create_dir_all(&experiment).unwrap();
    std::fs::copy(GOLDEN, survey.join("survey.json")).unwrap();
    std::fs::write(survey.join("card.svg"), "a card").unwrap();
    std::fs::copy(Path::new(GOLDEN).with_file_name("sweep.json"), experiment.join("sweep.json")).unwrap();
    let said = done(&mut command(&["list", out.path().to_str().unwrap()]));
    assert!(said.contains("survey of at most 5 minutes") && said.contains("not fit"), "{said}");
    std::fs::write(experiment.join("thesis.md"), "not ours").unwrap();
    let delete = || command(&["delete", survey.to_str().unwrap()]).output().unwrap();
    assert_eq!(delete().status.code(), Some(1));
    assert!(experiment.join("thesis.md").exists());
}
