//! Kill switches and limits of active runs: by operators in another terminal, by limits, by a
//! death.

use crate::common::{
    Launcher, Running, assert_nothing_left, concurrently, family, output, segments, signal, text, wait_until,
};
use serde_json::Value;

const STRATEGIES: usize = 4;

/// A run of a minute, which is ended when all is done: four strategies, two venues, two
/// instruments.
const FLAGS: &[&str] = &[
    "--strategies",
    "4",
    "--venues",
    "2",
    "--orders",
    "240k",
    "--window",
    "60s",
    "--delay",
    "uniform:5ms..50ms",
    "--idle",
    "park",
    "--on-death",
    "continue",
];

/// Runs a command during the run: its exit code and output.
fn told(args: &[&str]) -> (Option<i32>, String) {
    let output = output(args);
    (output.status.code(), text(&output.stdout) + &text(&output.stderr))
}

struct OperatedRun {
    running: Running,
    run: String,
}

impl OperatedRun {
    fn start(launcher: &Launcher, more: &[&str]) -> Self {
        let file = launcher.out.path().with_extension("csv");
        std::fs::write(&file, "name\nAAA\nBBB\n").unwrap();
        let flags = [FLAGS, &["--instruments", file.to_str().unwrap()], more].concat();
        let running = launcher.start(&flags);
        std::fs::remove_file(file).unwrap();
        let desk = |name: &String| Some(name.strip_prefix("bulkhead.")?.strip_suffix(".desk")?.to_owned());
        let run = segments(running.pid()).iter().find_map(desk).unwrap();
        let this = Self { running, run };
        wait_until("orders flow", || this.counted("orders", &[]).is_some());
        this
    }

    /// A command that must succeed, however long the machine stands still in the middle of it.
    fn does(&self, command: &str, args: &[&str]) -> String {
        let (code, said) = told(&[&[command, self.run.as_str(), "--timeout", "60s"], args].concat());
        assert_eq!(code, Some(0), "{command} {args:?}: {said}");
        said
    }

    /// One that names nobody: refused with these words.
    fn refuses(&self, command: &str, args: &[&str], word: &str) {
        let (code, said) = told(&[&[command, self.run.as_str()], args].concat());
        assert_eq!(code, Some(2), "{command} {args:?}: {said}");
        assert!(said.contains(word), "{command} {args:?}: {said}");
    }

    /// How many orders were refused for a reason so far; `orders`: something if the engine answers
    /// at all.
    fn counted(&self, reason: &str, args: &[&str]) -> Option<u64> {
        let (code, said) = told(&[&["limits", self.run.as_str()], args].concat());
        if code != Some(0) || reason == "orders" {
            return (code == Some(0)).then_some(0);
        }
        let lines = said.lines().filter_map(|line| line.strip_prefix("rejected "));
        let mut found =
            lines.filter_map(|line| line.split_once(": ")).filter(|(_, why)| why.starts_with(reason));
        Some(found.next().map_or(0, |(number, _)| number.replace(',', "").parse().unwrap()))
    }

    /// Kills somebody, sees orders refused for it, and revives.
    fn turns(&self, whom: &[&str], scope: &str) {
        let before = self.counted("killed", &[]);
        let said = self.does("kill", whom);
        assert!(said.contains(&format!("killed {scope} of run {}", self.run)), "{said}");
        assert!(said.contains("cancelled   ") && !said.contains("not all"), "{said}");
        wait_until("orders are refused", || self.counted("killed", &[]) > before);
        assert!(self.does("revive", whom).contains(&format!("revived {scope} of run")));
    }
}

/// The kills of a summary: scope and cause.
fn kills(summary: &Value) -> Vec<(String, String)> {
    let word = |kill: &Value, key: &str| kill[key].as_str().unwrap().to_owned();
    let list = summary["trading"]["kills"].as_array().unwrap();
    list.iter().map(|kill| (word(kill, "scope"), word(kill, "cause"))).collect()
}

