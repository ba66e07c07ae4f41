//! Kill switches and limits of active runs: by operators in another terminal, by limits, by a
//! death.

use crate::common::{
    Launcher, Running, concurrently, list, number, output, run_processes, segments, signal, string,
    wait_until,
};
use serde_json::Value;

const STRATEGIES: u64 = 4;

/// A run of a minute, interrupted at the end of the test: four strategies, two credentials, two
/// venues, two instruments.
const FLAGS: &str = "--strategies 4 --credentials 2 --venues 2 --orders 60k --window 60s --delay uniform:5ms..50ms --idle park \
                     --on-death continue";

struct OperatedRun {
    running: Running,
    run: String,
}

impl OperatedRun {
    fn start(launcher: &Launcher, more: &str) -> Self {
        let file = launcher.out.path().with_extension("csv");
        std::fs::write(&file, "name\nAAA\nBBB\n").unwrap();
        let running = launcher.start(&format!("{FLAGS} --instruments {} {more}", file.display()));
        std::fs::remove_file(file).unwrap();
        let desk = |name: &String| Some(name.strip_prefix("bulkhead.")?.strip_suffix(".desk")?.to_owned());
        let run = segments(running.pid()).iter().find_map(desk).unwrap();
        let operated = Self { running, run };
        wait_until("orders flow", || operated.count_rejected("orders").is_some());
        operated
    }

    /// Runs a command that must succeed, with a timeout for busy machines.
    fn command(&self, command: &str, args: &str) -> String {
        output(&format!("{command} {} --timeout 60s {args}", self.run)).succeeds()
    }

    /// Checks that a command with an unknown target is refused with `word`.
    fn assert_refused(&self, command: &str, args: &str, word: &str) {
        output(&format!("{command} {} {args}", self.run)).fails(2, &[word]);
    }

    /// Returns the number of orders refused for a reason so far. For `orders` it returns `Some(0)`
    /// once the engine answers.
    fn count_rejected(&self, reason: &str) -> Option<u64> {
        let result = output(&format!("limits {}", self.run));
        if result.code != Some(0) || reason == "orders" {
            return (result.code == Some(0)).then_some(0);
        }
        let lines = result.stdout.lines().filter_map(|line| line.strip_prefix("rejected "));
        let mut found =
            lines.filter_map(|line| line.split_once(": ")).filter(|(_, why)| why.starts_with(reason));
        Some(found.next().map_or(0, |(number, _)| number.replace(',', "").parse().unwrap()))
    }

    fn kill_strategy_1(&self) {
        signal(self.running.process("strategy-1"), "KILL");
        let is_strategy_1 = |(_, line): &(u32, String)| line.contains("role strategy-1 ");
        wait_until("strategy-1 has exited", || !run_processes(self.running.pid()).iter().any(is_strategy_1));
    }

    /// Turns a kill switch on, waits until orders are refused, and revives its scope.
    fn kill_and_revive(&self, target: &str, scope: &str) {
        let before = self.count_rejected("killed");
        let message = self.command("kill", target);
        assert!(message.contains(&format!("killed {scope} of run {}", self.run)), "{message}");
        assert!(message.contains("cancelled   ") && !message.contains("not all"), "{message}");
        wait_until("orders are refused", || self.count_rejected("killed") > before);
        assert!(self.command("revive", target).contains(&format!("revived {scope} of run")));
    }
}

fn exercise_commands(more: &str, limit: &str, name: &str) {
    let launcher = Launcher::new();
    let run = OperatedRun::start(&launcher, more);

    // A death first: its effect is checked at the end.
    run.command("limits", "--strategy 1 kill-on-death=on");
    run.kill_strategy_1();

    let scopes = [
        ("--strategy 0", "strategy-0"),
        ("--credential 1", "credential-1"),
        ("--venue 1", "venue-1"),
        ("--instrument AAA", "instrument-0"),
        ("--all", "all"),
    ];
    scopes.iter().for_each(|(target, scope)| run.kill_and_revive(target, scope));

    run.assert_refused("kill", "--strategy 9", "--strategy 9");
    run.assert_refused("kill", "--venue 2", "--venue 2");
    run.assert_refused("kill", "--credential 2", "--credential 2");
    run.assert_refused("kill", "--instrument CCC", "AAA, BBB");
    run.assert_refused("limits", "max-hope=1", "max-hope");
    output("kill 20000101-000000000 --all").fails(2, &["20000101-000000000"]);

    // The run's folder is accepted in place of its id.
    let message = output(&format!("limits {}", launcher.folder().display())).succeeds();
    assert!(message.contains(&run.run), "{message}");

    // The fourth rejection exceeds the limit and turns the kill switch on.
    run.command("limits", "--strategy 3 restricted=on max-rejections=3");
    wait_until("the limit has turned the kill switch on", || run.count_rejected("restricted") > Some(3));
    // The given limit kills another strategy. Strategy 3 is still refused 250 times a second, so
    // the count must rise by more than that.
    let before = run.count_rejected("killed").unwrap();
    run.command("limits", limit);
    wait_until("the limit has turned the kill switch on", || {
        run.count_rejected("killed") > Some(before + 500)
    });

    let stdout = run.running.interrupt().fails(130, &[]).stdout;
    let summary = launcher.newest_summary();
    // The merge checks every t3 against the kill switches.
    assert_eq!(summary["valid"], true, "{:#}", summary["violations"]);
    let kills = list(&summary["trading"]["kills"]);
    let mut found: Vec<_> =
        kills.iter().map(|kill| (string(&kill["scope"]), string(&kill["cause"]))).collect();
    let by_operator = scopes.map(|(_, scope)| (scope, "operator"));
    // The launcher may learn of the death after the first command.
    let death = found.iter().position(|kill| *kill == ("strategy-1", "death"));
    found.remove(death.unwrap_or_else(|| panic!("no death: {found:?}")));
    let expected = [&by_operator[..], &[("strategy-3", "limit max-rejections")]].concat();
    assert_eq!(found[..expected.len()], expected);
    let kills_by_limit = &found[expected.len()..];
    let cause = format!("limit {name}");
    assert!(
        !kills_by_limit.is_empty() && kills_by_limit.iter().all(|found| found.1 == cause),
        "{kills_by_limit:?}"
    );
    for kill in kills {
        let is_operators = kill["cause"] == "operator";
        assert_eq!(kill["order_to_seen_ns"].is_u64(), is_operators, "{kill}");
        // The last operator command revived all strategies, the crashed one included; the kills by
        // limits came later.
        let is_limits = string(&kill["cause"]).starts_with("limit");
        assert_eq!(kill["revived_ns"].is_u64(), !is_limits, "{kill}");
        assert!(kill["seen_to_done_ns"].is_u64(), "all that was open is confirmed: {kill}");
        assert!(stdout.contains(string(&kill["scope"])), "{kill} is not in {stdout}");
    }
    assert!(number(&summary["orders"]["cancelled"]) > STRATEGIES);
}

