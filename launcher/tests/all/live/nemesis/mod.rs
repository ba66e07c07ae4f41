//! The nemesis of living runs: any process is killed at any time, alone, in bursts or again and
//! again, the launcher and its reaper included, while operators retire, replace, add and stop
//! strategies. Each run ends, its files can be read, nothing is doubled or lost beyond what a death
//! explains, and no process or segment remains.
//!
//! Settings, victims, commands and times follow from a seed, which a failure names; the folder of
//! a failed run is kept. `BULKHEAD_SLOW=1` makes 300 runs next to two busy loops.

mod ledger;

use crate::common::{
    Launcher, Random, Running, concurrently, document, list, newest_process, number, output, run_processes,
    segments, serving_process, signal, slow, wait_until,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::time::Duration;
use system::process;

/// Settings of runs that any death ends, or that go on without what died.
const MORTAL: [&str; 8] = [
    "--isolation process --on-death restart",
    "--isolation process --on-death restart --technique pipe",
    "--isolation process --on-death restart --process each-gateway",
    "--isolation sandbox --on-death restart",
    "--isolation sandbox --on-death restart --technique linked --process gateways",
    "--isolation process --on-death continue --technique array-queue",
    "--isolation thread",
    "--isolation thread,process,process --on-death restart",
];

/// Settings of runs in which strategies and exchange come back, and the engine unless its gateways
/// are in other processes.
const RECOVERABLE: [&str; 4] = [
    "--journal group --strategy maker,taker",
    "--journal group",
    "--journal process --strategy maker,taker",
    "--journal process --credentials 2 --process each-gateway",
];

/// Returns the number of runs, and of concurrent ones.
fn required_runs() -> (u64, usize) {
    if slow() { (300, 4) } else { (8, 3) }
}

/// Busy loops that compete for the cores of the runs; killed at the end of the test.
struct BusyLoops(Vec<Child>);

impl BusyLoops {
    fn start(count: usize) -> Self {
        let start = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        Self((0..count).map(start).collect())
    }
}

impl Drop for BusyLoops {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A run under attack, and its log of actions.
struct Attack {
    random: Random,
    running: Running,
    /// Every action with its time, for the message of a failure.
    actions: String,
    /// Roles of the killed processes.
    victims: Vec<String>,
}

impl Attack {
    fn pause(&mut self, max_ms: u64) {
        let pause_ms = self.random.next() % (max_ms + 1);
        let _ = write!(self.actions, " {pause_ms} ms,");
        std::thread::sleep(Duration::from_millis(pause_ms));
    }

    fn kill(&mut self, pid: u32, role: &str) {
        let pidfd = process::pidfd_open(pid).ok();
        if pidfd.is_some_and(|pidfd| process::kill(pidfd.as_fd()).is_ok()) {
            let _ = write!(self.actions, " kill {role},");
            self.victims.push(role.to_owned());
        }
    }

    /// Kills one process of the run.
    fn kill_any(&mut self) {
        let mut processes = run_processes(self.running.pid());
        processes.sort();
        if processes.is_empty() {
            return;
        }
        let (pid, command) = self.random.choose(&processes).clone();
        let role = command.split("role ").nth(1).and_then(|rest| rest.split(' ').next()).map(str::to_owned);
        self.kill(pid, &role.unwrap_or_default());
    }

    /// Kills engine or exchange several times, soon after each restart, and sometimes their
    /// successors as well, which recover or are promoted.
    fn kill_often(&mut self) {
        let (role, mut killed) = (*self.random.choose(&["engine", "exchange-0"]), Vec::new());
        for _ in 0..2 + self.random.below(2) {
            let launcher = self.running.pid();
            let mut serving = None;
            wait_until("the role serves, or the run has ended", || {
                serving = serving_process(launcher, role, &killed);
                serving.is_some() || self.running.has_ended()
            });
            let Some(victim) = serving else { return };
            self.pause(40);
            self.kill(victim, role);
            killed.push(victim);
            if self.random.below(3) == 0
                && let Some(successor) = newest_process(launcher, role, victim)
            {
                self.kill(successor, role);
                killed.push(successor);
            }
        }
    }

    /// Kills strategies, one after the other, each 8 ms after the one before.
    fn kill_strategies(&mut self) {
        for _ in 0..4 + self.random.below(8) {
            let role = format!("strategy-{}", self.random.below(3));
            if let Some(pid) = newest_process(self.running.pid(), &role, 0) {
                self.kill(pid, &role);
            }
            std::thread::sleep(Duration::from_millis(8));
        }
    }

    /// Kills two or three of strategy, engine and exchange, in any order, 0 to 30 ms apart.
    fn kill_burst(&mut self) {
        let mut roles = vec!["strategy-0", "engine", "exchange-0"];
        roles.swap(0, self.random.below(3));
        roles.swap(1, 1 + self.random.below(2));
        roles.truncate(2 + self.random.below(2));
        for role in roles {
            let pid = match role {
                "strategy-0" => newest_process(self.running.pid(), role, 0),
                _ => serving_process(self.running.pid(), role, &[]),
            };
            if let Some(pid) = pid {
                self.kill(pid, role);
                self.pause(30);
            }
        }
    }

    /// Gives the run an operator's command. The strategy may have ended, the engine may be down:
    /// the command may fail, but must not panic.
    fn command(&mut self) {
        const COMMANDS: [&str; 9] = [
            "retire RUN N --within 0s",
            "retire RUN N --open-orders cancel",
            "retire RUN N --within 300ms",
            "replace RUN N",
            "replace RUN N --open-orders cancel",
            "replace RUN N --within 100ms",
            "add RUN --strategy player",
            "kill RUN --strategy N",
            "revive RUN --strategy N",
        ];
        let id = |name: &String| Some(name.strip_prefix("bulkhead.")?.strip_suffix(".desk")?.to_owned());
        let Some(run) = segments(self.running.pid()).iter().find_map(id) else { return };
        let strategy = self.random.below(3).to_string();
        let command = self.random.choose(&COMMANDS).replace("RUN", &run).replace('N', &strategy);
        let result = output(&command);
        let _ = write!(self.actions, " {command}: {:?},", result.code);
        assert!(!result.stderr.contains("panicked"), "{}: {result:?}", self.actions);
    }
}

/// Makes a run and attacks it. Returns the number of kills and of commands.
fn attacked_run(seed: u64) -> Result<(u64, u64), String> {
    let mut launcher = Launcher::new();
    launcher.out.disable_cleanup(true);
    let mut random = Random(seed);
    let is_recoverable = random.below(3) > 0;
    let level = if is_recoverable { random.choose(&RECOVERABLE) } else { random.choose(&MORTAL) };
    let orders = random.choose(&["2k", "6k", "20k"]);
    let recovery = "--isolation process --on-death restart --venue book --exchange process";
    let settings = format!(
        "{} {level} --strategies 3 --venues 1 --orders {orders} --window 2s --idle park",
        if is_recoverable { recovery } else { "" }
    );
    let running = launcher.start(&settings);
    let mut attack = Attack { random, running, actions: String::new(), victims: Vec::new() };
    let mut command_count = 0;
    for _ in 0..1 + attack.random.below(6) {
        attack.pause(500);
        match attack.random.below(6) {
            0 => attack.kill_burst(),
            1 => attack.kill_any(),
            2 if is_recoverable => attack.kill_often(),
            3 => attack.kill_strategies(),
            _ => {
                attack.command();
                command_count += 1;
            }
        }
    }
    // Some launchers are killed, some runs interrupted; most end by themselves.
    let ending = if attack.running.has_ended() { 9 } else { attack.random.below(8) };
    let pid = attack.running.pid();
    match ending {
        0 => signal(pid, "KILL"),
        1 => signal(pid, "INT"),
        _ => {}
    }
    let Attack { running, actions, victims, .. } = attack;
    let result = running.end();
    let folder = launcher.folder();
    let context = || {
        format!("seed {seed}, {settings}:{actions} ending {ending}, kept in {}: {result:?}", folder.display())
    };
    // A run whose engine does not come back ends with it, and what was on its way is lost.
    let lost_engine =
        (!is_recoverable || level.contains("--process")) && victims.iter().any(|role| role == "engine");
    let is_late = result.stderr.contains("exited abnormally: signal 9");
    let is_expected = match result.code {
        None if ending == 0 => {
            // The launcher may have written the record before it died, and not the logs.
            wait_until("the reaper has saved the logs", || {
                folder.join("run.json").exists() && segments(pid).is_empty()
            });
            let reported = output(&format!("report {}", folder.display())).code;
            if victims.last().is_some_and(|role| role == "reaper") && reported == Some(1) {
                // Both died before a new reaper was there: the logs are lost with their memory.
                launcher.out.disable_cleanup(false);
                return Ok((victims.len() as u64, command_count));
            }
            matches!(reported, Some(0 | 1))
        }
        // What comes back does so until it is told to exit.
        Some(1) => !is_recoverable || lost_engine || is_late || victims.iter().any(|role| role == "reaper"),
        code => matches!(code, Some(0 | 130)),
    };
    let is_merged = folder.join("summary.json").exists();
    if !is_expected || !is_merged || result.stderr.contains("panicked") {
        return Err(context());
    }
    let summary = document(&folder, "summary.json");
    let of_survivors = summary["containment"]["lost_of_survivors"].as_u64().unwrap_or(0);
    let incidents = list(&summary["incidents"]).len() as u64;
    let is_settled = !is_recoverable
        || lost_engine
        || ending == 0
        || (summary["valid"] == true && number(&summary["orders"]["lost"]) <= incidents);
    if summary["orders"]["duplicated"] != 0 || (!lost_engine && of_survivors > 0) || !is_settled {
        return Err(format!("{}: {:#}", context(), summary["violations"]));
    }
    launcher.out.disable_cleanup(false);
    Ok((victims.len() as u64, command_count))
}

#[test]
fn attacked_runs_end_without_lost_or_doubled_orders() {
    let (runs, at_once) = required_runs();
    let _busy = BusyLoops::start(if slow() { 2 } else { 0 });
    let first = std::env::var("BULKHEAD_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    let (totals, failures) = (Mutex::new(BTreeMap::new()), Mutex::new(Vec::new()));
    let seeds: Vec<u64> = (first..first + runs).collect();
    concurrently(at_once, &seeds, |seed| match attacked_run(*seed) {
        Ok((kills, commands)) => {
            let mut totals = totals.lock().unwrap();
            for (what, more) in [("runs", 1), ("kills", kills), ("commands", commands)] {
                *totals.entry(what).or_insert(0) += more;
            }
            if slow() {
                println!("{totals:?}");
            }
        }
        Err(reason) => {
            println!("{reason}");
            failures.lock().unwrap().push(reason);
        }
    });
    println!("{:?}", totals.lock().unwrap());
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} runs: {failures:#?}", failures.len());
}
