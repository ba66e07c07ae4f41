//! Strategies with protection keys: they trade as threads, and a mistake of one ends that one
//! alone.

use crate::common::{Launcher, document, list, number, output, string};

const LOAD: &str = "--isolation keys --strategies 3 --venues 2 --orders 3000 --window 1s --delay \
                    uniform:1ms..5ms --idle park";

#[test]
fn strategies_with_keys_trade() {
    let Some(launcher) = Launcher::with_keys() else { return };
    for flags in [
        "--isolation keys",
        "--isolation keys --technique array-queue --idle yield",
        "--isolation keys --strategies 16",
        "--isolation thread+keys+process --technique linked",
    ] {
        let summary = launcher.summary(&format!("--strategies 3 --orders 3000 --window 500ms {flags}"));
        assert_eq!(summary["outcome"]["ended"], "complete", "{flags}: {:#}", summary["outcome"]);
        assert_eq!(number(&summary["orders"]["returned"]), 3000, "{flags}: {:#}", summary["orders"]);
    }
}

#[test]
fn plan_shows_shared_keys() {
    if Launcher::with_keys().is_none() {
        return;
    }
    let shown = |flags: &str| output(&format!("run --dry-run {flags}")).succeeds().replace("\n ", " ");
    let each = shown("--isolation thread+keys --strategies 4");
    assert!(each.contains("2 protection keys: each strategy of level keys has its own."), "{each}");
    let shared = shown("--isolation keys --strategies 16");
    let parts: Vec<&str> = shared.split_ascii_whitespace().collect();
    let text = parts.join(" ");
    assert!(text.contains("14 protection keys for 16 strategies"), "{text}");
    assert!(text.contains("strategy-0+strategy-14, strategy-1+strategy-15."), "{text}");
}

#[test]
fn mistake_ends_its_strategy_alone() {
    for (fault, cause) in [
        ("segv", "protection key: strategy-1 wrote to 0x"),
        ("abort", "protection key: strategy-1 wrote to 0x"),
        ("exit", "which would end the process"),
        ("panic", "panicked: injected"),
        ("scribble", "protection key: strategy-1 wrote to 0x"),
        ("wild-ring", "segment submit-0"),
        ("wild-log", "segment thread-strategy-0"),
        ("wild-heap", "strategy-0's heap"),
        ("wild-engine", "segment thread-engine"),
        ("wild-code", "code of "),
    ] {
        let Some(launcher) = Launcher::with_keys() else { return };
        // A scribble may overwrite its own log's record of it first: then it counts as not fired.
        let flags = format!("{LOAD} --on-death restart --allow-unfired --fault {fault}:strategy-1@300ms");
        let summary = launcher.summary(&flags);
        assert_eq!(summary["outcome"]["ended"], "complete", "{fault}: {:#}", summary["outcome"]);
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{fault}");
        let incidents = list(&summary["incidents"]);
        assert_eq!(incidents.len(), 1, "{fault}: {incidents:#?}");
        assert_eq!(incidents[0]["strategy"], 1, "{fault}");
        assert!(string(&incidents[0]["cause"]).contains(cause), "{fault}: {incidents:#?}");
        assert!(incidents[0]["repair_to_restart_ns"].is_u64(), "{fault}: {incidents:#?}");
        let record = document(&launcher.folder(), "run.json");
        assert_eq!(record["exits"][0]["how"], "exit 0", "{fault}: {:#}", record["exits"]);
    }
}

#[test]
fn mistake_ends_the_run_with_on_death_stop() {
    let Some(launcher) = Launcher::with_keys() else { return };
    let flags = format!("{LOAD} --on-death stop --fault segv:strategy-1@300ms");
    launcher.result(&flags).fails(1, &["strategy-1"]);
    assert_eq!(launcher.newest_summary()["outcome"]["ended"], "failed");
}
