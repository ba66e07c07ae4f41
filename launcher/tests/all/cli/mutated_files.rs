//! Files of real runs and experiments are mutated from a seed and read by every command. Each
//! prints a result or an error in plain text, in bounded time, and writes nothing outside of the
//! folder. 20 files; with `BULKHEAD_SLOW=1` 1,000, each read by every command.

use super::reading_commands;
use crate::common::{Launcher, Random, SHORT, entries, output, slow, text};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// Escape sequences of an attacker: a terminal title, a cleared screen, a forged line, a tag.
const ESCAPES: &str = "\x1b]0;owned\x07\x1b[2J\u{9b}31m\u{7f}\r\nerror: forged <script>|\u{202e}";

/// Real results: a run, a run with journals and trades, a sweep, and the other experiments'
/// documents.
fn sources(launcher: &Launcher) -> Vec<PathBuf> {
    let journalled = "--venue book --exchange process --journal process --on-death restart";
    let tiny = "--strategies 1 --venues 1 --orders 200 --window 50ms --delay fixed:1ms";
    launcher.summary(SHORT);
    launcher.summary(&format!("{} {journalled}", SHORT.replace("--delay uniform:1ms..20ms", "")));
    let out = launcher.out.path().display();
    output(&format!("sweep --isolation thread,process --repeats 1 --out {out} {tiny}")).succeeds();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../analysis/tests/all/formats/saved");
    for name in ["contain", "bill", "compare", "survey", "plan", "max-rate"] {
        let folder = launcher.out.path().join(format!("z-{name}"));
        fs::create_dir(&folder).unwrap();
        fs::copy(golden.join(name).with_extension("json"), folder.join("experiment.json")).unwrap();
    }
    launcher.folders()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let below = |path: PathBuf| if path.is_dir() { files(&path) } else { vec![path] };
    entries(folder).into_iter().flat_map(below).collect()
}

/// Replaces a randomly chosen value of a document with a hostile one.
fn replace(value: &mut Value, random: &mut Random) {
    let inner: Vec<&mut Value> = match value {
        Value::Array(elements) if !elements.is_empty() && random.below(8) > 0 => {
            elements.iter_mut().collect()
        }
        Value::Object(elements) if !elements.is_empty() && random.below(8) > 0 => {
            elements.values_mut().collect()
        }
        _ => Vec::new(),
    };
    if !inner.is_empty() {
        let at = random.below(inner.len());
        return replace(inner.into_iter().nth(at).unwrap(), random);
    }
    let nested = (0..200).fold(json!(1), |inner, _| json!([inner]));
    let hostile = [
        json!(null),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(-1),
        json!(0),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(1u64 << 53),
        json!(65_536),
        json!(4_294_967_296u64),
        json!(""),
        json!(ESCAPES),
        json!("../../../etc/passwd"),
        json!("x".repeat(100_000)),
        json!([]),
        json!({}),
        json!(true),
        nested,
        Value::Array(vec![json!(7); 10_000]),
    ];
    *value = random.choose(&hostile).clone();
}

/// Mutates a file. Returns a description of the mutation.
fn mutate(path: &Path, others: &[PathBuf], random: &mut Random) -> String {
    let mut bytes = fs::read(path).unwrap();
    let len = bytes.len();
    let (start, size) = (random.below(len), 1 + random.below(600));
    let block = start..(start + size).min(len);
    let is_json = serde_json::from_slice::<Value>(&bytes).is_ok();
    let kinds = if is_json { 16 } else { 10 };
    let mutation = match random.below(kinds) {
        0 | 1 if len > 0 => {
            for _ in 0..=random.below(16) {
                let at = random.below(len);
                bytes[at] ^= 1 << random.below(8);
            }
            "bits flipped".into()
        }
        2 => {
            bytes.truncate(start);
            format!("cut at {start}")
        }
        3 => {
            let twice = bytes[block.clone()].to_vec();
            bytes.splice(start..start, twice);
            format!("{block:?} twice")
        }
        4 => {
            bytes[block.clone()].fill(0);
            format!("{block:?} zeroed")
        }
        5 => {
            let other = random.choose(others);
            bytes = fs::read(other).unwrap();
            format!("swapped for {}", other.display())
        }
        6 => {
            bytes.splice(start..start, ESCAPES.bytes());
            format!("escapes at {start}")
        }
        7 => {
            let noise: Vec<u8> = (0..size).map(|_| random.next() as u8).collect();
            bytes.splice(block, noise);
            format!("noise at {start}")
        }
        8 => {
            fs::write(path, &bytes).unwrap();
            File::options().write(true).open(path).unwrap().set_len(3 << 30).unwrap();
            return "grown to 3 GiB".into();
        }
        9 => {
            // Replaces an aligned word: a length, a count, an index or a time.
            let words = [0, 1, u64::MAX, 1 << 63, 1 << 40, 0xFFFF, 1 << 32];
            let at = start / 8 * 8;
            let end = (at + 8).min(len);
            let word = random.choose(&words).to_le_bytes();
            bytes[at..end].copy_from_slice(&word[..end - at]);
            format!("another word at {at}")
        }
        10 => {
            let deep = 100_000;
            bytes.splice(start..start, [vec![b'['; deep], vec![b']'; deep]].concat());
            format!("nested at {start}")
        }
        11 => {
            let text = text(&bytes);
            let at = text
                .char_indices()
                .filter(|(_, c)| c.is_ascii_digit())
                .map(|(at, _)| at)
                .nth(random.below(300));
            if let Some(at) = at {
                bytes.splice(at..at, [b'9'; 30]);
            }
            "a number of 30 digits".into()
        }
        _ if is_json => {
            let mut value: Value = serde_json::from_slice(&bytes).unwrap();
            for _ in 0..=random.below(3) {
                replace(&mut value, random);
            }
            bytes = serde_json::to_vec_pretty(&value).unwrap();
            "hostile values".into()
        }
        _ => {
            bytes.clear();
            "emptied".into()
        }
    };
    fs::write(path, bytes).unwrap();
    mutation
}

