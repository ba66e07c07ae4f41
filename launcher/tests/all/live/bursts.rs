//! Strategy, engine and exchange are killed from outside within 30 ms of each other, in every
//! order, and again during their restart. Each run completes, and each loss has an incident.
//!
//! Victims, times and settings follow from a seed, which a failure names; the folder of a failed
//! run is kept. `BULKHEAD_SLOW=1` makes 500 bursts with two busy loops running.

use crate::common::{Launcher, Random, Running, concurrently, newest_process, serving_process, slow};
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::time::Duration;
use system::process;

const RUN: &str = "--isolation process --on-death restart --venue book --exchange process --venues 1 \
                   --window 2s --idle park";

/// Returns the number of bursts of two or three kills, and of concurrent runs.
fn required_bursts() -> (u64, usize) {
    if slow() { (500, 6) } else { (6, 3) }
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

fn settings(random: &mut Random) -> String {
    let journal = random.choose(&["group", "group", "process"]);
    let orders = random.choose(&["8k", "20k"]);
    let strategies = random.choose(&["1", "1", "2"]);
    format!("{RUN} --journal {journal} --orders {orders} --strategies {strategies}")
}

/// Kills two or three roles, 0 to 30 ms apart. Returns the roles with the pauses after them,
/// in milliseconds.
fn kill_burst(running: &Running, random: &mut Random) -> Vec<(&'static str, u64)> {
    let mut roles = vec!["strategy-0", "engine", "exchange-0"];
    roles.swap(0, random.below(3));
    roles.swap(1, 1 + random.below(2));
    roles.truncate(2 + random.below(2));
    let mut killed = Vec::new();
    for role in roles {
        let pid = match role {
            "strategy-0" => newest_process(running.pid(), role, 0),
            _ => serving_process(running.pid(), role, &[]),
        };
        let pidfd = pid.and_then(|pid| process::pidfd_open(pid).ok());
        if pidfd.is_some_and(|pidfd| process::kill(pidfd.as_fd()).is_ok()) {
            let pause = random.next() % 31;
            killed.push((role, pause));
            std::thread::sleep(Duration::from_millis(pause));
        }
    }
    killed
}

/// Makes a run with one to three bursts. Returns the number of those with two kills or more.
fn burst_run(seed: u64) -> Result<u64, String> {
    let mut launcher = Launcher::new();
    launcher.out.disable_cleanup(true);
    let mut random = Random(seed);
    let settings = settings(&mut random);
    let running = launcher.start(&settings);
    let mut bursts = Vec::new();
    for _ in 0..1 + random.below(3) {
        std::thread::sleep(Duration::from_millis(random.next() % 700));
        bursts.push(kill_burst(&running, &mut random));
    }
    let result = running.end();
    let folder = launcher.folder();
    let context = || format!("seed {seed}, {settings}, {bursts:?}, kept in {}", folder.display());
    if result.code != Some(0) {
        return Err(format!("{}: {result:?}", context()));
    }
    let summary = launcher.newest_summary();
    let lost = &summary["containment"]["lost_of_survivors"];
    if summary["valid"] != true || summary["orders"]["duplicated"] != 0 || lost.as_u64().unwrap_or(0) > 0 {
        return Err(format!("{}: {}", context(), summary["reasons"]));
    }
    launcher.out.disable_cleanup(false);
    Ok(bursts.iter().filter(|burst| burst.len() > 1).count() as u64)
}

#[test]
fn killed_roles_recover_from_bursts_in_every_order() {
    let (required_bursts, at_once) = required_bursts();
    let _busy = BusyLoops::start(if slow() { 2 } else { 0 });
    let (bursts, failures) = (Mutex::new(0), Mutex::new(Vec::new()));
    let seeds: Vec<u64> = (0..required_bursts).collect();
    concurrently(at_once, &seeds, |seed| {
        if *bursts.lock().unwrap() >= required_bursts {
            return;
        }
        match burst_run(*seed) {
            Ok(more) => *bursts.lock().unwrap() += more,
            Err(reason) => {
                println!("{reason}");
                failures.lock().unwrap().push(reason);
            }
        }
    });
    println!("{} bursts", bursts.lock().unwrap());
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} runs: {failures:#?}", failures.len());
}
