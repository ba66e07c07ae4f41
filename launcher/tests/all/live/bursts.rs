//! Strategy, engine and exchange killed by an outsider within 30 ms of each other, in every order,
//! and again while they are restarted: each run ends by itself, and its losses have incidents.
//!
//! Victims, times and settings follow from a number, which a failure names; the folder of a run
//! that fails is kept. `BULKHEAD_SLOW=1` makes 500 bursts next to two busy loops.

use crate::common::{Launcher, Random, Running, concurrently, in_place, newest, slow};
use std::os::fd::AsFd;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::time::Duration;
use system::process;

const RUN: &str = "--isolation process --on-death restart --venue book --exchange process --venues 1 \
                   --window 2s --idle park";

/// Bursts of two or three kills that are wanted, and how many runs are made at once.
fn wanted() -> (u64, usize) {
    if slow() { (500, 6) } else { (6, 3) }
}

/// Two threads' worth of work for the cores that the runs use, ended with the test.
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
fn strike(running: &Running, random: &mut Random) -> Vec<(&'static str, u64)> {
    let mut roles = vec!["strategy-0", "engine", "exchange-0"];
    roles.swap(0, random.below(3));
    roles.swap(1, 1 + random.below(2));
    roles.truncate(2 + random.below(2));
    let mut struck = Vec::new();
    for role in roles {
        let pid = match role {
            "strategy-0" => newest(running.pid(), role, 0),
            _ => in_place(running.pid(), role, &[]),
        };
        let pidfd = pid.and_then(|pid| process::pidfd_open(pid).ok());
        if pidfd.is_some_and(|pidfd| process::kill(pidfd.as_fd()).is_ok()) {
            let pause = random.next() % 31;
            struck.push((role, pause));
            std::thread::sleep(Duration::from_millis(pause));
        }
    }
    struck
}

/// Makes a run with one to three bursts. Returns how many there were.
fn burst_run(seed: u64) -> Result<u64, String> {
    let mut launcher = Launcher::new();
    launcher.out.disable_cleanup(true);
    let mut random = Random(seed);
    let settings = settings(&mut random);
    let running = launcher.start(&settings);
    let mut bursts = Vec::new();
    for _ in 0..1 + random.below(3) {
        std::thread::sleep(Duration::from_millis(random.next() % 700));
        bursts.push(strike(&running, &mut random));
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
    let (wanted, at_once) = wanted();
    let _busy = BusyLoops::start(if slow() { 2 } else { 0 });
    let (bursts, failures) = (Mutex::new(0), Mutex::new(Vec::new()));
    let seeds: Vec<u64> = (0..wanted).collect();
    concurrently(at_once, &seeds, |seed| {
        if *bursts.lock().unwrap() >= wanted {
            return;
        }
        match burst_run(*seed) {
            Ok(more) => *bursts.lock().unwrap() += more,
            Err(why) => {
                println!("{why}");
                failures.lock().unwrap().push(why);
            }
        }
    });
    println!("{} bursts", bursts.lock().unwrap());
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{} runs: {failures:#?}", failures.len());
}
