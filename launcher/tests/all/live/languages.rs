//! The same strategy in every language in one run, and the effect of one's garbage collection on
//! the others. Python and Java need `.ci/languages.sh`; without it their tests print a message and
//! are skipped.

use super::programs::{BOOK, Program, checked_fills, libraries, planned, with_player};
use crate::common::{Launcher, list, number, output_of, skip, string, wait_until};
use merge::{self, MergedRun};
use protocol::index::StrategyIndex;
use protocol::plan::Role;
use record::document::Document;
use record::run::RunRecord;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

fn bindings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../contrib/bindings")
}

/// Returns the path of a file that `.ci/languages.sh` creates; `None`, with a message, if it is
/// missing.
fn prepared(figure: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/languages").join(figure);
    if path.exists() {
        return Some(path);
    }
    skip(&format!("there is no {}: bash .ci/languages.sh makes it where it can", path.display()));
    None
}

/// Returns the modification time of a file.
fn modified_at(path: &Path) -> Option<std::time::SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}

/// Returns the `exec:` strategy of a Python script, without arguments.
fn python(script: &str) -> Option<String> {
    let (python, installed) = (prepared("python/bin/python")?, prepared("python/installed")?);
    if modified_at(&installed) < modified_at(&libraries().join("libbulkhead.so")) {
        skip("the Python package is older than the library: bash .ci/languages.sh makes it again");
        return None;
    }
    Some(format!("exec:{} {}", python.display(), bindings().join("python").join(script).display()))
}

/// Java, with everything in contrib/bindings/java compiled.
struct Java {
    java: PathBuf,
    classes: PathBuf,
}

impl Java {
    fn new() -> Option<Self> {
        static COMPILED: OnceLock<()> = OnceLock::new();
        let (java, javac) = (prepared("java/bin/java")?, prepared("java/bin/javac")?);
        let classes = Path::new(env!("CARGO_TARGET_TMPDIR")).join("java");
        COMPILED.get_or_init(|| {
            let folders = ["src/bulkhead", "examples"].map(|folder| bindings().join("java").join(folder));
            let files = folders.iter().flat_map(|folder| std::fs::read_dir(folder).unwrap().flatten());
            let files = files.map(|entry| entry.path());
            output_of(Command::new(javac).arg("-d").arg(&classes).args(files)).succeeds();
        });
        Some(Self { java, classes })
    }

    fn exec(&self, class: &str) -> String {
        let library = libraries().join("libbulkhead.so");
        format!(
            "exec:{} -Xmx64m -XX:+UseSerialGC --enable-native-access=ALL-UNNAMED -Dbulkhead.library={} -cp {} {class}",
            self.java.display(),
            library.display(),
            self.classes.display()
        )
    }
}

/// Returns the `exec:` strategy in Rust, which `cargo test --workspace` builds, if it is not older
/// than the library.
fn rust() -> Option<String> {
    let path = libraries().join("../examples/strategy");
    if modified_at(&path) < modified_at(&libraries().join("libbulkhead.so")) {
        skip(&format!(
            "{} is old or not there: cargo build -p launcher -p bindings --example strategy",
            path.display()
        ));
        return None;
    }
    Some(format!("exec:{}", path.display()))
}

#[test]
fn strategies_in_every_language_agree_with_engine() {
    let (c, cpp) = (Program::compile("examples/c/strategy.c"), Program::compile("examples/cpp/strategy.cpp"));
    let java = Java::new();
    let commands: Vec<String> = [
        c.as_ref().map(|c| c.exec("")),
        cpp.as_ref().map(|cpp| cpp.exec("")),
        rust(),
        python("examples/strategy.py"),
        java.as_ref().map(|java| java.exec("Strategy")),
    ]
    .into_iter()
    .flatten()
    .collect();
    if commands.is_empty() {
        return;
    }
    let strategies = commands.len() + 1;
    let scheduled_commands: Vec<String> =
        commands.iter().map(|command| format!("{command} 400000")).collect();
    // Closed-loop, and open-loop on a schedule.
    for programs in [&commands, &scheduled_commands] {
        let launcher = Launcher::new();
        let summary = launcher.summary(&format!(
            "{BOOK} --strategies {strategies} --strategy 'player,{}' --orders {} --idle park --technique spsc-mux",
            programs.join(","),
            400 * strategies
        ));
        let rows = list(&summary["strategies"]);
        assert_eq!(rows.len(), strategies, "{rows:#?}");
        for (strategy, program) in (1..).zip(programs) {
            checked_fills(&launcher, &summary, strategy);
            let row = &rows[strategy];
            let sent = row["sent"].as_i64().unwrap();
            assert_eq!((string(&row["kind"]), sent), (program.as_str(), planned(&summary, strategy)));
            let usage = |figure: &str| number(&row["usage"][figure]);
            assert!(usage("startup_ns") > 0 && usage("cpu_ns") > usage("startup_cpu_ns"), "{row:#}");
            assert!(usage("peak_bytes") > usage("shared_bytes") && usage("shared_bytes") > 0, "{row:#}");
            assert_eq!(number(&row["slip"]["count"]) > 0, program.ends_with(" 400000"), "{row:#}");
        }
    }
}

