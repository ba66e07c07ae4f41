//! Strategies that an operator adds while the others trade: in the place of spares, and of
//! strategies that have ended.

use super::replacements::{ChangingRun, assert_nothing_lost};
use super::watching::watch_once;
use crate::common::{Launcher, list, number, output, signal, string, wait_until};
use serde_json::Value;

const SPARES: &str = "--spare-strategies 2 --on-death";

/// Returns strategy, epoch and kind of each life in a summary, and whether it lived to the end.
fn lives(summary: &Value) -> Vec<(u64, u64, String, bool)> {
    let life = |life: &Value| {
        assert!(number(&life["sent"]) > 0, "{life}");
        let [strategy, epoch] = ["strategy", "epoch"].map(|key| number(&life[key]));
        (strategy, epoch, string(&life["kind"]).to_owned(), life["ended"].is_null())
    };
    list(&summary["lives"]).iter().map(life).collect()
}

fn add_retire_and_add_again(more: &str) {
    let launcher = Launcher::new();
    let run = ChangingRun::start(&launcher, &format!("{SPARES} {more}"));
    assert!(!run.has_process("strategy-4") && !run.has_process("strategy-5"));
    let watched = output(&format!("watch {} --once", run.run)).succeeds();
    assert_eq!(watched.matches("spare, not started").count(), 2, "{watched}");
    output(&format!("retire {} 4", run.run)).fails(2, &["strategy-4 has ended already"]);

    let first = run.json("add", "--strategy maker");
    assert_eq!((string(&first["strategy"]), &first["done"]), ("strategy-4", &Value::Bool(true)));
    let limits = "--limits max-position=50M --limit message-rate=100k";
    let second = run.json("add", &format!("strategy-5 --strategy taker {limits}"));
    assert_eq!(second["limits"][0], "strategy-5.max-position=50000000", "{second}");
    let shown = output(&format!("limits {}", run.run)).succeeds();
    assert!(shown.contains("50000000"), "{shown}");
    output(&format!("add {} --strategy player", run.run)).fails(2, &["no free slot", "--spare-strategies"]);

    [1, 4, 5].into_iter().for_each(|strategy| run.wait_for_order(strategy));
    run.json("retire", "1 --open-orders cancel");
    wait_until("strategy-1 has exited", || !run.has_process("strategy-1"));
    let again = run.json("add", "--strategy player");
    assert_eq!(string(&again["strategy"]), "strategy-1", "the slot that is free");
    // A replaced strategy keeps its place among the lives.
    run.json("replace", "4 --open-orders cancel");
    [1, 4].into_iter().for_each(|strategy| run.wait_for_order(strategy));

    let summary = launcher.interrupted(run.running);
    assert_nothing_lost(&summary);
    let life = |strategy, epoch, kind: &str, is_last| (strategy, epoch, kind.to_owned(), is_last);
    assert_eq!(
        lives(&summary),
        [
            life(1, 0, "player", false),
            life(1, 1, "player", true),
            life(4, 1, "maker", false),
            life(4, 2, "maker", true),
            life(5, 1, "taker", true),
        ]
    );
    let report = output(&format!("report {}", launcher.folder().display())).all_output();
    assert!(report.contains("lives of strategies") && report.contains("5.1"), "{report}");
    assert!(launcher.read("report.html").contains("Lives of strategies"));
}

#[test]
fn strategies_are_added_with_journal() {
    add_retire_and_add_again("restart --isolation process --venue book --exchange process --journal process");
}

#[test]
fn sandboxed_strategies_are_added() {
    if Launcher::sandboxed().is_some() {
        add_retire_and_add_again("continue --isolation sandbox");
    }
}

#[test]
fn run_whose_spares_are_never_added_is_complete() {
    let launcher = Launcher::new();
    let load = "--strategies 2 --venues 1 --orders 2k --window 500ms --delay 1ms --idle park";
    let flags = format!("{load} {SPARES} restart");
    let shown = launcher.result(&flags).succeeds();
    assert!(shown.contains("4 strategies (2 spare)") && shown.contains("spare, not started"), "{shown}");
    let summary = launcher.newest_summary();
    assert_eq!((&summary["valid"], string(&summary["outcome"]["ended"])), (&Value::Bool(true), "complete"));
    let orders = &summary["orders"];
    let [scheduled, sent, lost] = ["scheduled", "sent", "lost"].map(|key| number(&orders[key]));
    assert!(scheduled == 2000 && sent > 900 && lost == 0, "{orders:#}");
    let missing = record::numbers::count(scheduled - sent);
    let note = format!("{missing} of 2,000 orders were not sent: 2 spare strategies were not added");
    assert!(list(&summary["notes"]).iter().any(|found| string(found) == note), "{:#}", summary["notes"]);
    assert!(!summary["reasons"].to_string().contains("not sent"), "{:#}", summary["reasons"]);
    assert_eq!(summary["lives"], Value::Null, "each strategy had one life");
    let listed = output(&format!("inspect {}", launcher.folder().display())).succeeds();
    assert!(listed.contains("strategy-3 (spare, not started)"), "{listed}");
}

