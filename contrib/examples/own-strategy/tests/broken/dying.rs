//! Strategies that panic or hang, as threads of the engine's process: they die alone.

use crate::{launcher, text};
use launcher::protocol::wire::Report;
use launcher::strategy::{Context, Orders, Player, Strategy};
use serde_json::Value;
use std::time::Duration;

/// The report at which a strategy of these has its fault.
const FAULTY_REPORT: u64 = 200;
/// A multiple of the deadline: the strategy counts as hung, and runs again before the run is over.
const SLEEP: Duration = Duration::from_millis(600);
const LOAD: &str =
    "--isolation thread --strategies 3 --venues 2 --delay uniform:1ms..5ms --idle park --max-open 8";
/// Longer than a faulty strategy sleeps.
const LONG: &str = "--orders 6000 --window 1500ms";
/// Five times the orders until the fault, for each strategy.
const SHORT: &str = "--orders 3000 --window 750ms";
/// Techniques of each kind: a ring of each producer, a shared one, and two crates.
pub const TECHNIQUES: [&str; 4] = ["spsc-mux", "array-queue", "crossbeam-array-queue", "rtrb-mux"];
/// A backtrace may take its time on a busy machine: the default deadline is left to a panic.
const DEADLINE: &str = "--liveness 150ms";

/// What a faulty strategy does at its report.
#[derive(Clone, Copy)]
pub enum Act {
    Panic,
    /// Sleeps past its deadline, then continues.
    Sleep,
    /// Panics in the destructor of what it panicked with.
    PanicTwice,
}

/// The built-in player with a fault.
pub struct Dying {
    player: Player,
    act: Act,
    reports: u64,
}

impl Dying {
    pub fn new(context: &Context, act: Act) -> Self {
        Self { player: context.player(), act, reports: 0 }
    }
}

/// Panics when it is dropped.
struct PanicsInDrop;

impl Drop for PanicsInDrop {
    fn drop(&mut self) {
        panic!("in a destructor");
    }
}

impl Strategy for Dying {
    fn on_cycle(&mut self, orders: &mut impl Orders) -> usize {
        self.player.on_cycle(orders)
    }

    fn on_report(&mut self, _: &Report, _: &mut impl Orders) {
        self.reports += 1;
        if self.reports == FAULTY_REPORT {
            match self.act {
                Act::Panic => panic!("report {FAULTY_REPORT} is too much"),
                Act::Sleep => std::thread::sleep(SLEEP),
                Act::PanicTwice => std::panic::panic_any(PanicsInDrop),
            }
        }
    }

    fn next_due(&self) -> u64 {
        self.player.next_due()
    }

    fn finished(&self) -> bool {
        self.player.finished()
    }
}

/// The summary of a run in which the second of three strategies is of this kind.
fn run(kind: &str, flags: &str) -> Value {
    run_in("OUT", kind, flags)
}

fn run_in(folder: &str, kind: &str, flags: &str) -> Value {
    let words = format!("run --json --out {folder} {LOAD} --strategy player,{kind},player {flags}");
    let found = launcher(&words, None);
    let summary: Value = serde_json::from_slice(&found.stdout)
        .unwrap_or_else(|error| panic!("{kind} {flags}: {error}: {}", text(&found.stderr)));
    assert_eq!(found.status.code(), Some(0), "{kind} {flags}: {}", text(&found.stderr));
    summary
}

