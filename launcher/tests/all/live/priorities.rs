//! Real-time priorities of role threads, and the launcher's use of their cores.

use super::permissions::without_capabilities;
use super::watching::watch_once;
use crate::common::{
    LONG, Launcher, document, newest_process, number, output_of, proc, signal, skip, wait_until,
};

/// The kernel's number of `SCHED_FIFO`.
const FIFO: u64 = 1;

/// Returns the real-time priority of each thread of a process that has one, and whether it is the
/// main thread.
fn priorities(pid: u32) -> Vec<(bool, u64)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let realtime_priority = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        // Fields count from the state, the third, behind the name in parentheses.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let is_main = task.file_name().to_str() == Some(&pid.to_string());
        (field(41)? == FIFO).then_some((is_main, field(40)?))
    };
    tasks.filter_map(realtime_priority).collect()
}

#[test]
fn priority_applies_to_role_threads_after_restart() {
    if let Err(error) = system::priority::try_fifo(7) {
        return skip(&format!("priority_applies_to_role_threads_after_restart: {error}"));
    }
    for isolation in ["process", "sandbox"] {
        let launcher = Launcher::new();
        let flags = format!("{LONG} --priority fifo:7 --on-death restart --isolation {isolation}");
        let dry_run = launcher.result(&format!("{flags} --dry-run"));
        if isolation == "sandbox" && dry_run.stderr.contains("the limit cannot be raised") {
            let stderr = dry_run.fails(2, &["ulimit -Hr to 7"]).stderr;
            skip(&format!("with a sandbox: {stderr}"));
            continue;
        }
        let running = launcher.start(&flags);
        let pid = running.pid();
        let expected = [(false, 7)];
        for role in ["strategy-0", "strategy-1", "engine"] {
            wait_until("a role has its priority", || priorities(running.process(role)) == expected);
        }
        assert_eq!(priorities(running.process("reaper")), []);
        assert_eq!(priorities(pid), [], "the launcher has none");
        let first = running.process("strategy-0");
        signal(first, "KILL");
        wait_until("the restarted strategy has the priority", || {
            newest_process(pid, "strategy-0", first).is_some_and(|next| priorities(next) == expected)
        });
        let result = running.interrupt();
        assert!(result.stdout.contains("priority fifo:7"), "{}", result.all_output());
        assert_eq!(launcher.newest_summary()["plan"]["priority"], 7);
        let config = launcher.read("config.yaml");
        assert!(config.contains("priority: fifo:7"), "{config}");
    }
}

#[test]
fn unavailable_priority_is_refused_before_start() {
    if !nix::unistd::geteuid().is_root() && system::priority::try_fifo(7).is_ok() {
        return skip("this user may have real-time priorities");
    }
    let launcher = Launcher::new();
    let Some(mut command) = without_capabilities(&["sys_nice"], &launcher.run("--priority fifo:7")) else {
        return;
    };
    let result = output_of(&mut command);
    if result.code == Some(0) {
        return skip("ulimit -r allows it without the capability");
    }
    result.fails(2, &["--priority fifo:7 is not permitted", "leave --priority out"]);
    assert_eq!(launcher.folders().len(), 0);
}

/// Counts sleeps and steps instead of measuring CPU time: on a busy machine the launcher makes
/// fewer, not more. One that does not sleep makes a step after the other. At `thread` no lock tells
/// of a death, so there is none to wait for.
#[test]
fn launcher_sleeps_while_orders_are_sent() {
    for isolation in ["process", "thread"] {
        let launcher = Launcher::new();
        launcher.summary(&format!(
            "--isolation {isolation} --strategies 1 --venues 1 --orders 200 --window 2s --idle park --delay uniform:1ms..20ms"
        ));
        let run = document(&launcher.folder(), "run.json");
        let sleeps = &run["kernel"]["launcher"];
        let (times, ns) = (number(&sleeps["times"]), number(&sleeps["ns"]));
        assert!(ns > 1_500_000_000, "{isolation}: {sleeps}");
        assert!(times * 1_000_000_000 < 16 * ns, "{isolation}: fewer than sixteen a second: {sleeps}");
        let steps = number(&run["open_orders"]["samples"]);
        assert!(steps > 3, "{isolation}: the launcher still samples the open orders: {steps}");
        assert!(steps * 1_000_000_000 < 100 * ns, "{isolation}: {steps} steps, {sleeps}");
    }
}

/// The launcher is stopped while the last orders are sent, as if a busy machine gave it no core.
#[test]
fn wake_ups_counted_without_step_after_last_order() {
    let launcher = Launcher::new();
    let running =
        launcher.start("--strategies 1 --venues 1 --orders 300 --window 1s --idle park --delay 1ms");
    signal(running.pid(), "STOP");
    let folder = launcher.folder().display().to_string();
    wait_until("all orders are settled", || watch_once(&folder)["settled"] == 300);
    signal(running.pid(), "CONT");
    running.end().succeeds();
    let sleeps = document(&launcher.folder(), "run.json")["kernel"]["launcher"].clone();
    assert!(number(&sleeps["ns"]) > 0, "{sleeps}");
}

#[test]
fn launcher_avoids_run_cores_if_others_exist() {
    let allowed = system::pin::allowed_cores();
    let Some((last, rest)) = allowed.split_last().filter(|(_, rest)| !rest.is_empty()) else {
        return skip("one core only");
    };
    let cores = |status: &str| {
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.map_or_else(String::new, |list| list.trim().to_owned())
    };
    let launcher = Launcher::new();
    let running = launcher.start(&format!("{LONG} --cores {last}"));
    let launcher_cores = cores(&proc(running.pid(), "status"));
    assert_eq!(record::cpu_list::parse(&launcher_cores).unwrap(), rest);
    let engine = running.process("engine");
    let tasks = std::fs::read_dir(format!("/proc/{engine}/task")).unwrap().flatten();
    let statuses = tasks.map(|task| std::fs::read_to_string(task.path().join("status")).unwrap_or_default());
    let on_last = statuses.filter(|status| cores(status) == last.to_string()).count();
    assert_eq!(on_last, 1, "the role's thread is where the plan has it");
    running.interrupt();
}
