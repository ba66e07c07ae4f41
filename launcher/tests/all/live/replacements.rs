//! Strategies that an operator retires or replaces while the others trade.

use super::watching::watch_once;
use crate::common::{
    Launcher, Running, assert_nothing_left, document, list, number, output, run_processes, segments, signal,
    string, wait_until,
};
use serde_json::Value;
use std::time::Duration;

const FLAGS: &str =
    "--strategies 4 --venues 2 --orders 60k --window 300s --delay uniform:5ms..50ms --idle park";

/// A run whose strategies operators change.
pub(super) struct ChangingRun {
    pub running: Running,
    /// Its id.
    pub run: String,
}

impl ChangingRun {
    pub fn start(launcher: &Launcher, more: &str) -> Self {
        Self::start_with(launcher, &format!("{FLAGS} {more}"))
    }

    fn start_with(launcher: &Launcher, flags: &str) -> Self {
        let running = launcher.start(flags);
        let channel = |name: &String| Some(name.strip_prefix("bulkhead.")?.strip_suffix(".desk")?.to_owned());
        let run = segments(running.pid()).iter().find_map(channel).unwrap();
        wait_until("the engine answers", || output(&format!("limits {run}")).code == Some(0));
        Self { running, run }
    }

    /// Kills the launcher at this time after a command for `RUN` began: nothing may be left.
    pub fn kill_launcher_during(mut self, command: &str, wait_ms: u64) {
        let (command, pid) = (command.replace("RUN", &self.run), self.running.pid());
        let changing = std::thread::spawn(move || output(&command));
        std::thread::sleep(Duration::from_millis(wait_ms));
        signal(pid, "KILL");
        changing.join().unwrap();
        self.running.kill();
        assert_nothing_left(pid);
    }

    /// Runs a command that must succeed, and returns its result. It has the time that only a hang
    /// takes.
    pub fn json(&self, command: &str, args: &str) -> Value {
        let within = if command == "add" || args.contains("--within") { "" } else { "--within 60s" };
        let result = output(&format!("{command} {} {args} {within} --json", self.run));
        assert_eq!(result.code, Some(0), "{command} {args}: {} {}", result.stdout, result.stderr);
        result.json()
    }

    /// Waits until the incarnation of a strategy that runs now has sent an order.
    pub fn wait_for_order(&self, strategy: usize) {
        wait_until("the strategy has sent an order", || {
            number(&watch_once(&self.run)["roles"][strategy]["orders"]) > 0
        });
    }

    pub fn has_process(&self, name: &str) -> bool {
        let role = format!("role {name} ");
        run_processes(self.running.pid()).iter().any(|(_, line)| line.contains(&role))
    }
}

/// The launcher is killed while an operator's change of a strategy goes on.
#[test]
fn launcher_killed_during_change_leaves_nothing() {
    for (change, wait_ms) in [
        ("replace RUN 2 --open-orders cancel --within 100s", 1),
        ("retire RUN 2 --open-orders drain --within 200ms", 12),
        ("add RUN --strategy player", 5),
    ] {
        let launcher = Launcher::new();
        let journal = "--venue book --exchange process --journal process --on-death restart";
        let run =
            ChangingRun::start(&launcher, &format!("{journal} --spare-strategies 1 --isolation process"));
        run.kill_launcher_during(change, wait_ms);
    }
}

/// A run is valid, and has lost at most the order that a killed strategy was sending.
pub(super) fn assert_nothing_lost(summary: &Value) {
    assert_eq!(summary["valid"], true, "{:#}", summary["violations"]);
    let (orders, incidents) = (&summary["orders"], list(&summary["incidents"]).len() as u64);
    let of_survivors = summary["containment"]["lost_of_survivors"].as_u64().unwrap_or(0);
    assert_eq!((&orders["duplicated"], of_survivors), (&0.into(), 0), "{orders:#}");
    assert!(number(&orders["lost"]) <= incidents, "{incidents} deaths: {orders:#}");
}

/// The incidents of a run that ends now, in which nothing was lost.
pub(super) fn incidents_at_end(launcher: &Launcher, running: Running) -> Vec<Value> {
    assert_nothing_lost(&launcher.interrupted(running));
    list(&document(&launcher.folder(), "run.json")["incidents"]).to_vec()
}