/// Returns begin and end of the pauses that a program reported, in nanoseconds since the start of
/// the run.
fn pauses(launcher: &Launcher) -> Vec<(u64, u64)> {
    let stderr = launcher.read("strategy-1.stderr");
    let pause = |line: &str| {
        let mut numbers = line.strip_prefix("pause ")?.split(' ').map_while(|word| word.parse().ok());
        Some((numbers.next()?, numbers.next()?))
    };
    stderr.lines().filter_map(pause).collect()
}

/// Counts orders of a strategy that were sent and returned within one of the pauses, given in
/// ticks.
fn count_served(merged: &MergedRun, strategy: u16, times: &[(u64, u64)]) -> usize {
    let own_orders = merged.measured().filter(|(id, _)| id.strategy().0 == strategy);
    let is_within = |from: u64, to: u64| times.iter().any(|(began, ended)| *began <= from && to <= *ended);
    own_orders.filter(|(_, row)| is_within(row.began(), row.ended())).count()
}

/// Checks that a program's pauses only delay the program, until the player got a core during one.
fn assert_pauses_are_contained(program: &str) {
    wait_until("the player trades during a pause", || is_served_during_pauses(program));
}

/// Makes a run with a player and a program that collects garbage every 40 orders, and checks the
/// pauses. Returns whether the player traded during one.
fn is_served_during_pauses(program: &str) -> bool {
    let launcher = Launcher::new();
    let kinds = with_player(&format!("{program} 0 40"));
    let load = "--orders 4000 --window 2s --idle park --venue book --venues 1 --technique spsc-mux";
    let summary = launcher.summary(&format!("{kinds} {load}"));
    let folder = launcher.folder();
    let record = RunRecord::read(&folder).unwrap();
    let merged = merge::merge(folder.as_path(), &record, |_, _| ()).unwrap();
    let ticks = |ns: u64| record.clock.start_ticks + (ns as f64 / record.clock.ns_per_tick) as u64;
    let pauses: Vec<(u64, u64)> =
        pauses(&launcher).into_iter().map(|(from, to)| (ticks(from), ticks(to))).collect();
    assert!(pauses.len() >= 20, "{program}: {pauses:?}");
    assert_eq!(count_served(&merged, 1, &pauses), 0, "{program}: strategy 1 traded during its own pause");
    assert_eq!(summary["containment"], serde_json::Value::Null);
    // Each pause is a gap of the program's thread, and the cause of its orders' delay.
    let thread = record.plan.thread_of(Role::Strategy(StrategyIndex(1))).unwrap();
    let gaps = &merged.threads[thread].gaps;
    // Tolerance for rounding, on either side.
    let tolerance = ticks(1_000) - ticks(0);
    let is_gap = |(from, to): &&(u64, u64)| {
        gaps.iter().any(|gap| gap.ended - gap.ticks <= from + tolerance && gap.ended + tolerance >= *to)
    };
    assert_eq!(pauses.iter().filter(is_gap).count(), pauses.len(), "{program}: {gaps:?}");
    let tail = &summary["strategies"][1]["tail"];
    assert!(number(&tail["touched"]) > 0 && number(&tail["causes_ns"][0]) > 0, "{program}: {tail}");
    count_served(&merged, 0, &pauses) > 0
}

#[test]
fn python_collector_pause_stays_in_its_strategy() {
    let Some(python) = python("examples/strategy.py") else { return };
    assert_pauses_are_contained(&python);
}

#[test]
fn java_collector_pause_stays_in_its_strategy() {
    let Some(java) = Java::new() else { return };
    assert_pauses_are_contained(&java.exec("Strategy"));
}

#[test]
fn templates_trade() {
    let java = Java::new();
    let all = [python("examples/template.py"), java.as_ref().map(|java| java.exec("Template"))];
    for program in all.into_iter().flatten() {
        let launcher = Launcher::new();
        let kinds = with_player(&program);
        let summary = launcher.summary(&format!("{BOOK} {kinds} --orders 2000 --idle park"));
        assert_eq!(summary["strategies"][1]["sent"], 10, "{program}");
        assert_eq!(summary["outcome"]["ended"], "complete", "{program}");
    }
}

#[test]
fn uncaught_python_exception_ends_its_strategy() {
    let Some(python) = python("examples/strategy.py") else { return };
    let python = python.split(' ').next().unwrap().trim_start_matches("exec:").to_owned();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("mistakes.py");
    let source = "import bulkhead\nwith bulkhead.Line() as line:\n    assert line.reports.dtype == bulkhead.layout.REPORT\n    \
                  try:\n        line.send(side=9)\n    except bulkhead.Error as error:\n        \
                  assert error.args[1] == bulkhead.layout.BAD_ORDER and error.args[0].startswith('side: '), error.args\n        \
                  print('refused', flush=True)\n    raise RuntimeError('on purpose')\n";
    std::fs::write(&script, source).unwrap();
    let alone = output_of(Command::new(&python).arg(&script));
    assert!(alone.stderr.contains("BULKHEAD_RUN is not set"), "{}", alone.stderr);
    let launcher = Launcher::new();
    let kinds = with_player(&format!("exec:{python} {}", script.display()));
    let summary = launcher.summary(&format!("{BOOK} {kinds} --orders 200 --idle park --on-death continue"));
    let stderr = launcher.read("strategy-1.stderr");
    assert!(stderr.starts_with("refused\n") && stderr.contains("RuntimeError: on purpose"), "{stderr}");
    let cause = string(&summary["incidents"][0]["cause"]);
    assert!(cause.contains("exit 1"), "{cause}");
}
