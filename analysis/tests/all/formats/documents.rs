//! The JSON documents: each has a golden file with every key of its current version. Other
//! versions, other documents, truncated and damaged files are refused with an explanation.

use super::{golden, golden_file, saved_experiment};
use analysis::experiment::{Boards, Experiment, Lab};
use analysis::stats::RunOutline;
use merge::tail::{NoiseSlice, Tail};
use merge::timeline::Timeline;
use record::document::{Document, DocumentError, DocumentFault};
use record::run::RunRecord;
use std::fmt::Debug;
use std::fs;
use std::process::Command;
use verdict::summary::Summary;

fn read<D: Document>(bytes: &[u8]) -> Result<D, DocumentError> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(D::FILE), bytes).unwrap();
    D::read(folder.path())
}

/// Returns the error for these bytes, which names the file.
fn error<D: Document + Debug>(bytes: &[u8]) -> DocumentError {
    let error = read::<D>(bytes).unwrap_err();
    assert!(error.to_string().contains(D::FILE), "{error}");
    error
}

fn check<D: Document + Debug + PartialEq>() {
    let document: D = golden();
    let json = document.json().unwrap();
    if std::env::var_os("BULKHEAD_GOLDEN").is_some() {
        // Replaced atomically: other tests read it concurrently.
        record::document::write_atomically(&golden_file::<D>(), &json).unwrap();
    }
    let saved = fs::read(golden_file::<D>()).unwrap();
    assert!(
        json == saved,
        "the format of {} is not that of its golden file. If a key was added: BULKHEAD_GOLDEN=1 writes the file again, and \
         then give the key a value in it. A key that was removed or means something else needs a new version as well. Written \
         now:\n{}",
        D::FILE,
        String::from_utf8_lossy(&json)
    );

    assert_eq!(read::<D>(&json).unwrap(), document);
    let folder = tempfile::tempdir().unwrap();
    document.save(folder.path()).unwrap();
    assert_eq!(fs::read(folder.path().join(D::FILE)).unwrap(), json);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "no draft is left");

    refuses_others::<D>(&json);
    refuses_damage::<D>(&json);
    refuses_what_is_no_file::<D>();
}

fn refuses_others<D: Document + Debug + PartialEq>(json: &[u8]) {
    let text = String::from_utf8(json.to_vec()).unwrap();
    let with = |schema: &str| text.replacen(&D::schema(), schema, 1).into_bytes();
    for version in [0, D::VERSION - 1, D::VERSION + 1, u32::MAX] {
        let other = format!("{}/{version}", D::NAME);
        let error = error::<D>(&with(&other));
        assert!(error.fault == DocumentFault::Version, "{error:?}");
        let message = error.to_string();
        for word in [other.as_str(), D::schema().as_str(), "use the launcher that wrote it"] {
            assert!(message.contains(word), "{message}");
        }
    }
    // The content of another version need not parse.
    let bare = format!("{{\"schema\": \"{}/{}\"}}", D::NAME, D::VERSION + 1);
    assert_eq!(error::<D>(bare.as_bytes()).fault, DocumentFault::Version);
    for other in ["bulkhead.other/1", "bulkhead.runs/3", "", "7"] {
        let error = error::<D>(&with(other));
        assert!(error.fault == DocumentFault::Other, "{error:?}");
        assert!(error.to_string().contains(D::REMEDY), "{error}");
    }
    // A newer build of the same version may have written it.
    let known: D = read(json).unwrap();
    let more = text.replacen('{', "{\"a_key_of_tomorrow\": [1],", 1).into_bytes();
    assert_eq!(read::<D>(&more).unwrap(), known);
}

fn refuses_damage<D: Document + Debug>(json: &[u8]) {
    let end = json.trim_ascii_end().len();
    for cut in (0..end).step_by(end / 97 + 1).chain([end - 1]) {
        let error = error::<D>(&json[..cut]);
        assert!(error.fault == DocumentFault::Json, "cut at {cut}: {error:?}");
        assert!(error.to_string().contains("cut short") && error.to_string().contains(D::REMEDY), "{error}");
    }
    let garbage: [&[u8]; 6] =
        [b"null", b"[]", b"{}", b"{\"schema\": 3}", b"PK\x03\x04", b"{\"schema\": \"\x01\"}"];
    for bytes in garbage {
        let error = error::<D>(bytes);
        assert!(error.fault == DocumentFault::Json, "{bytes:?}: {error:?}");
    }
    let mut torn = json.to_vec();
    torn[json.len() / 2] = 0xFF;
    let error = error::<D>(&torn);
    let at = format!("byte {}", json.len() / 2);
    assert!(error.fault == DocumentFault::NotText && error.to_string().contains(&at), "{error:?}");
    // With any byte of a row overwritten, nothing panics.
    for at in (0..json.len()).step_by(json.len() / 61 + 1) {
        let mut scribbled = json.to_vec();
        scribbled[at] ^= 0x15;
        let _ = read::<D>(&scribbled);
    }
}

fn refuses_what_is_no_file<D: Document + Debug>() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(D::FILE);
    let absent = D::read(folder.path()).unwrap_err();
    let message = absent.to_string();
    assert!(absent.fault == DocumentFault::Absent, "{message}");
    assert!(message.contains(D::FILE) && message.contains(D::ABSENT), "{message}");
    fs::create_dir(&path).unwrap();
    assert_eq!(D::read(folder.path()).unwrap_err().fault, DocumentFault::NotAFile);
    fs::remove_dir(&path).unwrap();
    // A FIFO without a writer: opening it would block forever.
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    assert_eq!(D::read(folder.path()).unwrap_err().fault, DocumentFault::NotAFile);
}

