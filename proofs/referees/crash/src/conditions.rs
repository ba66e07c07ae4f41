//! The conditions of a run: machine, date, and load at the start. The page reports them.

use std::process::Command;

fn read(path: &str) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// Returns the CPU's model, the number of cores, and the version of the kernel.
pub fn machine() -> String {
    let cpu = read("/proc/cpuinfo");
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown CPU", |(_, model)| model.trim()).replace(['"', ','], " ");
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    format!("{model}; {cores} cores; Linux {}", read("/proc/sys/kernel/osrelease").trim())
}

/// Returns the date in UTC, as `2026-01-31`.
pub fn date() -> String {
    let output = Command::new("date").args(["-u", "+%F"]).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Returns the load average of the last minute, before the trials add to it.
pub fn load() -> String {
    read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned()
}