fn retire_replace_and_interrupt(more: &str, rests: bool) {
    let launcher = Launcher::new();
    let run = ChangingRun::start(&launcher, more);

    let retired = run.json("retire", "strategy-3 --open-orders cancel");
    assert!(retired["done"] == true && retired["cancelled"] == (number(&retired["open_orders"]) > 0));
    wait_until("strategy-3 has exited", || !run.has_process("strategy-3"));
    let again = format!("retire {} 3", run.run);
    output(&again).fails(2, &["strategy-3 has ended already"]);

    let old = run.running.process("strategy-1");
    // Orders that rest at an exchange do not drain.
    let replaced =
        run.json("replace", if rests { "strategy-1 --within 300ms" } else { "strategy-1 --within 30s" });
    assert!(replaced["done"] == true && replaced["cancelled"] == rests, "{replaced}");
    assert!(number(&replaced["took_ns"]) >= number(&replaced["settled_ns"]));
    wait_until("the successor runs", || {
        run_processes(run.running.pid())
            .iter()
            .any(|(pid, line)| *pid != old && line.contains("role strategy-1 "))
    });
    // More often than a strategy without progress is restarted.
    (0..10).for_each(|_| _ = run.json("replace", "2 --open-orders cancel"));
    run.json("replace", "0 --with taker --open-orders cancel");

    let incidents = incidents_at_end(&launcher, run.running);
    let of = |strategy: u64| incidents.iter().filter(move |one| one["strategy"] == strategy);
    let causes = |strategy| of(strategy).map(|one| string(&one["cause"]).to_owned()).collect::<Vec<_>>();
    assert_eq!(causes(0), ["replaced by taker, by an operator"]);
    assert_eq!(causes(1), ["replaced by an operator"]);
    assert_eq!(causes(2), ["replaced by an operator"; 10]);
    assert_eq!(causes(3), ["retired by an operator"]);
    for one in &incidents {
        // A successor may be replaced before it runs.
        if one["strategy"] != 2 {
            assert_eq!(one["restarted_ns"].is_u64(), one["strategy"] != 3, "{one}");
        }
    }
}

#[test]
fn strategies_are_retired_and_replaced_while_others_trade() {
    retire_replace_and_interrupt("--isolation process --on-death continue", false);
}

#[test]
fn sandboxed_strategies_are_replaced_with_journal() {
    if Launcher::sandboxed().is_some() {
        let journal = "--venue book --exchange process --journal process";
        retire_replace_and_interrupt(&format!("--isolation sandbox --on-death restart {journal}"), true);
    }
}

#[test]
fn run_that_cannot_change_says_why() {
    let launcher = Launcher::new();
    let run = ChangingRun::start(&launcher, "--isolation process+thread --on-death continue");
    let refused =
        |args: &str, expected: &[&str]| _ = output(&args.replace("RUN", &run.run)).fails(2, expected);
    refused("retire RUN strategy-9", &["strategy-9: no such strategy", "strategy-0 to strategy-3"]);
    refused("retire RUN 1", &["strategy-1 is a thread", "--isolation process"]);
    refused("replace RUN 0 --with makr", &["maker"]);
    refused("replace RUN 0 --with exec:./no/such/program", &["no such file"]);
    refused("retire 20000101-000000000 1", &["20000101-000000000"]);
    launcher.interrupted(run.running);
    let launcher = Launcher::new();
    let run = ChangingRun::start(&launcher, "--isolation process --on-death stop");
    output(&format!("retire {} 1", run.run)).fails(2, &["--on-death continue or restart"]);
    launcher.interrupted(run.running);
}

/// One of two strategies has no order to send, and the run waits for the other one's report.
#[test]
fn finished_strategy_cannot_be_replaced_or_retired() {
    let launcher = Launcher::new();
    let mut run = ChangingRun::start_with(
        &launcher,
        "--strategies 2 --orders 1 --window 1s --delay uniform:50s..60s --isolation process --on-death restart",
    );
    let has_exited = |strategy: &u32| !run.has_process(&format!("strategy-{strategy}"));
    wait_until("one has exited", || (0..2).any(|strategy| has_exited(&strategy)));
    let finished = (0..2).find(has_exited).unwrap();
    for what in ["replace", "retire"] {
        let why = format!("strategy-{finished} has finished: there is nothing to {what}");
        output(&format!("{what} {} {finished}", run.run)).fails(2, &[&why]);
    }
    let pid = run.running.pid();
    signal(pid, "KILL");
    run.running.kill();
    assert_nothing_left(pid);
}
