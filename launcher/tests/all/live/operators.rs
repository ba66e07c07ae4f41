//! Kill switches and limits of active runs: by operators in another terminal, by limits, by a
//! death.

use crate::common::{
    Launcher, Running, concurrently, family, list, number, output, segments, signal, string, wait_until,
};
use serde_json::Value;

const STRATEGIES: u64 = 4;

/// A run of a minute, which is ended when all is done: four strategies, two venues, two
/// instruments.
const FLAGS: &str = "--strategies 4 --venues 2 --orders 240k --window 60s --delay uniform:5ms..50ms --idle park \
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
        let this = Self { running, run };
        wait_until("orders flow", || this.counted("orders").is_some());
        this
    }

    /// A command that must succeed, however long the machine stands still in the middle of it.
    fn does(&self, command: &str, args: &str) -> String {
        output(&format!("{command} {} --timeout 60s {args}", self.run)).succeeds()
    }

    /// One that names nobody: refused with these words.
    fn refuses(&self, command: &str, args: &str, word: &str) {
        output(&format!("{command} {} {args}", self.run)).fails(2, &[word]);
    }

    /// How many orders were refused for a reason so far; `orders`: something if the engine answers
    /// at all.
    fn counted(&self, reason: &str) -> Option<u64> {
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
        let is_it = |(_, line): &(u32, String)| line.contains("role strategy-1 ");
        wait_until("it is dead", || !family(self.running.pid()).iter().any(is_it));
    }

    /// Kills somebody, sees orders refused for it, and revives.
    fn turns(&self, whom: &str, scope: &str) {
        let before = self.counted("killed");
        let said = self.does("kill", whom);
        assert!(said.contains(&format!("killed {scope} of run {}", self.run)), "{said}");
        assert!(said.contains("cancelled   ") && !said.contains("not all"), "{said}");
        wait_until("orders are refused", || self.counted("killed") > before);
        assert!(self.does("revive", whom).contains(&format!("revived {scope} of run")));
    }
}

fn operates(more: &str, limit: &str, name: &str) {
    let launcher = Launcher::new();
    let run = OperatedRun::start(&launcher, more);

    // A death first: its effect shows at the end.
    run.does("limits", "--strategy 1 kill-on-death=on");
    run.kill_strategy_1();

    let scopes = [
        ("--strategy 0", "strategy-0"),
        ("--venue 1", "venue-1"),
        ("--instrument AAA", "instrument-0"),
        ("--all", "all"),
    ];
    scopes.iter().for_each(|(whom, scope)| run.turns(whom, scope));

    run.refuses("kill", "--strategy 9", "--strategy 9");
    run.refuses("kill", "--venue 2", "--venue 2");
    run.refuses("kill", "--instrument CCC", "AAA, BBB");
    run.refuses("limits", "max-hope=1", "max-hope");
    output("kill 20000101-000000000 --all").fails(2, &["20000101-000000000"]);

    // Its folder names it as well.
    let said = output(&format!("limits {}", launcher.folder().display())).succeeds();
    assert!(said.contains(&run.run), "{said}");

    // A limit that refuses one order too many. It kills with the fourth.
    run.does("limits", "--strategy 3 restricted=on max-rejections=3");
    wait_until("the limit has killed it", || run.counted("restricted") > Some(3));
    // And another one. Strategy 3 goes on being refused, 1,000 times a second: one more does not
    // say that somebody else is.
    let before = run.counted("killed").unwrap();
    run.does("limits", limit);
    wait_until("the limit has killed it", || run.counted("killed") > Some(before + 2_000));

    let stdout = run.running.interrupt().fails(130, &[]).stdout;
    let summary = launcher.newest_summary();
    // The merge holds every t3 against the switches.
    assert_eq!(summary["valid"], true, "{:#}", summary["violations"]);
    let kills = list(&summary["trading"]["kills"]);
    let found: Vec<_> = kills.iter().map(|kill| (string(&kill["scope"]), string(&kill["cause"]))).collect();
    let by_operator = scopes.map(|(_, scope)| (scope, "operator"));
    let wanted =
        [&[("strategy-1", "death")], &by_operator[..], &[("strategy-3", "limit max-rejections")]].concat();
    assert_eq!(found[..wanted.len()], wanted);
    let of_limit = &found[wanted.len()..];
    let cause = format!("limit {name}");
    assert!(!of_limit.is_empty() && of_limit.iter().all(|found| found.1 == cause), "{of_limit:?}");
    for kill in kills {
        let is_operators = kill["cause"] == "operator";
        assert_eq!(kill["order_to_seen_ns"].is_u64(), is_operators, "{kill}");
        // All strategies were revived at last, the crashed one as well; the limits' kills came
        // later.
        let is_limits = string(&kill["cause"]).starts_with("limit");
        assert_eq!(kill["revived_ns"].is_u64(), !is_limits, "{kill}");
        assert!(kill["seen_to_done_ns"].is_u64(), "all that was open is confirmed: {kill}");
        assert!(stdout.contains(string(&kill["scope"])), "{kill} is not in {stdout}");
    }
    assert!(number(&summary["orders"]["cancelled"]) > STRATEGIES);
}