fn operates(more: &[&str], limit: &[&str], name: &str) {
    let launcher = Launcher::new();
    let run = OperatedRun::start(&launcher, more);
    let pid = run.running.pid();

    // A death first: its effect shows at the end.
    run.does("limits", &["--strategy", "1", "kill-on-death=on"]);
    signal(run.running.process("strategy-1"), "KILL");
    wait_until("it is dead", || !family(pid).iter().any(|(_, line)| line.contains("role strategy-1 ")));

    let scopes: [(&[&str], &str); 4] = [
        (&["--strategy", "0"], "strategy-0"),
        (&["--venue", "1"], "venue-1"),
        (&["--instrument", "AAA"], "instrument-0"),
        (&["--all"], "all"),
    ];
    scopes.iter().for_each(|(whom, scope)| run.turns(whom, scope));

    run.refuses("kill", &["--strategy", "9"], "--strategy 9");
    run.refuses("kill", &["--venue", "2"], "--venue 2");
    run.refuses("kill", &["--instrument", "CCC"], "AAA, BBB");
    run.refuses("limits", &["max-hope=1"], "max-hope");
    let (code, said) = told(&["kill", "20000101-000000000", "--all"]);
    assert!(code == Some(2) && said.contains("20000101-000000000"), "{said}");

    // Its folder names it as well.
    let folder = launcher.folders().remove(0);
    let (code, said) = told(&["limits", folder.to_str().unwrap()]);
    assert!(code == Some(0) && said.contains(&run.run), "{said}");

    // A limit that refuses one order too many. It kills with the fourth.
    run.does("limits", &["--strategy", "3", "restricted=on", "max-rejections=3"]);
    wait_until("the limit has killed it", || run.counted("restricted", &[]) > Some(3));
    // And another one. Strategy 3 goes on being refused, 1,000 times a second: one more does not
    // say that somebody else is.
    let before = run.counted("killed", &[]).unwrap();
    run.does("limits", limit);
    wait_until("the limit has killed it", || run.counted("killed", &[]) > Some(before + 2_000));

    signal(pid, "INT");
    let (code, stdout, stderr) = run.running.end();
    assert_eq!(code, Some(130), "{stderr}\n{stdout}");
    assert_nothing_left(pid);
    let summary = launcher.newest_summary();
    // The merge holds every t3 against the switches.
    assert_eq!(summary["valid"], true, "{:#}", summary["violations"]);
    let by = |scope: &str, cause: &str| (scope.to_owned(), cause.to_owned());
    let wanted = [&[by("strategy-1", "death")], &scopes.map(|(_, scope)| by(scope, "operator"))[..]].concat();
    let found = kills(&summary);
    assert_eq!(found[..wanted.len()], wanted);
    let of_limits = &found[wanted.len()..];
    assert_eq!(of_limits[0], by("strategy-3", "limit max-rejections"));
    let cause = format!("limit {name}");
    assert!(of_limits.len() > 1 && of_limits[1..].iter().all(|found| found.1 == cause), "{of_limits:?}");
    for kill in summary["trading"]["kills"].as_array().unwrap() {
        let is_operators = kill["cause"] == "operator";
        assert_eq!(kill["order_to_seen_ns"].is_u64(), is_operators, "{kill}");
        // All strategies were revived at last, the crashed one as well; the limits' kills came
        // later.
        let is_limits = kill["cause"].as_str().unwrap().starts_with("limit");
        assert_eq!(kill["revived_ns"].is_u64(), !is_limits, "{kill}");
        assert!(kill["seen_to_done_ns"].is_u64(), "all that was open is confirmed: {kill}");
        assert!(stdout.contains(kill["scope"].as_str().unwrap()), "{kill} is not in {stdout}");
    }
    assert!(summary["orders"]["cancelled"].as_u64().unwrap() > STRATEGIES as u64);
}

/// Kills a venue while it does that, and a strategy dies; at the end the run must be valid, and
/// nothing open. How many orders the engine says that it has cancelled.
fn kills_while(fault: &str, venue: &str, timeout: &str) -> u64 {
    let launcher = Launcher::new();
    let flags = ["--isolation", "process", "--venue", venue, "--fault", fault, "--venue-timeout", timeout];
    let run = OperatedRun::start(&launcher, &flags);
    let pid = run.running.pid();
    // Whenever the fault begins and ends, some of these are in the middle of it.
    for _ in 0..3 {
        run.turns(&["--venue", "1"], "venue-1");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    signal(run.running.process("strategy-1"), "KILL");
    wait_until("it is dead", || !family(pid).iter().any(|(_, line)| line.contains("role strategy-1 ")));
    run.turns(&["--strategy", "0"], "strategy-0");
    signal(pid, "INT");
    let (code, stdout, stderr) = run.running.end();
    assert_eq!(code, Some(130), "{fault}: {stderr}\n{stdout}");
    assert_nothing_left(pid);
    let summary = launcher.newest_summary();
    assert_eq!(summary["valid"], true, "{fault}: {:#} {:#}", summary["violations"], summary["orders"]);
    let kills = summary["trading"]["kills"].as_array().unwrap();
    assert_eq!(kills.len(), 4, "{fault}: {kills:?}");
    assert!(kills.iter().all(|kill| kill["seen_to_done_ns"].is_u64()), "{fault}: {kills:?}");
    let orders = &summary["orders"];
    assert_eq!(orders["lost"], 0, "{fault}: {orders}");
    orders["cancelled"].as_u64().unwrap()
}

/// A process that holds the command channel's lock blocks every kill switch: command and run name
/// it.
#[test]
fn a_locked_desk_is_named_by_command_and_run() {
    let launcher = Launcher::new();
    let run = OperatedRun::start(&launcher, &["--isolation", "process"]);
    let pid = run.running.pid();
    let desk = std::fs::File::open(format!("/dev/shm/bulkhead.{}.desk", run.run)).unwrap();
    desk.lock().unwrap();
    let (code, said) = told(&["kill", &run.run, "--all"]);
    let me = format!("process {} (", std::process::id());
    assert!(code == Some(1) && said.contains("cannot send the command") && said.contains(&me), "{said}");
    // Long enough for the run to have noticed it, too.
    std::thread::sleep(std::time::Duration::from_secs(2));
    desk.unlock().unwrap();
    run.does("kill", &["--all"]);
    signal(pid, "INT");
    let (_, _, stderr) = run.running.end();
    assert_nothing_left(pid);
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
    let flags = ["--isolation", "process", "--venue", "book,delay", "--exchange", "process"];
    operates(&flags, &["--strategy", "2", "kill-message-rate=1"], "kill-message-rate");
}

#[test]
fn an_operator_s_word_is_kept_in_the_sandbox() {
    let missing = system::sandbox::missing();
    if missing.is_empty() {
        // What one has won another has lost.
        operates(&["--isolation", "sandbox", "--venue", "book"], &["max-loss=0"], "max-loss");
    } else {
        eprintln!("SKIPPED: {}", missing.join("; "));
    }
}
