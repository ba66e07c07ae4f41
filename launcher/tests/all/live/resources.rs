//! Limits of single strategies: each is met by its strategy alone, and reported by name.

use super::contained::CONTAINER;
use crate::common::{CommandResult, Launcher, SHORT, list, output, skip, string};
use serde_json::Value;

const FLAGS: &str = "--technique spsc-mux --strategies 3 --orders 1500 --window 1s --delay uniform:1ms..20ms \
                     --idle park --on-death continue --liveness 5s";

/// Returns the levels at which strategies have limits and that are available here.
fn levels() -> Vec<&'static str> {
    let all = [
        ("--isolation process", true),
        ("--isolation sandbox", Launcher::sandboxed().is_some()),
        (CONTAINER, Launcher::contained().is_some()),
    ];
    all.into_iter().filter(|(_, is_available)| *is_available).map(|(level, _)| level).collect()
}

/// Returns what enforces a limit of strategy 1 in the plan of a run.
fn keeper<'a>(summary: &'a Value, limit: &str) -> &'a str {
    string(&summary["plan"]["workload"]["trading"]["resources"][1][limit]["keeper"])
}

/// Returns the cause of the only incident, which is of strategy 1.
fn only_cause(context: &str, summary: &Value) -> String {
    let [incident] = list(&summary["incidents"]) else { panic!("{context}: {:#}", summary["incidents"]) };
    assert_eq!(incident["strategy"], 1, "{context}");
    assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{context}");
    string(&incident["cause"]).to_owned()
}

#[test]
fn strategy_that_meets_its_memory_limit_is_named() {
    for level in levels() {
        let summary = Launcher::new()
            .summary(&format!("{FLAGS} {level} --memory strategy-1=64MiB --fault leak:strategy-1@200ms"));
        let cause = only_cause(level, &summary);
        let notes = summary["notes"].to_string();
        assert!(notes.contains("limits of strategy-1: memory 64MiB ("), "{level}: {notes}");
        match keeper(&summary, "memory") {
            "rlimit" => assert!(cause.contains("SIGABRT"), "{level}: {cause}"),
            keeper => {
                let named = format!("it met its limit: memory 64MiB ({})", keeper.replace('-', " "));
                assert!(cause.contains("SIGKILL") && cause.contains(&named), "{level}: {cause}");
            }
        }
    }
}

/// The same leak under a limit that it does not reach, and a neighbor's limit.
#[test]
fn limit_of_one_strategy_does_not_bind_another() {
    let summary = Launcher::new().summary(&format!(
        "{FLAGS} --isolation process --memory strategy-0=64MiB --memory strategy-1=8GiB \
         --fault kill:strategy-1@200ms"
    ));
    assert!(!only_cause("process", &summary).contains("it met its limit"), "{:#}", summary["incidents"]);
}

/// Returns the cause with which a fault that exhausts a resource ends, and the reasons of the run;
/// `None` if this machine cannot enforce the limit.
fn exhausted(level: &str, flags: &str, fault: &str) -> Option<(String, String)> {
    let launcher = Launcher::new();
    let result = launcher.result(&format!("{FLAGS} {level} {flags} --fault {fault}:strategy-1@200ms --json"));
    if result.code == Some(2) && result.stderr.contains("there is no writable cgroup") {
        skip(&result.stderr);
        return None;
    }
    assert_eq!(result.code, Some(0), "{level} {flags}: {}", result.all_output());
    let summary = result.json();
    Some((only_cause(flags, &summary), summary["reasons"].to_string()))
}

#[test]
fn limits_of_files_and_processes_are_enforced_and_named() {
    let levels = levels();
    // In a sandbox every attempt is refused.
    for level in levels.iter().filter(|level| !level.contains("sandbox")) {
        let (cause, _) = exhausted(level, "--files strategy-1=64", "descriptors").unwrap();
        assert_eq!(cause, "exit 41", "{level}: refused");
        let Some((cause, reasons)) = exhausted(level, "--processes strategy-1=16", "forkbomb") else {
            continue;
        };
        assert_eq!(cause, "exit 41", "{level}: refused");
        assert!(reasons.contains("strategy-1 met its limit: processes 16 ("), "{level}: {reasons}");
    }
}

#[test]
fn strategy_that_meets_its_cpu_limit_is_named() {
    for level in levels() {
        let spinning = FLAGS.replace("--idle park", "--idle spin");
        let result = Launcher::new().result(&format!("{spinning} {level} --cpu strategy-1=0.05 --json"));
        if result.code == Some(2) {
            result.fails(2, &["--cpu for strategy-1", "Leave --cpu out"]);
            return skip("there is no cgroup with the controller cpu");
        }
        let reasons = result.json()["reasons"].to_string();
        assert!(reasons.contains("strategy-1 met its limit: cpu 0.05 (cgroup"), "{level}: {reasons}");
        assert!(!reasons.contains("strategy-0 met its limit"), "{level}: {reasons}");
    }
}

#[test]
fn impossible_limits_are_refused_with_remedy() {
    let launcher = Launcher::new();
    let refused = |flags: &str, expected: &[&str]| -> CommandResult {
        launcher.result(&format!("{SHORT} {flags}")).fails(2, expected)
    };
    refused(
        "--isolation thread --memory 1GiB",
        &["--memory with --isolation thread", "Use --isolation process"],
    );
    refused("--isolation thread,process --files strategy-0=64", &["--files strategy-0: it is a thread"]);
    refused("--isolation process --memory strategy-9=1GiB", &["the run has strategies 0 to 1"]);
    refused("--isolation process --cpu none", &["--cpu", "\"none\" is not a number of CPUs", "1.5"]);
    refused("--isolation process --processes strategy-1.files=9", &["is another setting than --processes"]);
}

#[test]
fn limits_of_config_file_are_in_plan() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("limits.yaml");
    std::fs::write(&file, "memory:\n  - 512MiB\n  - strategy-1=64MiB\nfiles: strategy-1.files=128\n")
        .unwrap();
    let shown = output(&format!("run {SHORT} --isolation process --dry-run --config {}", file.display()));
    let plan = shown.succeeds();
    for line in ["strategy-0: memory 512MiB (", "strategy-1: memory 64MiB ("] {
        assert!(plan.contains(line), "{plan}");
    }
    assert!(plan.contains("files 128 (rlimit)"), "{plan}");
}