/// Kills a venue while it does that, and a strategy dies; at the end the run must be valid, and
/// nothing open. How many orders the engine says that it has cancelled.
fn kills_while(fault: &str, venue: &str, timeout: &str) -> u64 {
    let launcher = Launcher::new();
    let flags = format!("--isolation process --venue {venue} --fault '{fault}' --venue-timeout {timeout}");
    let run = OperatedRun::start(&launcher, &flags);
    // Whenever the fault begins and ends, some of these are in the middle of it.
    for _ in 0..3 {
        run.turns("--venue 1", "venue-1");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    run.kill_strategy_1();
    run.turns("--strategy 0", "strategy-0");
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

/// A process that holds the command channel's lock blocks every kill switch: command and run name
/// it.
#[test]
fn a_locked_desk_is_named_by_command_and_run() {
    let launcher = Launcher::new();
    let run = OperatedRun::start(&launcher, "--isolation process");
    let desk = std::fs::File::open(format!("/dev/shm/bulkhead.{}.desk", run.run)).unwrap();
    desk.lock().unwrap();
    let me = format!("process {} (", std::process::id());
    output(&format!("kill {} --all", run.run)).fails(1, &["cannot send the command", &me]);
    // Long enough for the run to have noticed it, too.
    std::thread::sleep(std::time::Duration::from_secs(2));
    desk.unlock().unwrap();
    run.does("kill", "--all");
    let stderr = run.running.interrupt().stderr;
    let notes: Vec<&str> = stderr.lines().filter(|line| line.contains("the desk was locked")).collect();
    assert!(notes.len() == 1 && notes[0].contains(&me), "{stderr}");
    let reasons = launcher.newest_summary()["reasons"].to_string();
    assert!(reasons.contains("the desk was locked") && reasons.contains(&me), "{reasons}");
}

#[test]
fn kill_and_death_cancel_at_faulty_venue() {
    let down = "disconnect:venue-1@500ms for 600ms; disconnect:venue-0@1s for 300ms";
    // An order that is cancelled late is cancelled.
    let faults = [
        ("slow:venue-0@0s; slow:venue-1@0s", "book", "20s", 101),
        (down, "delay", "20s", 21),
        ("mute:venue-1@500ms for 600ms", "delay,book", "1s", 0),
    ];
    concurrently(3, &faults, |(fault, venue, timeout, min)| {
        let cancelled = kills_while(fault, venue, timeout);
        assert!(cancelled >= *min, "{fault}: {cancelled} orders were cancelled");
    });
}

#[test]
fn operator_commands_take_effect_at_level_process() {
    let flags = "--isolation process --venue book,delay --exchange process";
    operates(flags, "--strategy 2 kill-message-rate=1", "kill-message-rate");
}

#[test]
fn an_operator_s_word_is_kept_in_the_sandbox() {
    if Launcher::sandboxed().is_some() {
        // What one has won another has lost.
        operates("--isolation sandbox --venue book", "max-loss=0", "max-loss");
    }
}