/// The engine is stopped while the strategy ends, as if a busy machine gave it no core.
#[test]
fn addition_waits_for_repair_of_dead_strategy() {
    let launcher = Launcher::new();
    let run = ChangingRun::start(&launcher, "--on-death continue --isolation process --liveness 60s");
    let engine = run.running.process("engine");
    signal(engine, "STOP");
    signal(run.running.process("strategy-1"), "KILL");
    wait_until("strategy-1 is fenced", || watch_once(&run.run)["strategies"][1]["is_fenced"] == true);
    let command = format!("add {} 1 --strategy player", run.run);
    let adding = std::thread::spawn(move || output(&command));
    std::thread::sleep(std::time::Duration::from_millis(300));
    signal(engine, "CONT");
    adding.join().unwrap().succeeds();
    assert_nothing_lost(&launcher.interrupted(run.running));
}

/// Checks that additions that are impossible are refused with their reasons, and start nothing.
fn assert_impossible_additions_refused(run: &ChangingRun) {
    let refused =
        |args: &str, expected: &[&str]| _ = output(&args.replace("RUN", &run.run)).fails(2, expected);
    refused("add RUN", &["--strategy"]);
    refused("add RUN 6 --strategy maker", &["6: no such strategy", "strategy-0 to strategy-5"]);
    refused("add RUN 1 --strategy maker", &["strategy-1 is not down", "launcher replace"]);
    refused("add RUN --strategy makr", &["maker"]);
    refused("add RUN --strategy exec:./no/such/program", &["no such file"]);
    refused(
        "add RUN --strategy maker --isolation sandbox",
        &["level process", "start a run with --isolation"],
    );
    refused("add RUN --strategy maker --limits max-positon=1", &["did you mean max-position"]);
    refused("add RUN --strategy maker --limits all.max-position=1", &["launcher limits"]);
    refused("add 20000101-000000000 --strategy maker", &["20000101-000000000"]);
    assert!(!run.has_process("strategy-4"), "nothing was started");
}

#[test]
fn additions_and_replacements_that_fail_say_why() {
    let launcher = Launcher::new();
    launcher.result("--spare-strategies 1").fails(2, &["--on-death continue or restart"]);
    let run = ChangingRun::start(&launcher, &format!("{SPARES} continue --isolation process"));
    assert_impossible_additions_refused(&run);
    for change in ["add RUN --strategy exec:/bin/false", "replace RUN 2 --with exec:/bin/false"] {
        let result = output(&format!("{} --json", change.replace("RUN", &run.run)));
        let json = result.json();
        assert_eq!((result.code, &json["done"]), (Some(1), &Value::Bool(false)), "{}", result.stdout);
        let why = json["why_not"].as_str().unwrap_or_default();
        assert!(change.starts_with("replace") || why.contains("it ended before it traded"), "{why}");
    }
    wait_until("their slots are down", || !run.has_process("strategy-4") && !run.has_process("strategy-2"));
    assert_eq!(string(&run.json("add", "4 --strategy player")["strategy"]), "strategy-4");
    let summary = launcher.interrupted(run.running);
    assert_eq!(summary["valid"], true, "{:#}", summary["violations"]);
    let incidents = list(&summary["incidents"]);
    let of = |strategy: u64| incidents.iter().filter(move |one| one["strategy"] == strategy);
    // The replacement, and the end of the successor.
    assert_eq!((of(4).count(), of(2).count(), incidents.len()), (1, 2, 3), "{incidents:?}");
    for strategy in [2, 4] {
        let mut causes = of(strategy).map(|one| string(&one["cause"]));
        assert!(causes.any(|cause| cause.contains("exit 1")), "{incidents:?}");
    }
}
