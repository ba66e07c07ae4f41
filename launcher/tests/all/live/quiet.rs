//! Other threads on the cores of the roles: their priority, and the launcher's own sleep.

use crate::common::{LONG, Launcher, assert_nothing_left, document, newest, signal, text, wait_until};
use std::process::{Command, Stdio};

/// The kernel's number of `SCHED_FIFO`.
const FIFO: u64 = 1;

/// The real-time priority of each thread of a process that has one, first that of its main thread,
/// if it has one.
fn priorities(pid: u32) -> Vec<(bool, u64)> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("stat")).ok()?;
        // Fields count from the state, the third, behind the name in parentheses.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let is_main = task.file_name().to_str() == Some(&pid.to_string());
        (field(41)? == FIFO).then_some((is_main, field(40)?))
    };
    tasks.filter_map(of).collect()
}

#[test]
fn priority_applies_to_role_threads_after_restart() {
    if let Err(error) = system::priority::try_fifo(7) {
        return eprintln!("SKIPPED priority_applies_to_role_threads_after_restart: {error}");
    }
    for isolation in ["process", "sandbox"] {
        let launcher = Launcher::new();
        let more = ["--priority", "fifo:7", "--on-death", "restart", "--isolation", isolation];
        let tried = launcher.run(&[LONG, &more].concat()).arg("--dry-run").output().unwrap();
        let said = text(&tried.stderr);
        if isolation == "sandbox" && said.contains("the limit cannot be raised") {
            assert!(tried.status.code() == Some(2) && said.contains("ulimit -Hr to 7"), "{said}");
            eprintln!("SKIPPED with a sandbox: {said}");
            continue;
        }
        let running = launcher.start(&[LONG, &more].concat());
        let pid = running.pid();
        let one = [(false, 7)];
        for role in ["strategy-0", "strategy-1", "engine"] {
            wait_until("a role has its priority", || priorities(running.process(role)) == one);
        }
        assert_eq!(priorities(running.process("reaper")), []);
        assert_eq!(priorities(pid), [], "the launcher has none");
        let first = running.process("strategy-0");
        signal(first, "KILL");
        wait_until("the next one has it too", || {
            newest(pid, "strategy-0", first).is_some_and(|next| priorities(next) == one)
        });
        signal(pid, "INT");
        let (_, said, error) = running.end();
        assert!(said.contains("priority fifo:7"), "{said}{error}");
        let folder = launcher.folders().remove(0);
        assert_eq!(launcher.newest_summary()["plan"]["priority"], 7);
        let config = std::fs::read_to_string(folder.join("config.yaml")).unwrap();
        assert!(config.contains("priority: fifo:7"), "{config}");
        assert_nothing_left(pid);
    }
}

#[test]
fn unavailable_priority_is_refused_before_start() {
    let without = ["--bounding-set=-sys_nice", "--inh-caps=-sys_nice", "--"];
    let launcher = Launcher::new();
    let run = launcher.run(&["--priority", "fifo:7"]);
    let mut command = if nix::unistd::geteuid().is_root() {
        let tried = Command::new("setpriv").args(without).arg("true").output();
        if !tried.is_ok_and(|output| output.status.success()) {
            return eprintln!("SKIPPED: setpriv cannot give up a capability here");
        }
        let mut command = Command::new("setpriv");
        command.args(without).arg(run.get_program());
        command
    } else if system::priority::try_fifo(7).is_ok() {
        return eprintln!("SKIPPED: this user may have real-time priorities");
    } else {
        Command::new(run.get_program())
    };
    let output = command.args(run.get_args()).stdin(Stdio::null()).output().unwrap();
    let said = text(&output.stderr);
    if output.status.success() {
        return eprintln!("SKIPPED: ulimit -r allows it without the capability");
    }
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--priority fifo:7 is not permitted") && said.contains("leave --priority out"),
        "{said}"
    );
    assert_eq!(launcher.folders().len(), 0);
}

/// Counted, not timed: a machine that is busy makes it sleep less often, not more.
#[test]
fn the_launcher_sleeps_while_nothing_happens() {
    let launcher = Launcher::new();
    let flags = ["--strategies", "1", "--venues", "1", "--orders", "300", "--window", "3s", "--idle", "park"];
    launcher.summary(&[&flags[..], &["--delay", "uniform:1ms..20ms"]].concat());
    let run = document(&launcher.folders()[0], "run.json");
    let counted = &run["kernel"]["launcher"];
    let (times, ns) = (counted["times"].as_u64().unwrap(), counted["ns"].as_u64().unwrap());
    assert!(ns > 2_500_000_000, "{counted}");
    assert!(times * 1_000_000_000 < 8 * ns, "fewer than eight a second: {counted}");
    let samples = run["open_orders"]["samples"].as_u64().unwrap();
    assert!(samples > 5, "and it still looks at the open orders: {samples}");
}

#[test]
fn launcher_avoids_run_cores_if_others_exist() {
    let allowed = system::pin::allowed_cores();
    let [.., last] = allowed[..] else { return };
    if allowed.len() < 2 {
        return eprintln!("SKIPPED: one core only");
    }
    let cores = |task: String| {
        let status = std::fs::read_to_string(format!("/proc/{task}/status")).unwrap_or_default();
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        list.map_or_else(String::new, |list| list.trim().to_owned())
    };
    let launcher = Launcher::new();
    let running = launcher.start(&[LONG, &["--cores", &last.to_string()]].concat());
    let pid = running.pid();
    let rest = analysis::cpu_list::parse(&cores(pid.to_string())).unwrap();
    assert_eq!(rest, allowed[..allowed.len() - 1]);
    let engine = running.process("engine");
    let on_last = |pid: u32| {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().flatten();
        tasks
            .filter(|task| cores(format!("{pid}/task/{}", task.file_name().display())) == last.to_string())
            .count()
    };
    assert_eq!(on_last(engine), 1, "the role's thread is where the plan has it");
    signal(pid, "INT");
    running.end();
    assert_nothing_left(pid);
}