#[test]
fn run_documents_keep_their_formats() {
    check::<RunRecord>();
    check::<Summary>();
    check::<Timeline>();
    check::<Tail>();
}

/// Version 0.2.0 wrote these keys into every plan.
#[test]
fn plan_keys_of_last_release_are_ignored() {
    fn check<D: Document + Debug + PartialEq>() {
        let known: D = golden();
        let mut old = String::from_utf8(known.json().unwrap()).unwrap();
        let retired = r#""max_waiting": null, "venue_limit": 0, "venue_limit_rejects": false, "#;
        for (new, before) in [
            (r#""tells_release":"#, retired),
            // Of `--spill` and `--repeat-schedule`.
            (r#""handles":"#, r#""spill": {"chunks": [4, 9], "core": 1}, "#),
            (r#""venue_orders":"#, r#""laps": 2, "lap_ns": 7, "#),
        ] {
            assert!(old.contains(new), "{new}");
            old = old.replacen(new, &format!("{before}{new}"), 1);
        }
        let old = old.replacen(r#""version": 3"#, r#""version": 2"#, 1);
        assert_eq!(read::<D>(old.as_bytes()).unwrap(), known);
        // Limits of a credential are those of today; others are refused.
        let limit = r#"{"scope": {"credential": 0}, "control": "credential-rate", "value": 5}"#;
        let limited = old.replacen(r#""limits": []"#, &format!(r#""limits": [{limit}]"#), 1);
        let text = String::from_utf8(read::<D>(limited.as_bytes()).unwrap().json().unwrap()).unwrap();
        assert!(limited.contains(limit) && text.contains("credential-rate"), "{text}");
        let unknown = limited.replacen("credential-rate", "credential-rote", 1);
        assert!(error::<D>(unknown.as_bytes()).to_string().contains("credential-rote"));
    }
    check::<RunRecord>();
    check::<Summary>();
}

#[test]
fn experiment_document_keeps_its_format() {
    check::<Experiment>();
}

#[test]
fn lab_tables_fit_terminal_and_match_document() {
    let lab = || Lab::from_experiment(&saved_experiment("lab")).unwrap();
    let mut wide = lab();
    for cell in &mut wide.cells {
        cell.technique = protocol::plan::Technique::from_name("crossbeam-array-queue").unwrap();
        (cell.producers, cell.consumers) = (64, 64);
    }
    let message = [&wide, &lab()].map(|lab| analysis::experiment::lab::report(lab).terminal(false)).concat();
    assert!(message.lines().all(|line| line.chars().count() <= 80), "{message}");
    // Times of valid runs only; CPU of 10,000 events; context switches of both ends per thousand,
    // and wake-ups per event.
    let units = "in nanoseconds; run in microseconds";
    for word in [
        "array-queue, process, 64 to 64",
        units,
        " 52,000 ",
        " 5,000 ",
        " 800 ",
        " 1.00 ",
        " 240 ",
        "2,000 ns",
    ] {
        assert!(message.contains(word), "{word}: {message}");
    }
    assert_eq!(wide.progress(), (2, 4), "the runs that failed are to be made again");
}

#[test]
fn board_tables_and_page_match_document() {
    let experiment = saved_experiment("board");
    let boards = Boards::from_experiment(&experiment).unwrap();
    let message = analysis::experiment::board::report(&boards).terminal(false);
    for word in [
        "poisson:10000",
        "NOT SOUND: a problem",
        "WARNING: poisson:10000: write-p99 is 60 ns, limit 50 ns",
        "33,001",
    ] {
        assert!(message.contains(word), "{word}: {message}");
    }
    assert!(message.lines().all(|line| line.chars().count() <= 80), "{message}");
    let folder = tempfile::tempdir().unwrap();
    experiment.save(folder.path()).unwrap();
    let page = analysis::html::render(folder.path()).unwrap();
    for word in ["data-torn=\"2\"", "\"name\":\"write\"", "a problem", "from due"] {
        assert!(page.contains(word), "{word}");
    }
}

#[test]
fn inconsistent_documents_are_damaged() {
    let mut run: RunRecord = golden();
    run.plan.threads[0].name = "../strategy-0".into();
    let mut timeline: Timeline = golden();
    timeline.max_ns.pop();
    let mut tail: Tail = golden();
    tail.noise.slices = 0;
    tail.noise.threads[0].slices = vec![NoiseSlice::default()];
    let run = error::<RunRecord>(&run.json().unwrap());
    let timeline = error::<Timeline>(&timeline.json().unwrap());
    let tail = error::<Tail>(&tail.json().unwrap());
    for error in [run, timeline, tail] {
        assert!(error.fault == DocumentFault::Content, "{error:?}");
    }
}

#[test]
fn outline_keeps_unfired_faults() {
    let mut summary = golden::<Summary>();
    summary.unfired_faults = vec!["kill of strategy 1: it had ended".into()];
    assert_eq!(RunOutline::from_summary(&summary).unfired_faults, summary.unfired_faults);
}
