//! The kernel's counters around a silent or dying thread: its own CPU time, its cgroup, and the
//! machine. They go into the incident and decide nothing.

use super::cpu_accounts;
use planner::host;
use planner::host::cgroups::cpu_cgroup;
use std::path::Path;
use std::time::Duration;
use supervision::stuck::CpuSample;
use system::process;

/// Hundredths of a second, in which `/proc/stat` counts (`USER_HZ`).
const HUNDREDTH: Duration = Duration::from_millis(10);

/// Reads the CPU-time counters of a thread, of its cgroup and of the machine; `None` if the process
/// has no such thread or the kernel keeps no account.
pub fn sample_of_thread(pid: u32, tid: u64) -> Option<CpuSample> {
    let root = host::root();
    let tid = process::host_thread_id(pid, tid)?;
    let text = |path: &str| std::fs::read_to_string(root.join(path)).unwrap_or_default();
    let task = format!("proc/{pid}/task/{tid}");
    let (stat, schedstat) = (text(&format!("{task}/stat")), text(&format!("{task}/schedstat")));
    let account = cpu_accounts::parse(&stat, &schedstat)?;
    let sample = CpuSample { account, state: process::state_in(&stat), ..CpuSample::default() };
    Some(with_surroundings(sample, root, pid, cpu_in_stat(&stat), &text))
}

/// Reads the CPU-time counters of a process's first thread.
pub fn sample_of_process(pid: u32) -> Option<CpuSample> {
    sample_of_thread(pid, pid.into())
}

/// Adds the counters of the cgroup and the machine.
fn with_surroundings(
    sample: CpuSample,
    root: &Path,
    pid: u32,
    cpu: Option<u32>,
    text: &impl Fn(&str) -> String,
) -> CpuSample {
    let group = cpu_cgroup(root, pid);
    let in_group = |file: &str| {
        let path = group.as_ref().map(|group| group.join(file));
        path.and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default()
    };
    let weight = ["cpu.weight", "cpu.shares"].map(|file| in_group(file).trim().parse().ok());
    let (loads, times) = (text("proc/loadavg"), text("proc/stat"));
    CpuSample {
        at: uptime(&text("proc/uptime")),
        throttled: throttled(&in_group("cpu.stat")),
        weight: weight[0].or(weight[1]),
        group_waited: pressure(&in_group("cpu.pressure")),
        machine_waited: pressure(&text("proc/pressure/cpu")),
        stolen: stolen(&times),
        in_kernel: cpu.and_then(|cpu| Some((cpu, in_kernel(&times, cpu)?))),
        runnable: loads.split_whitespace().nth(3).and_then(|it| it.split('/').next()?.parse().ok()),
        cpus: std::thread::available_parallelism().map_or(1, usize::from) as u64,
        ..sample
    }
}

/// Returns how often a cgroup was throttled and for how long, from the text of its `cpu.stat`.
fn throttled(stat: &str) -> Option<(u64, Duration)> {
    let value = |key: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    // Microseconds in cgroup v2, nanoseconds in v1.
    let time = value("throttled_usec").map(Duration::from_micros);
    let time = time.or_else(|| value("throttled_time").map(Duration::from_nanos))?;
    Some((value("nr_throttled")?, time))
}

fn uptime(text: &str) -> Duration {
    let seconds = text.split_whitespace().next().and_then(|it| it.parse().ok());
    Duration::try_from_secs_f64(seconds.unwrap_or(0.0)).unwrap_or_default()
}

/// Returns the time in which some thread waited, from the text of a `pressure` file.
fn pressure(text: &str) -> Option<Duration> {
    let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    total.parse().ok().map(Duration::from_micros)
}

/// Returns the time that the host took from all CPUs together, from the text of `/proc/stat`.
fn stolen(stat: &str) -> Option<Duration> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let hundredths: u32 = all.split_whitespace().nth(7)?.parse().ok()?;
    Some(HUNDREDTH * hundredths)
}

/// Returns the CPU on which a thread ran last, from the text of its `stat`: its 39th field.
fn cpu_in_stat(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(36)?.parse().ok()
}

/// Returns the time that a CPU has spent in the kernel, interrupts included, from `/proc/stat`.
fn in_kernel(stat: &str, cpu: u32) -> Option<Duration> {
    let times = stat.lines().find_map(|line| line.strip_prefix(&format!("cpu{cpu} ")))?;
    let times: Vec<u32> = times.split_whitespace().filter_map(|time| time.parse().ok()).collect();
    let sum = [2, 5, 6].iter().map(|field| times.get(*field)).sum::<Option<u32>>()?;
    Some(HUNDREDTH * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_files_parse_and_malformed_are_absent() {
        let v2 = "usage_usec 9\nnr_periods 3\nnr_throttled 2\nthrottled_usec 1500\n";
        let v1 = "nr_periods 3\nnr_throttled 2\nthrottled_time 1500000\n";
        let expected = Some((2, Duration::from_micros(1500)));
        assert_eq!([v2, v1, "", "nr_throttled x"].map(throttled), [expected, expected, None, None]);
        let some = "some avg10=97.02 avg60=97.73 avg300=69.40 total=404\nfull avg10=0.00 total=0\n";
        assert_eq!([some, "full total=7", ""].map(pressure), [Some(Duration::from_micros(404)), None, None]);
        let stat = "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 99 9 10\n";
        assert_eq!([stat, "cpu  1 2", ""].map(stolen), [Some(Duration::from_millis(80)), None, None]);
        let in_kernel = [stat, "cpu0 1 2"].map(|stat| in_kernel(stat, 0));
        assert_eq!(in_kernel, [Some(Duration::from_millis(160)), None]);
        let thread = format!("7 (a b) R{} 3 0", " 1".repeat(35));
        assert_eq!([thread.as_str(), "7 (a) R 1"].map(cpu_in_stat), [Some(3), None]);
        assert_eq!(["12.25 7\n", "-1", ""].map(uptime), [12_250, 0, 0].map(Duration::from_millis));
    }

    #[test]
    fn own_thread_is_sampled_with_machine() {
        let first = sample_of_process(std::process::id()).unwrap();
        std::thread::sleep(Duration::from_millis(30));
        let last = sample_of_process(std::process::id()).unwrap();
        let found = last.shortage_since(&first).unwrap();
        assert!(found.over_ns > 0 && found.cpus > 0 && found.state.is_some(), "{found:?}");
        assert_eq!(first.shortage_since(&first), None, "no time has passed");
        assert_eq!(sample_of_thread(std::process::id(), 1), None, "a thread of another process");
    }
}