/// Returns every command that reads the case's folder, and the journals and logs in it.
fn commands(results: &Path, case: &Path, outside: &Path) -> Vec<String> {
    let mut commands = reading_commands(results, case);
    commands.push(format!("export {} --perfetto {}", case.display(), outside.join("cwd/out").display()));
    commands.push(format!("sweep {} --join", case.display()));
    let journals = ["journal-venue-0", "journal-venue-1"].map(|name| case.join(name));
    for journal in journals.iter().filter(|journal| journal.exists()) {
        let actions = ["list", "verify", "dump", "cut"];
        commands.extend(actions.map(|action| format!("journal {action} {}", journal.display())));
    }
    let is_log = |path: &&PathBuf| path.extension().is_some_and(|ending| ending == "stamps");
    let logs = files(case);
    commands.extend(logs.iter().filter(is_log).map(|log| format!("inspect {} --csv", log.display())));
    commands
}

/// Returns the contents of all files outside of the case's folder, except the export's file.
fn files_outside(root: &Path, results: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths =
        files(root).into_iter().filter(|path| !path.starts_with(results) && !path.ends_with("cwd/out"));
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn mutated_folders_give_plain_answers_in_time() {
    let launcher = Launcher::new();
    let sources = sources(&launcher);
    let cases: u64 = if slow() { 1_000 } else { 20 };
    let first: u64 = std::env::var("BULKHEAD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut codes: BTreeMap<Option<i32>, usize> = BTreeMap::new();
    for seed in first..first + cases {
        let mut random = Random(seed);
        let root = tempfile::tempdir().unwrap();
        let (results, victim) = (root.path().join("results"), root.path().join("victim"));
        let case = results.join("case");
        for folder in [&results, &root.path().join("cwd")] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(&victim, "precious").unwrap();
        let source: &PathBuf = random.choose(&sources);
        copy(source, &case);
        let paths = files(&case);
        let file = random.choose(&paths).clone();
        let mutation = mutate(&file, &paths, &mut random);
        let mutation = format!("seed {seed}: {}: {mutation}", file.strip_prefix(&case).unwrap().display());
        let before = files_outside(root.path(), &results);
        let mut commands = commands(&results, &case, root.path());
        while !slow() && commands.len() > 5 {
            let at = random.below(commands.len());
            commands.remove(at);
        }
        for line in commands {
            let result = output(&line);
            let start_of_stdout: String = result.stdout.chars().take(300).collect();
            let context =
                format!("{mutation}: {line}: {:?} {start_of_stdout} {}", result.code, result.stderr);
            assert!(matches!(result.code, Some(0..=3)), "{context}");
            assert!(!result.stderr.contains("panicked"), "{context}");
            let is_plain = |c: char| matches!(c, '\n' | '\t') || !c.is_control() && c != '\u{202e}';
            assert!(result.all_output().chars().all(is_plain), "{context}");
            let has_reason = !result.stderr.trim().is_empty()
                || ["INVALID", "\"valid\": false"].iter().any(|expected| result.stdout.contains(expected));
            let is_exempt = ["journal", "delete"].iter().any(|name| line.starts_with(name));
            assert!(result.code == Some(0) || is_exempt || has_reason, "{context}");
            *codes.entry(result.code).or_default() += 1;
        }
        assert_eq!(files_outside(root.path(), &results), before, "{mutation}: something outside was written");
    }
    eprintln!("{cases} mutated files, {} commands, by exit code: {codes:?}", codes.values().sum::<usize>());
}