/// Turns kill switches on during venue faults and crashes a strategy; the run must be valid without
/// open orders. Returns the number of cancelled orders.
fn count_cancelled_during(fault: &str, venue: &str, timeout: &str) -> u64 {
    let launcher = Launcher::new();
    let flags = format!("--isolation process --venue {venue} --fault '{fault}' --venue-timeout {timeout}");
    let run = OperatedRun::start(&launcher, &flags);
    // At least one of these is during the fault, whenever that begins and ends.
    for _ in 0..3 {
        run.kill_and_revive("--venue 1", "venue-1");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    run.kill_strategy_1();
    run.kill_and_revive("--strategy 0", "strategy-0");
    let summary = launcher.interrupted(run.running);
    assert_eq!(summary["valid"], true, "{fault}: {:#} {:#}", summary["violations"], summary["orders"]);
    let kills = list(&summary["trading"]["kills"]);
    assert_eq!(kills.len(), 4, "{fault}: {kills:?}");
    let is_done = |kill: &Value| kill["seen_to_done_ns"].is_u64();
    assert!(kills.iter().all(is_done), "{fault}: {kills:?}");
    let orders = &summary["orders"];
    assert_eq!(orders["lost"], 0, "{fault}: {orders}");
    number(&orders["cancelled"])
}

/// A process that holds the lock of the command channel blocks every kill switch; command and run
/// name the process.
#[test]
fn locked_command_channel_is_named_by_command_and_run() {
    let launcher = Launcher::new();
    let run = OperatedRun::start(&launcher, "--isolation process");
    let desk = std::fs::File::open(format!("/dev/shm/bulkhead.{}.desk", run.run)).unwrap();
    desk.lock().unwrap();
    let own_process = format!("process {} (", std::process::id());
    output(&format!("kill {} --all", run.run)).fails(1, &["cannot send the command", &own_process]);
    // Long enough for the run to notice it as well.
    std::thread::sleep(std::time::Duration::from_secs(2));
    desk.unlock().unwrap();
    run.command("kill", "--all");
    let stderr = run.running.interrupt().stderr;
    let notes: Vec<&str> =
        stderr.lines().filter(|line| line.contains("the command channel was locked")).collect();
    assert!(notes.len() == 1 && notes[0].contains(&own_process), "{stderr}");
    let reasons = launcher.newest_summary()["reasons"].to_string();
    assert!(
        reasons.contains("the command channel was locked") && reasons.contains(&own_process),
        "{reasons}"
    );
}

#[test]
fn kill_and_death_cancel_at_faulty_venue() {
    let down = "disconnect:venue-1@500ms for 600ms; disconnect:venue-0@1s for 300ms";
    // A late cancel counts as a cancel.
    let faults = [
        ("slow:venue-0@0s; slow:venue-1@0s", "book", "20s", 26),
        (down, "delay", "20s", 6),
        ("mute:venue-1@500ms for 600ms", "delay,book", "1s", 0),
    ];
    concurrently(3, &faults, |(fault, venue, timeout, min)| {
        let cancelled = count_cancelled_during(fault, venue, timeout);
        assert!(cancelled >= *min, "{fault}: {cancelled} orders were cancelled");
    });
}

#[test]
fn operator_commands_take_effect_at_level_process() {
    let flags = "--isolation process --venue book,delay --exchange process";
    exercise_commands(flags, "--strategy 2 kill-message-rate=1", "kill-message-rate");
}

#[test]
fn operator_commands_take_effect_in_the_sandbox() {
    if Launcher::sandboxed().is_some() {
        // In each trade one side loses, so a loss limit of 0 is exceeded.
        exercise_commands("--isolation sandbox --venue book", "max-loss=0", "max-loss");
    }
}
