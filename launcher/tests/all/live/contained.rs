//! Live runs at the isolation level `container`: built-in strategies and programs trade from
//! containers, crash as they do at `process`, and see only what they were given.

use super::programs::{BOOK, Program, checked_fills, run_broken};
use super::watching::watch_once;
use crate::common::{
    LONG, Launcher, Running, SHORT, assert_exists, assert_no_allocations, container_check, list, number,
    output, output_of, proc, signal, skip, string, wait_until,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::process::Command;

pub const CONTAINER: &str = "--isolation container";

#[test]
fn techniques_carry_a_contained_run() {
    let Some(launcher) = Launcher::contained() else { return };
    for technique in ["array-queue", "pipe"] {
        let summary = launcher.summary(&format!("{CONTAINER} {SHORT} --technique {technique}"));
        let expected = (&"container".into(), &2000.into());
        assert_eq!((&summary["isolation"], &summary["orders"]["returned"]), expected, "{technique}");
        assert_no_allocations(&summary);
    }
    let refused = launcher.result(&format!("{CONTAINER} {SHORT} --technique unix-seqpacket"));
    refused.fails(2, &["Use another --technique"]);
}

/// Returns the cgroups of the launcher's run.
fn cgroups_of(launcher: u32) -> Vec<String> {
    let cgroup_paths = output_of(Command::new("find").args(["/sys/fs/cgroup", "-name", "bulkhead.*"]));
    let of_run = |line: &&str| line.contains(&format!("-{launcher}."));
    cgroup_paths.stdout.lines().filter(of_run).map(str::to_owned).collect()
}

/// A launcher in another PID namespace with its own `/dev/shm` sees nothing of a run but its
/// cgroups.
#[test]
fn cgroups_of_unseen_launcher_are_not_removed() {
    let Some(launcher) = Launcher::contained() else { return };
    let running = launcher.start(&format!("{CONTAINER} {LONG}"));
    let own = cgroups_of(running.pid());
    let script = "mount -t tmpfs tmpfs /dev/shm && exec \"$0\" clean --dry-run";
    let mut elsewhere = Command::new("unshare");
    elsewhere.args(["--pid", "--fork", "--mount-proc", "--mount", "sh", "-c", script]);
    let cleaned = elsewhere.arg(launcher.run("").get_program()).output();
    launcher.interrupted(running);
    let Some(cleaned) = cleaned.ok().filter(|cleaned| cleaned.status.success()) else {
        return skip("there is no right to unshare and mount here");
    };
    let named = String::from_utf8(cleaned.stdout).unwrap();
    assert!(own.iter().all(|group| !named.contains(group)), "{own:?}: {named}");
}

/// Returns a field of `/proc/PID/status`.
fn status(pid: u32, field: &str) -> String {
    let status = proc(pid, "status");
    let value =
        status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap_or_default();
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Checks from outside what a running strategy can reach in its container.
fn assert_isolated(running: &Running) {
    let pid = running.process("strategy-1");
    assert_eq!(status(pid, "NSpid"), format!("{pid} 2"));
    assert_eq!((status(pid, "CapEff"), status(pid, "NoNewPrivs")), ("0000000000000000".into(), "1".into()));
    let own_namespace = |name: &str| fs::read_link(format!("/proc/{pid}/ns/{name}")).unwrap();
    let host_namespace = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
    for name in ["user", "mnt", "pid", "net", "ipc", "uts"] {
        assert_ne!(own_namespace(name), host_namespace(name), "{name}");
    }
    assert_eq!(own_namespace("time"), host_namespace("time"), "all processes share the time namespace");
    let names = fs::read_dir(format!("/proc/{pid}/root/dev/shm")).unwrap();
    let names: BTreeSet<String> =
        names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
    let suffixes: BTreeSet<&str> = names.iter().filter_map(|name| name.splitn(3, '.').nth(2)).collect();
    for expected in ["control", "schedule-1", "return-1", "bell-engine", "wake-engine-strategy-1"] {
        assert!(suffixes.contains(expected), "{expected}: {suffixes:?}");
    }
    // Memory that it may write has no name; memory of other processes does not exist there.
    let of_others =
        ["desk", "answers", "repairs", "schedule-0", "thread-engine", "return-0", "wake-engine-strategy-0"];
    for not in ["thread-strategy-1", "bell-strategy-1", "submit-1"].into_iter().chain(of_others) {
        assert!(!suffixes.contains(not), "{not}: {suffixes:?}");
    }
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links: Vec<String> =
        descriptors.map(|fd| fs::read_link(fd.unwrap().path()).unwrap().display().to_string()).collect();
    let is_known = |link: &String| {
        let is_sealed = link.starts_with("/memfd:bulkhead.") && !link.contains("strategy-0");
        link == "/dev/null" || link.ends_with(".stderr") || link == "anon_inode:[pidfd]" || is_sealed
    };
    assert!(links.iter().all(is_known), "{links:?}");
    let engine = running.process("engine");
    assert_eq!(status(engine, "NSpid"), engine.to_string(), "the engine is trusted");
}

#[test]
fn contained_strategy_sees_only_its_segments() {
    let Some(launcher) = Launcher::contained() else { return };
    let running = launcher.start(&format!("{CONTAINER} {LONG}"));
    let pid = running.pid();
    assert_isolated(&running);
    let stderr = running.interrupt().stderr;
    assert_eq!(cgroups_of(pid), [""; 0], "{stderr}");
}

#[test]
fn killed_launcher_leaves_no_container() {
    let Some(launcher) = Launcher::contained() else { return };
    let mut running = launcher.start(&format!("{CONTAINER} {LONG}"));
    let pid = running.pid();
    running.kill();
    running.end();
    wait_until("the cgroups are gone", || cgroups_of(pid).is_empty());
    assert_exists(&launcher.folder().join("strategy-0.stamps"));
    let stderr = launcher.read("strategy-0.stderr");
    assert!(stderr.contains("the launcher (pid") && stderr.contains("the logs are complete"), "{stderr}");
}

#[test]
fn killing_container_shim_ends_container() {
    let Some(launcher) = Launcher::contained() else { return };
    let running = launcher.start(&format!("{CONTAINER} {LONG}"));
    let strategy = running.process("strategy-1").to_string();
    signal(running.process("--contain strategy-1"), "KILL");
    running.end().fails(1, &["strategy-1", "SIGKILL", &strategy]);
}

/// Makes a run in which each strategy but the first has one of these faults, and interrupts it when
/// all have died and run again. Returns the cause of each incident, and whether the strategy was
/// restarted.
fn incident_causes(isolation: &str, faults: &[&str]) -> Vec<(String, bool)> {
    let each = faults.iter().zip(1..).map(|(fault, strategy)| format!("{fault}:strategy-{strategy}@200ms"));
    let each = each.collect::<Vec<_>>().join("; ");
    // On a busy machine a leak or the taking of a resource may be silent for seconds; one that is
    // stopped is found by its deadline.
    let liveness = if faults == ["stop"] { "2s" } else { "60s" };
    let launcher = Launcher::new();
    let running = launcher.start(&format!(
        "--isolation {isolation} --strategies {} --orders 60k --window 600s --idle park \
         --delay uniform:1ms..20ms --on-death restart --liveness {liveness} --fault '{each}'",
        faults.len() + 1
    ));
    let folder = launcher.folder().display().to_string();
    wait_until("all faulty strategies have died and are restarted", || {
        let snapshot = watch_once(&folder);
        let is_renewed = |row: &Value| number(&row["incarnation"]) > 0 && row["is_fenced"] == false;
        list(&snapshot["strategies"])[1..].iter().all(is_renewed)
    });
    // From here on a state is the successor's.
    wait_until("all successors run", || {
        let snapshot = watch_once(&folder);
        list(&snapshot["roles"])[..=faults.len()].iter().all(|role| role["state"] == "running")
    });
    let summary = launcher.interrupted(running);
    assert_eq!(summary["valid"], true, "{summary:#}");
    let mut incidents = list(&summary["incidents"]).to_vec();
    assert_eq!(incidents.len(), faults.len(), "{each}: {incidents:#?}");
    assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{each}");
    incidents.sort_by_key(|incident| incident["strategy"].as_u64());
    let cause_and_restart =
        |incident: &Value| (string(&incident["cause"]).to_owned(), incident["repair_to_restart_ns"].is_u64());
    incidents.iter().map(cause_and_restart).collect()
}

#[test]
fn container_deaths_have_the_same_causes_as_outside() {
    if Launcher::contained().is_none() {
        return;
    }
    let expected = ["signal 11 (SIGSEGV)", "exit 3", "signal 6 (SIGABRT)", "hangs"];
    let mut causes = incident_causes("container", &["segv", "exit", "leak"]);
    causes.extend(incident_causes("container", &["stop"]));
    for ((cause, is_restarted), expected) in causes.iter().zip(expected) {
        assert!(cause.contains(expected) && *is_restarted, "{expected}: {causes:?}");
    }
}

#[test]
fn resource_exhaustion_is_limited_in_container() {
    if Launcher::contained().is_none() {
        return;
    }
    let limits = container_check();
    let faults = ["forkbomb", "descriptors", "disk", "children", "peek", "network", "punch"];
    let contained = incident_causes("container", &faults);
    assert_eq!(contained[6], ("exit 41".into(), true));
    for (fault, (contained, is_restarted)) in faults.iter().zip(&contained) {
        let unlimited = *fault == "children" && limits.contains("for all of a container together");
        let refused = contained == "exit 41" || contained.starts_with("signal 9 (SIGKILL)");
        assert!(*is_restarted && (refused || unlimited), "{fault}: {contained}");
    }
    // What exhausts nothing, at the level that refuses least: the attempt succeeds or is refused.
    for (cause, _) in incident_causes("process", &["peek", "network"]) {
        assert!(["exit 40", "exit 41"].contains(&cause.as_str()), "{cause}");
    }
}

/// The container check detects each missing barrier.
#[test]
fn container_check_detects_each_missing_barrier() {
    if Launcher::contained().is_none() {
        return;
    }
    for (missing_barrier, expected) in [
        ("processes", "it sees process"),
        ("network", "its net namespace is the host's"),
        ("ipc", "its ipc namespace is the host's"),
        ("root", "/ may be written"),
        ("memory", "was not handed over"),
        ("calls", "it may make sockets of the kind Vsock"),
        ("rights", "NoNewPrivs is 0"),
    ] {
        let probe = output(&format!("role --contain probe {missing_barrier}"));
        assert!(
            probe.code != Some(0) && probe.stderr.contains(expected),
            "without {missing_barrier}: {}",
            probe.stderr
        );
    }
    output("role --contain probe ''").succeeds();
}

#[test]
fn contained_program_and_engine_agree_on_fills() {
    let Some(launcher) = Launcher::contained() else { return };
    // A container has its own `/tmp`, but shows the program's folder below it.
    let Some(program) = Program::compile("examples/c/strategy.c") else { return };
    let kinds = program.with_player("");
    let summary = launcher.summary(&format!("{CONTAINER} {BOOK} {kinds} --orders 2400 --idle park"));
    assert_eq!((&summary["orders"]["sent"], &summary["orders"]["lost"]), (&2400.into(), &0.into()));
    checked_fills(&launcher, &summary, 1);
}

#[test]
fn container_blocks_escapes_outside_namespaces() {
    let Some(launcher) = Launcher::contained() else { return };
    let Some(program) = Program::compile("tests/c/escapee.c") else { return };
    let name = format!("bulkhead-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let kind = program.exec(&format!("escape {name} {}", std::process::id()));
    let run = launcher.run(&format!("{CONTAINER} --strategy '{kind}' --strategies 1 --orders 10"));
    let mut command = Command::new(program.path());
    command.arg("with-key").arg(run.get_program()).args(run.get_args());
    let error = output_of(&mut command).stderr;
    assert!(error.contains("exit 40") && !error.contains("allowed:"), "{error}");
}

/// A signal to its own process group does not reach the processes that supervise it.
#[test]
fn program_stopping_its_process_group_is_ended() {
    if Launcher::contained().is_none() {
        return;
    }
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let contained = format!("{CONTAINER} --on-death restart --liveness 1s");
    let summary = run_broken(&program, "stop", &contained).1.json();
    let [incident] = list(&summary["incidents"]) else { panic!("{:#}", summary["incidents"]) };
    assert!(string(&incident["cause"]).contains("hangs"), "{incident:#}");
    assert!(incident["repair_to_restart_ns"].is_u64(), "{incident:#}");
    assert_eq!(summary["valid"], true, "{}", summary["reasons"]);
}
