//! The parts of this crate in real runs: this program is the launcher, and each of its processes.

use serde_json::Value;
use std::process::{Command, Output, Stdio};

/// `own-strategy` with these words; `OUT` stands for a folder of the test's own.
fn own(words: &str) -> (Output, tempfile::TempDir) {
    let out = tempfile::tempdir().unwrap();
    let folder = out.path().to_str().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_own-strategy"));
    command.args(words.split_whitespace().map(|word| if word == "OUT" { folder } else { word }));
    (command.stdin(Stdio::null()).output().unwrap(), out)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The summary of a run with these words, which must be valid, and its folder.
fn valid_run(words: &str) -> (Value, tempfile::TempDir) {
    let (output, out) = own(&format!("run --json --out OUT {words}"));
    assert!(output.status.success(), "{words}: {}{}", text(&output.stdout), text(&output.stderr));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["valid"], true, "{summary:#}");
    (summary, out)
}

/// The summary of a valid run of the parts with these words added.
fn run(words: &str) -> Value {
    let venue = if words.contains("--venue ") { "" } else { "--venue shallow --idle park" };
    valid_run(&format!("--strategy quoter {venue} --strategies 2 --venues 2 {words}")).0
}

#[test]
fn its_parts_run_at_every_isolation_level() {
    for isolation in ["thread", "process", "sandbox --allow-weaker-sandbox"] {
        let summary = run(&format!("--technique drain-mux --orders 400 --isolation {isolation}"));
        let (plan, trading) = (&summary["plan"], &summary["plan"]["workload"]["trading"]);
        assert_eq!(
            (&trading["strategy_kinds"][0], &trading["venue_kinds"][0], &plan["technique"]),
            (&"quoter".into(), &"shallow".into(), &"drain-mux".into())
        );
        let orders = &summary["orders"];
        assert_eq!((&orders["sent"], &orders["returned"]), (&400.into(), &400.into()), "{isolation}");
        assert!(summary["round_trip"]["p50_ns"].as_u64().unwrap() >= 1_000_000, "the venue's delay");
    }
}

#[test]
fn its_strategy_runs_with_every_technique_of_bulkhead() {
    for technique in ["spsc-mux", "array-queue", "linked", "pipe"] {
        assert_eq!(
            run(&format!("--technique {technique} --orders 200"))["orders"]["returned"],
            200,
            "{technique}"
        );
    }
}

#[test]
fn bulkheads_player_runs_with_its_technique_and_venue() {
    let words = "--technique drain-mux --venue shallow --orders 500 --window 100ms --strategies 2";
    assert_eq!(valid_run(words).0["orders"]["returned"], 500);
}

#[test]
fn killed_strategy_restarts_while_other_trades() {
    let summary = run("--technique drain-mux --orders 2000 --on-death restart --fault kill:strategy-1@300ms");
    let incidents = summary["incidents"].as_array().unwrap();
    assert_eq!(incidents.len(), 1, "{summary:#}");
    assert!(incidents[0]["repair_to_restart_ns"].as_u64().is_some(), "{incidents:#?}");
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    // The next incarnation has what the first one left of its orders.
    assert_eq!(summary["orders"]["sent"], 2000, "{}", summary["orders"]);
}

/// All three reports of every order arrive, with every level and both threadings.
#[test]
fn its_venue_of_several_reports_runs() {
    for words in [
        "--isolation process --threading shared",
        "--isolation thread --threading shared",
        "--isolation process --threading shared --stamps ends",
        "--isolation sandbox --allow-weaker-sandbox --process each-gateway --idle park",
    ] {
        let summary = run(&format!("--venue in-parts --orders 300 {words}"));
        let orders = &summary["orders"];
        let count = |what: &str| orders[what].as_u64().unwrap();
        assert_eq!((count("sent"), count("returned"), count("further_reports")), (300, 300, 600), "{words}");
        // The order's way runs to its first report, which comes at once.
        assert_eq!(summary["plan"]["workload"]["trading"]["reports_an_order"], 3);
    }
}

#[test]
fn each_report_of_an_order_is_shown() {
    let words = "--strategy quoter --venue in-parts --strategies 1 --venues 1 --orders 20 --window 200ms";
    let (_, out) = valid_run(words);
    let run = std::fs::read_dir(out.path()).unwrap().next().unwrap().unwrap().path();
    let (output, _) = own(&format!("inspect {} --order 0/7 --json", run.display()));
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let path: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(path["problems"], serde_json::json!([]));
    for report in 0..3 {
        let of_report = |step: &&Value| step["report"] == report;
        let steps = path["steps"].as_array().unwrap().iter().filter(of_report);
        // Fills come after t5.
        let points = steps.map(|step| step["point"].as_str().unwrap());
        let points: Vec<&str> = points.filter(|point| !point.starts_with("fill-")).collect();
        assert_eq!(points[points.len() - 4..], ["t5", "t6", "t7", "t8"], "{path:#}");
    }
    let (output, _) = own(&format!("inspect {} --order 0/7", run.display()));
    assert!(text(&output.stdout).contains("t8 (2)"), "{}", text(&output.stdout));
    // A quoter's orders are in no schedule, and so cannot be exported as one.
    let (output, _) = own(&format!("export {} --flow {}", run.display(), run.join("flow.csv").display()));
    assert_eq!(output.status.code(), Some(2));
    let refused = text(&output.stderr);
    assert!(refused.contains("is a quoter") && refused.contains("--strategy player"), "{refused}");
}

