//! Untrusted text in files is escaped: it moves no cursor, forges no line and becomes no tag.

use super::reading_commands;
use crate::common::output;
use crate::fixture::{Fixture, Shape};
use protocol::index::StrategyIndex;
use record::document::Document;
use record::run::{Incident, RunOutcome, RunRecord};
use std::fs;
use std::path::Path;

/// A terminal title, a cleared screen, a forged line, a script, a table column, a bidirectional
/// override.
const HOSTILE: &str = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\u{7f}\r\nerror: forged\t<script>alert(1)</script>|![x](http://x)\u{202e}";

fn is_plain(text: &str) -> bool {
    !text.chars().any(|c| c != '\n' && c != '\t' && (c.is_control() || c == '\u{202e}'))
}

/// Runs a command and checks that its output has no control characters. Returns the output.
fn printed(line: &str) -> String {
    let result = output(line);
    assert!(matches!(result.code, Some(0..=3)), "{line}: {result:?}");
    assert!(!result.stderr.contains("panicked") && is_plain(&result.all_output()), "{line}: {result:?}");
    result.all_output()
}

fn all_commands(results: &Path) -> String {
    let run = results.join("run");
    let resuming = ["sweep --resume", "lab --resume", "resume"];
    let resuming = resuming.map(|command| format!("{command} {}", run.display()));
    reading_commands(results, &run).iter().chain(&resuming).map(|line| printed(line)).collect()
}

#[test]
fn hostile_text_in_results_is_shown_and_not_obeyed() {
    let results = tempfile::tempdir().unwrap();
    let run = results.path().join("run");
    fs::create_dir(&run).unwrap();
    let mut fixture = Fixture::new(Shape { fills: true, ..Shape::PLAIN });
    let record = &mut fixture.record;
    let hostile = || HOSTILE.to_owned();
    record.version = hostile();
    record.started = hostile();
    record.machine.hostname = hostile();
    record.machine.cpu_model = hostile();
    record.input.arrivals = hostile();
    record.warnings = vec![hostile(), hostile()];
    record.exits.iter_mut().for_each(|exit| exit.how = hostile());
    record.outcome = RunOutcome::Failed { process: hostile(), pid: 7, what: hostile() };
    record.incidents = vec![Incident {
        strategy: StrategyIndex(0),
        epoch: 0,
        pid: 4000,
        cause: hostile(),
        quarantined: None,
        fault_ns: None,
        detected_ns: 1_000,
        fenced_ns: 2_000,
        repaired_ns: Some(3_000),
        restarted_ns: None,
        ..Incident::default()
    }];
    for instrument in &mut record.plan.trading_mut().instruments {
        instrument.name = hostile();
    }
    fixture.write_to(&run);
    fs::write(run.join("strategy-9\x1b[2J.stamps"), "a log of no thread").unwrap();
    let output = all_commands(results.path());
    assert!(output.contains("\\u001b[2J"), "the text is shown escaped: {output}");
    for name in ["stages.md", "report.html"] {
        let document = fs::read_to_string(run.join(name)).unwrap();
        assert!(is_plain(&document), "{name}");
        assert!(!document.contains("<script>"), "{name}: {document}");
        assert!(document.contains("alert(1)"), "{name} shows it: {document}");
    }
    // Text in a table cell or list item cannot start a new line.
    let markdown = fs::read_to_string(run.join("stages.md")).unwrap();
    assert!(!markdown.lines().any(|line| line.starts_with("error: forged")), "{markdown}");
    assert!(!markdown.contains("![x](") && markdown.contains("!\\[x\\]("), "{markdown}");
}

#[test]
fn errors_of_damaged_documents_are_one_plain_line() {
    let results = tempfile::tempdir().unwrap();
    let run = results.path().join("run");
    fs::create_dir(&run).unwrap();
    let fixture = Fixture::new(Shape::PLAIN);
    let good = String::from_utf8(fixture.record.json().unwrap()).unwrap();
    let quoted = serde_json::to_string(HOSTILE).unwrap();
    let schema = format!("\"{}\"", RunRecord::schema());
    // An unknown value, which the parser repeats; another schema; another version, with its writer;
    // an impossible plan.
    let cases = [
        good.replacen("\"spsc-mux\"", &quoted, 1),
        good.replacen(&schema, &quoted, 1),
        good.replacen(&schema, "\"bulkhead.run/1\"", 1).replacen("\"0.1.0\"", &quoted, 1),
        good.replacen(&format!("\"{}\"", fixture.record.plan.run), &quoted, 1),
        good.replacen("\"complete\"", &quoted, 1),
        format!("{{\"schema\":{schema},\"version\":{quoted},{quoted}:{HOSTILE}"),
    ];
    for (number, case) in cases.iter().enumerate() {
        assert_ne!(*case, good, "case {number}");
        fs::write(run.join(RunRecord::FILE), case).unwrap();
        let output = all_commands(results.path());
        assert!(output.contains("run.json"), "case {number}: {output}");
        assert!(!output.lines().any(|line| line.starts_with("error: forged")), "case {number}: {output}");
    }
}

#[test]
fn hostile_text_in_journals_is_shown_and_not_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("log-00000001"), HOSTILE).unwrap();
    fs::write(folder.path().join("snapshot-00000000000000000001"), HOSTILE).unwrap();
    for action in ["list", "verify", "dump", "cut"] {
        printed(&format!("journal {action} {}", folder.path().display()));
    }
    let good = folder.path().join("good");
    let options = journal::Options { segment_bytes: 1 << 16, ..journal::Options::default() };
    let mut writer = journal::Writer::open(&good, &options, |_| {}).unwrap();
    writer.append("\u{202e}owned".as_bytes()).unwrap();
    writer.close().unwrap();
    let output = printed(&format!("journal dump {}", good.display()));
    assert!(output.contains("\\u202eowned"), "{output}");
}
