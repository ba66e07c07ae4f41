//! A neighbor that takes the engine's core away, while a run of an experiment has a certain fault:
//!
//! ```text
//! neighbor runs syscall-storm 20us 10ms
//! ```
//!
//! It watches the newest experiment in a folder. While the run that is being made has that fault,
//! it works for 20 µs on the engine's core every 10 ms, at a real-time priority where it may have
//! one. The fault itself does next to nothing, so what `launcher disturb` finds is the neighbor,
//! whatever the isolation level. It runs until it is killed.
#![forbid(unsafe_code)]

use launcher::shm::sync::{AtomicU64, Ordering};
use launcher::system::{pin, priority};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The time from one look at the experiment to the next.
const LOOK_EVERY: Duration = Duration::from_millis(20);
const PRIORITY: u8 = 50;

/// Reads a time in whole microseconds or milliseconds: `20us`, `10ms`.
fn time(text: &str) -> Option<Duration> {
    match text.strip_suffix("us") {
        Some(us) => us.parse().ok().map(Duration::from_micros),
        None => text.strip_suffix("ms")?.parse().ok().map(Duration::from_millis),
    }
}

/// Returns the document of the newest experiment in a folder.
fn newest_experiment(folder: &Path) -> Option<Value> {
    let folders = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let documents = folders.map(|folder| folder.join("experiment.json")).filter(|path| path.exists());
    serde_json::from_slice(&fs::read(documents.max()?).ok()?).ok()
}

/// Returns `true` if the run that is being made, the first one without a folder, has the fault.
fn is_disturbed(experiment: &Value, fault: &str) -> bool {
    let rows = experiment["rows"].as_array().into_iter().flatten();
    let mut open = rows.filter(|row| row["folder"].as_str().is_none_or(str::is_empty));
    open.next().and_then(|row| row["settings"]["fault"].as_str()).is_some_and(|text| text.contains(fault))
}

/// Returns the core of the thread that runs an engine.
fn engine_core() -> Option<u32> {
    let tasks = |process: PathBuf| fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    let is_engine = |task: &PathBuf| {
        let name = fs::read_to_string(task.join("comm")).unwrap_or_default();
        ["engine", "orchestrator"].contains(&name.trim())
    };
    let task = processes.flat_map(tasks).map(|entry| entry.path()).find(is_engine)?;
    let status = fs::read_to_string(task.join("status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")?.trim().parse().ok())
}

/// No core.
const NONE: u64 = u64::MAX;

/// Looks again and again whether the run that is being made has the fault, and for its engine.
fn watch(folder: &Path, fault: &str, core: &AtomicU64) -> ! {
    loop {
        let is_now = newest_experiment(folder).is_some_and(|found| is_disturbed(&found, fault));
        core.store(is_now.then(engine_core).flatten().map_or(NONE, u64::from), Ordering::Relaxed);
        sleep(LOOK_EVERY);
    }
}

/// Takes the core away for a while, and returns when it is to be taken away again.
fn take_away(core: u64, stall: Duration, every: Duration) {
    let begin = Instant::now();
    let core = u32::try_from(core).ok();
    if core.is_some_and(|core| pin::restrict_to(&[core]).is_ok()) {
        let begin = Instant::now();
        while begin.elapsed() < stall {
            std::hint::spin_loop();
        }
    }
    sleep(every.saturating_sub(begin.elapsed()));
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, fault, stall, every] = words.as_slice() else {
        eprintln!(
            "error: give a folder of experiments, a fault, and two times: neighbor runs syscall-storm 20us 10ms"
        );
        return ExitCode::from(2);
    };
    let (Some(stall), Some(every)) = (time(stall), time(every)) else {
        eprintln!("error: {stall} or {every} is no time: give one such as 20us or 10ms");
        return ExitCode::from(2);
    };
    let core = AtomicU64::new(NONE);
    std::thread::scope(|scope| {
        scope.spawn(|| watch(Path::new(folder), fault, &core));
        if let Err(error) = priority::set_fifo(PRIORITY) {
            eprintln!("note: no real-time priority, so the engine goes first: {error}");
        }
        loop {
            take_away(core.load(Ordering::Relaxed), stall, every);
        }
    })
}