/// A quoter and a player, venues of one report and of three: also on one thread.
#[test]
fn strategies_and_venues_of_several_kinds_run_together() {
    let words = "--strategy quoter,player --venue shallow,in-parts --strategies 3 --venues 3 --orders 600";
    for isolation in ["process", "thread"] {
        let (summary, folder) =
            valid_run(&format!("--window 200ms {words} --isolation {isolation} --threading shared"));
        let count = |what: &str| summary["orders"][what].as_u64().unwrap();
        assert_eq!((count("sent"), count("returned")), (600, 600));
        // Only venue 1 gives three reports: more than no order there, and not every order.
        assert!(count("further_reports") > 0 && count("further_reports") < 1200, "{}", summary["orders"]);
        let trading = &summary["plan"]["workload"]["trading"];
        assert_eq!(trading["strategy_kinds"], serde_json::json!(["quoter", "player"]));
        assert_eq!(trading["venue_kinds"], serde_json::json!(["shallow", "in-parts"]));
        let run = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let (report, _) = own(&format!("report {}", run.display()));
        let report = text(&report.stdout);
        assert!(report.contains("(quoter, player)") && report.contains("(shallow, in-parts)"), "{report}");
    }
    let (refused, _) = own("run --strategy quoter,player --strategies 1 --orders 10");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("--strategy names 2 kinds"), "{}", text(&refused.stderr));
}

/// A killed strategy's open orders are cancelled between their reports; others lose nothing.
#[test]
fn a_killed_ones_orders_are_cancelled_between_their_reports() {
    for place in ["engine", "each-gateway"] {
        let words = format!(
            "--venue in-parts --strategies 2 --venues 2 --orders 4000 --window 500ms --idle park \
             --isolation process --threading shared --process {place} --on-death continue --fault kill:strategy-1@250ms"
        );
        let cancelled = || {
            let (summary, _out) = valid_run(&words);
            let count = |what: &str| summary["orders"][what].as_u64().unwrap();
            assert_eq!(summary["incidents"].as_array().unwrap().len(), 1, "{summary:#}");
            assert_eq!(summary["containment"]["lost_of_survivors"], 0);
            let ended: u64 =
                ["returned", "rejected", "cancelled", "orphaned", "lost"].map(count).iter().sum();
            assert_eq!(count("sent"), ended, "{}", summary["orders"]);
            // Two behind the first of every order of the other one.
            let of_the_other = summary["plan"]["workload"]["trading"]["orders"][0].as_u64().unwrap();
            assert!(count("further_reports") >= 2 * of_the_other, "{}", summary["orders"]);
            count("cancelled")
        };
        // Who had no core until it was killed had nothing open: none of its orders was taken.
        assert!((0..3).any(|_| cancelled() > 0), "many were open");
    }
}

#[test]
fn crash_within_push_is_repaired() {
    for step in ["half-written", "written"] {
        let fault = format!("kill:strategy-1@push:{step}:100");
        let words = format!("--technique drain-mux --orders 1000 --on-death restart --fault {fault}");
        assert_eq!(run(&words)["incidents"].as_array().unwrap().len(), 1, "{step}");
    }
}

#[test]
fn it_is_compared_with_bulkheads_own() {
    let load =
        "--strategy quoter --venue shallow --strategies 2 --venues 2 --orders 300 --repeats 2 --idle park";
    let (output, _out) =
        own(&format!("compare --a technique=drain-mux --b technique=spsc-mux {load} --out OUT"));
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("drain-mux"), "{}", text(&output.stdout));
}

/// Returns the files that an experiment wrote; those for people name strategy and venue.
fn documents(words: &str, names: [&str; 4]) -> [String; 4] {
    let load = "--strategy quoter --venue shallow --venues 2 --idle park";
    let (output, out) = own(&format!("{words} {load} --report full --out OUT"));
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let folder = std::fs::read_dir(out.path()).unwrap().next().unwrap().unwrap().path();
    let texts = names.map(|name| std::fs::read_to_string(folder.join(name)).unwrap());
    for (name, text) in names.iter().zip(&texts).filter(|(name, _)| !name.ends_with("csv")) {
        assert!(text.contains("quoter") && text.contains("shallow"), "{name}: {text}");
    }
    let message = text(&output.stdout).replace(char::is_whitespace, " ");
    assert!(message.contains("strategy quoter,") && message.contains("venue shallow,"), "{message}");
    texts
}