/// Checks that the run was complete and valid, and that the others have every report. Returns the
/// incidents.
fn incidents_beside_survivors(summary: &Value) -> &Vec<Value> {
    let state = (&summary["outcome"]["ended"], &summary["valid"]);
    assert_eq!(
        state,
        (&"complete".into(), &true.into()),
        "{:#} {:#}",
        summary["reasons"],
        summary["outcome"]
    );
    assert_eq!(summary["containment"]["lost_of_survivors"], 0);
    for index in [0, 2] {
        let planned = &summary["plan"]["workload"]["trading"]["orders"][index];
        assert_eq!(&summary["strategies"][index]["sent"], planned, "strategy {index}");
    }
    let incidents = summary["incidents"].as_array().unwrap();
    for end in ["lost", "cancelled", "orphaned"] {
        let of_dead: u64 = incidents.iter().filter_map(|it| it["orders"][end].as_u64()).sum();
        assert_eq!(summary["orders"][end], of_dead, "{end}: every other order has its report");
    }
    assert!(incidents.iter().all(|incident| incident["strategy"] == 1), "{incidents:#?}");
    incidents
}

fn cause(incident: &Value) -> &str {
    incident["cause"].as_str().unwrap()
}

pub fn a_panicking_thread_leaves_others_trading(technique: &str) {
    for kind in ["panics", "panics-twice"] {
        let summary = run(kind, &format!("{SHORT} --technique {technique} --on-death continue"));
        let incidents = incidents_beside_survivors(&summary);
        assert_eq!(incidents.len(), 1, "{technique}: {incidents:#?}");
        let cause = cause(&incidents[0]);
        assert!(cause.contains("its thread ended; its message: \"panicked: "), "{cause}");
        assert!(incidents[0]["detect_to_repair_ns"].is_u64(), "{incidents:#?}");
    }
}

pub fn a_panicking_thread_is_restarted(technique: &str) {
    let summary = run("panics", &format!("{SHORT} --technique {technique} --on-death restart"));
    let incidents = incidents_beside_survivors(&summary);
    // Each incarnation has the fault, and has traded before: it is restarted each time.
    assert!(incidents.len() > 1, "{technique}: {incidents:#?}");
    for (epoch, incident) in incidents.iter().enumerate() {
        assert_eq!(incident["epoch"], epoch, "{incident:#}");
        assert!(cause(incident).contains("report 200 is too much"), "{incident:#}");
        assert!(incident["repair_to_restart_ns"].is_u64(), "{technique}: {incident:#}");
    }
    let orders = &summary["orders"];
    assert_eq!(orders["sent"], orders["scheduled"], "its successors sent the rest: {orders:#}");
}

/// The main thread sees several ends at once: each successor has a fence of its own.
pub fn threads_that_panic_together_are_restarted(_: &str) {
    let words = format!("run --json --out OUT {LOAD} {SHORT} --strategy panics --on-death restart");
    let found = launcher(&words, None);
    let summary: Value = serde_json::from_slice(&found.stdout).unwrap();
    let orders = &summary["orders"];
    assert_eq!((&summary["valid"], &orders["sent"]), (&true.into(), &orders["scheduled"]), "{summary:#}");
    let incidents = summary["incidents"].as_array().unwrap();
    let is_panic = |incident: &Value| cause(incident).contains("report 200 is too much");
    assert!(incidents.len() > 6 && incidents.iter().all(is_panic), "{incidents:#?}");
}

pub fn a_sleeping_thread_finds_its_fence(on_death: &str) {
    let out = tempfile::tempdir().unwrap();
    let flags = format!("{LONG} {DEADLINE} --on-death {on_death}");
    let summary = run_in(out.path().to_str().unwrap(), "sleeps", &flags);
    let incidents = incidents_beside_survivors(&summary);
    assert_eq!(incidents.len(), 1, "{incidents:#?}");
    assert!(cause(&incidents[0]).contains("hangs: no duty cycle for 150ms"), "{incidents:#?}");
    assert!(incidents[0]["repair_to_restart_ns"].is_null(), "it may still run: {incidents:#?}");
    let run = std::fs::read_dir(out.path()).unwrap().next().unwrap().unwrap().path();
    let log = std::fs::read(run.join("strategy-1.stamps")).unwrap();
    let message = b"found itself fenced";
    assert!(log.windows(message.len()).any(|bytes| bytes == message), "it went on, or never woke up");
}
