//! Strategies whose processes are closed to the predictions of others.

use crate::common::{LONG, Launcher, newest_process, proc, signal, skip, wait_until};
use system::speculation::{state, try_close};

/// Returns the kernel's word for the speculation of each thread of a process.
fn states(pid: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let status = tasks.map(|task| proc(pid, &format!("task/{}/status", task.unwrap().file_name().display())));
    status.map(|status| state(&status).unwrap_or_default().to_owned()).collect()
}

#[test]
fn closed_speculation_reaches_strategies_and_their_successors_alone() {
    if let Err(why) = try_close() {
        return skip(&format!("speculation cannot be closed: {why}"));
    }
    let is_closed = |pid| states(pid).iter().all(|state| state.ends_with("disabled"));
    for isolation in ["process", "process*2", "container", "sandbox", "thread+process:closed"] {
        let launcher = match isolation {
            "container" => Launcher::contained(),
            "sandbox" => Launcher::sandboxed(),
            _ => Some(Launcher::new()),
        };
        let Some(launcher) = launcher else { continue };
        let setting = if isolation.contains(":closed") { "open" } else { "closed" };
        let flags = format!("{LONG} --isolation {isolation} --speculation {setting} --on-death restart");
        let running = launcher.start(&flags);
        let name = if isolation.contains('*') { "group-0" } else { "strategy-1" };
        let victim = running.process(name);
        assert!(is_closed(victim), "{isolation}: {:?}", states(victim));
        assert!(!is_closed(running.process("engine")), "{isolation}: the engine is not");
        signal(victim, "KILL");
        wait_until("it is restarted", || newest_process(running.pid(), name, victim).is_some());
        let successor = newest_process(running.pid(), name, victim).unwrap();
        wait_until("its successor is closed", || is_closed(successor));
        let summary = launcher.interrupted(running);
        assert_eq!(summary["valid"], true, "{isolation}: {}", summary["reasons"]);
    }
}

#[test]
fn closed_speculation_is_refused_where_kernel_has_none() {
    if try_close().is_ok() {
        return skip("speculation can be closed here");
    }
    let launcher = Launcher::new();
    for flags in ["--isolation process --speculation closed", "--isolation thread+process:closed"] {
        let refused = launcher.result(&format!("{LONG} {flags}"));
        refused.fails(2, &["closed speculation: ", "spectre_v2_user=prctl"]);
    }
}

#[test]
fn threads_have_no_closed_speculation() {
    let launcher = Launcher::new();
    let refused = launcher.result(&format!("{LONG} --isolation thread --speculation closed"));
    refused.fails(2, &["--speculation closed with --isolation thread", "Use --isolation process"]);
    let refused = launcher.result(&format!("{LONG} --isolation keys:closed"));
    refused.fails(2, &["the kernel separates processes"]);
}