#[test]
fn a_bill_is_made_of_its_parts() {
    let words = "bill --technique spsc-mux,drain-mux --isolation thread,process --strategies 1 --orders 100 --repeats 2";
    let names = ["experiment.json", "bill.md", "bill.csv", "report.html"];
    let [bill, page, table, _] = documents(words, names);
    let bill: Value = serde_json::from_str(&bill).unwrap();
    let rows = bill["rows"].as_array().unwrap();
    let (same_settings, rows): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["is_aa_test"] == true);
    // A pair that dropped out is replaced: half of the repeats more, at most.
    assert!([8, 12].contains(&rows.len()), "{bill:#}");
    assert_eq!(same_settings.len(), rows.len() / 4, "{bill:#}");
    for isolation in ["thread", "process"] {
        for technique in ["spsc-mux", "drain-mux"] {
            let values = serde_json::json!({ "isolation": isolation, "technique": technique });
            let runs = || rows.iter().filter(|row| row["values"] == values);
            assert_eq!(runs().count(), rows.len() / 4, "{bill:#}");
            let is_measured = |row: &&Value| row["figures"]["measures.rt_venue.p50_ns"].is_number();
            assert!(runs().all(is_measured), "{bill:#}");
            for document in [&page, &table] {
                let first_cells = |line: &&str| {
                    let cells = line.split(['|', ',']).map(str::trim).filter(|cell| !cell.is_empty());
                    cells.take(2).eq([isolation, technique])
                };
                let has_row = document.lines().any(|line| first_cells(&line));
                assert!(has_row, "{isolation}/{technique}: {document}");
            }
        }
    }
}

#[test]
fn containment_of_own_parts_is_tested() {
    // A deadline that a busy machine keeps.
    let load = "--isolation process --orders 600 --liveness 5s";
    let words = format!("contain --technique drain-mux {load} --fault kill@order:20;kill@push:written:20");
    let names = ["experiment.json", "contain.md", "contain.csv", "report.html"];
    let [contain, page, _, _] = documents(&words, names);
    let contain: Value = serde_json::from_str(&contain).unwrap();
    // A row's outcome is among the figures of its run.
    let rows = contain["rows"].as_array().unwrap();
    let figure = |row: &Value, name: &str| row["figures"][format!("strategy.{name}")].clone();
    let tried = ["kill in a push, entered", "kill in a push, written"];
    assert_eq!(rows.iter().map(|row| figure(row, "fault")).collect::<Vec<_>>(), tried);
    for (row, fault) in rows.iter().zip(tried) {
        assert_eq!(figure(row, "technique"), "drain-mux");
        // A busy machine makes somebody wait who would not have.
        assert!(["yes", "waited"].contains(&figure(row, "contained").as_str().unwrap()), "{row:#}");
        assert_eq!(figure(row, "lost_of_others"), 0, "{row:#}");
        assert!(figure(row, "repair_ns").is_u64() && figure(row, "restart_ns").is_u64(), "{row:#}");
        assert!(page.contains(fault), "{fault}: {page}");
    }
}

#[test]
fn its_technique_is_simulated() {
    let (found, _) = own("simulate --seeds 50 --technique drain-mux");
    assert!(found.status.success(), "{}", text(&found.stderr));
    assert!(
        text(&found.stdout).lines().any(|line| line.starts_with("drain-mux ")),
        "{}",
        text(&found.stdout)
    );
    // Among all of them, if none is named.
    let (all, _) = own("simulate --seeds 40 --json");
    let all: Value = serde_json::from_slice(&all.stdout).unwrap();
    assert!(all["by"].as_array().unwrap().iter().any(|tally| tally["technique"] == "drain-mux"), "{all:#}");
}

#[test]
fn its_names_are_known_on_the_command_line() {
    let (help, _) = own("help run --all");
    let help = text(&help.stdout);
    for name in ["quoter", "shallow", "drain-mux"] {
        assert!(help.contains(name), "{name}: {help}");
    }
    for (words, hints) in [
        ("run --strategy quotr", ["quotr", "quoter"]),
        ("run --venue shalow", ["shalow", "shallow"]),
        ("run --technique drain-mix", ["drain-mix", "drain-mux"]),
    ] {
        let (output, _) = own(words);
        assert_eq!(output.status.code(), Some(2), "{words}");
        let stderr = text(&output.stderr);
        assert!(hints.iter().all(|hint| stderr.contains(hint)), "{stderr}");
    }
}

#[test]
fn its_technique_passes_the_suite_that_bulkheads_own_pass() {
    if let Err(failure) = launcher::techniques::conformance::check::<own_strategy::DrainMux>() {
        panic!("{failure}");
    }
}

#[test]
fn a_name_that_is_taken_or_none_is_refused() {
    use launcher::Harness;
    use own_strategy::{InParts, Quoter};
    let player = Harness::new().strategy("player", Quoter::new).install().unwrap_err().to_string();
    assert!(player.contains("another strategy of the name player"), "{player}");
    let twice = Harness::new().venue("one", InParts::new).venue("one", InParts::new).install();
    assert!(twice.unwrap_err().to_string().contains("another venue of the name one"));
    let none = Harness::new().strategy("My Strategy", Quoter::new).install().unwrap_err().to_string();
    assert!(none.contains("\"My Strategy\" is not a valid name for a strategy"), "{none}");
}
