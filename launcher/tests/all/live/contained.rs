//! Live runs at the isolation level `container`: strategies, ours and a program, trade from
//! containers, die as they do at `process`, and find there what they were handed and nothing else.

use super::programs::{BOOK, Program, told, with_broken};
use crate::common::{
    LONG, Launcher, Running, SHORT, assert_exists, assert_nothing_left, output, signal, text, wait_until,
};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

pub const CONTAINER: &[&str] = &["--isolation", "container"];

/// What doctor says of containers.
fn doctor() -> (bool, String) {
    let checks: Value = serde_json::from_slice(&output(&["doctor", "--json"]).stdout).unwrap();
    let all = checks["checks"].as_array().unwrap();
    let found = all.iter().find(|check| check["name"] == "container").unwrap()["found"].as_str().unwrap();
    (found.starts_with("--isolation container"), found.to_owned())
}

pub fn unsupported() -> bool {
    let (can, found) = doctor();
    if !can {
        eprintln!("SKIPPED: {found}");
    }
    !can
}

#[test]
fn every_technique_that_reaches_in_carries_a_contained_run() {
    if unsupported() {
        return;
    }
    for technique in ["spsc-mux", "array-queue", "linked", "channel", "pipe"] {
        let flags = ["--technique", technique, "--idle", "park"];
        let summary = Launcher::new().summary(&[CONTAINER, SHORT, &flags].concat());
        assert_eq!(
            (&summary["isolation"], &summary["orders"]["returned"]),
            (&"container".into(), &2000.into()),
            "{technique}"
        );
        for thread in summary["processes"].as_array().unwrap() {
            assert_eq!(thread["allocations"], 0, "{technique}: {thread}");
        }
    }
    let refused =
        Launcher::new().run(&[CONTAINER, SHORT, &["--technique", "unix-seqpacket"]].concat()).output();
    let refused = refused.unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("Use another --technique"), "{}", text(&refused.stderr));
}

/// The cgroups of that launcher's run.
fn groups(launcher: u32) -> Vec<String> {
    let found =
        std::process::Command::new("find").args(["/sys/fs/cgroup", "-name", "bulkhead.*"]).output().unwrap();
    let of_run = |line: &&str| line.contains(&format!("-{launcher}."));
    text(&found.stdout).lines().filter(of_run).map(str::to_owned).collect()
}

/// A field of a process's status.
fn status(pid: u32, field: &str) -> String {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap_or_default();
    value.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is seen from outside of a living strategy in its container.
fn look_into(running: &Running) {
    let pid = running.process("strategy-1");
    assert_eq!(status(pid, "NSpid"), format!("{pid} 2"));
    assert_eq!((status(pid, "CapEff"), status(pid, "NoNewPrivs")), ("0000000000000000".into(), "1".into()));
    let own = |name: &str| fs::read_link(format!("/proc/{pid}/ns/{name}")).unwrap();
    let host = |name: &str| fs::read_link(format!("/proc/self/ns/{name}")).unwrap();
    for name in ["user", "mnt", "pid", "net", "ipc", "uts"] {
        assert_ne!(own(name), host(name), "{name}");
    }
    assert_eq!(own("time"), host("time"), "clocks are the same");
    let names = fs::read_dir(format!("/proc/{pid}/root/dev/shm")).unwrap();
    let names: BTreeSet<String> =
        names.map(|name| name.unwrap().file_name().into_string().unwrap()).collect();
    let what: BTreeSet<&str> = names.iter().filter_map(|name| name.splitn(3, '.').nth(2)).collect();
    for there in ["control", "schedule-1", "return-1"] {
        assert!(what.contains(there), "{there}: {what:?}");
    }
    // What it may write has no name; what others have is not there at all.
    let of_others = ["desk", "answers", "repairs", "schedule-0", "thread-engine", "return-0"];
    for not in ["thread-strategy-1", "bell-strategy-1", "submit-1"].into_iter().chain(of_others) {
        assert!(!what.contains(not), "{not}: {what:?}");
    }
    let open = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
    let links: Vec<String> =
        open.map(|fd| fs::read_link(fd.unwrap().path()).unwrap().display().to_string()).collect();
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
    if unsupported() {
        return;
    }
    let launcher = Launcher::new();
    let running = launcher.start(&[CONTAINER, LONG].concat());
    let pid = running.pid();
    look_into(&running);
    signal(pid, "INT");
    let (_, _, stderr) = running.end();
    assert_nothing_left(pid);
    assert_eq!(groups(pid), [""; 0], "{stderr}");
}

#[test]
fn a_launcher_that_is_killed_leaves_no_container() {
    if unsupported() {
        return;
    }
    let launcher = Launcher::new();
    let running = launcher.start(&[CONTAINER, LONG].concat());
    let pid = running.pid();
    signal(pid, "KILL");
    drop(running.end());
    assert_nothing_left(pid);
    wait_until("the control groups are gone", || groups(pid).is_empty());
    let folder = &launcher.folders()[0];
    assert_exists(&folder.join("strategy-0.stamps"));
    let said = fs::read_to_string(folder.join("strategy-0.stderr")).unwrap();
    assert!(said.contains("the launcher (pid") && said.contains("the logs are complete"), "{said}");
}

#[test]
fn killing_container_shim_ends_container() {
    if unsupported() {
        return;
    }
    let launcher = Launcher::new();
    let running = launcher.start(&[CONTAINER, LONG].concat());
    let (pid, strategy) = (running.pid(), running.process("strategy-1"));
    signal(running.process("--contain strategy-1"), "KILL");
    let (code, _, stderr) = running.end();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("strategy-1") && stderr.contains("SIGKILL"), "{stderr}");
    assert!(stderr.contains(&strategy.to_string()), "{stderr}");
    assert_nothing_left(pid);
}

/// A run in which each strategy but the first has one of these faults and is started again: the
/// cause of each incident, and whether the strategy came back.
fn causes(isolation: &str, faults: &[&str]) -> Vec<(String, bool)> {
    let launcher = Launcher::new();
    let strategies = (faults.len() + 1).to_string();
    // Several faults at once need time: a leak grows with its duty cycles, which are few then.
    let window = if faults.len() > 1 { "4s" } else { "1s" };
    let flags = ["--isolation", isolation, "--strategies", &strategies, "--orders", "3000"];
    let load = ["--window", window, "--idle", "park", "--delay", "uniform:1ms..20ms"];
    let each = faults.iter().zip(1..).map(|(fault, strategy)| format!("{fault}:strategy-{strategy}@200ms"));
    let each = each.collect::<Vec<_>>().join("; ");
    let death = ["--on-death", "restart", "--liveness", "2s", "--fault", &each, "--strict-faults"];
    let summary = launcher.summary(&[&flags[..], &load, &death].concat());
    let mut incidents = summary["incidents"].as_array().unwrap().clone();
    assert_eq!(incidents.len(), faults.len(), "{each}: {incidents:#?}");
    assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{each}");
    incidents.sort_by_key(|incident| incident["strategy"].as_u64());
    let end = |incident: &Value| {
        let comes_back = incident["repair_to_restart_ns"].is_u64();
        (incident["cause"].as_str().unwrap().to_owned(), comes_back)
    };
    incidents.iter().map(end).collect()
}

#[test]
fn deaths_in_containers_are_what_they_are_outside() {
    if unsupported() {
        return;
    }
    let wanted = ["signal 11 (SIGSEGV)", "exit 3", "signal 6 (SIGABRT)", "hangs"];
    let ends = causes("container", &["segv", "exit", "leak", "stop"]);
    for ((cause, comes_back), wanted) in ends.iter().zip(wanted) {
        assert!(cause.contains(wanted) && *comes_back, "{wanted}: {ends:?}");
    }
}

#[test]
fn resource_exhaustion_is_limited_in_container() {
    if unsupported() {
        return;
    }
    let (_, limits) = doctor();
    let faults = ["forkbomb", "descriptors", "disk", "children", "peek", "network", "punch"];
    // A punch at `process` ends the run: see `taken`.
    // Without limits one fault would disturb the others.
    let at_process: Vec<_> = faults[..6].iter().flat_map(|fault| causes("process", &[fault])).collect();
    let contained = causes("container", &faults);
    assert_eq!(contained[6], ("exit 41".into(), true));
    for ((fault, (at_process, _)), (contained, comes_back)) in faults.iter().zip(&at_process).zip(&contained)
    {
        assert!(["exit 40", "exit 41"].contains(&at_process.as_str()), "{fault}: {at_process}");
        if ["forkbomb", "disk"].contains(fault) && at_process != "exit 40" {
            eprintln!("note: {fault} is refused at process here, too");
        }
        let unlimited = *fault == "children" && limits.contains("for all of a container together");
        let refused = ["exit 41", "signal 9 (SIGKILL)"].contains(&contained.as_str());
        assert!(*comes_back && (refused || unlimited), "{fault}: {contained}");
    }
}

/// The check finds each part that is not there.
#[test]
fn a_container_that_is_broken_on_purpose_is_found() {
    if unsupported() {
        return;
    }
    for (without, words) in [
        ("processes", "it sees process"),
        ("network", "its net namespace is the host's"),
        ("ipc", "its ipc namespace is the host's"),
        ("root", "/ may be written"),
        ("memory", "was not handed over"),
        ("calls", "it may make sockets of the kind Vsock"),
        ("rights", "NoNewPrivs is 0"),
    ] {
        let probe = output(&["role", "--contain", "probe", without]);
        let error = text(&probe.stderr);
        assert!(!probe.status.success() && error.contains(words), "without {without}: {error}");
    }
    let whole = output(&["role", "--contain", "probe", ""]);
    assert!(whole.status.success(), "{}", text(&whole.stderr));
}

#[test]
fn contained_program_and_engine_agree_on_fills() {
    if unsupported() {
        return;
    }
    // Under /tmp, which a container has of its own: its folder is shown all the same.
    let Some(program) = Program::compile("examples/c/strategy.c") else { return };
    let launcher = Launcher::new();
    let kinds = format!("player,{}", program.exec(""));
    let flags = ["--strategies", "2", "--strategy", &kinds, "--orders", "2400", "--idle", "park"];
    let summary = launcher.summary(&[CONTAINER, BOOK, &flags].concat());
    assert_eq!((&summary["orders"]["sent"], &summary["orders"]["lost"]), (&2400.into(), &0.into()));
    let said = told(&launcher, 1);
    let positions = summary["trading"]["positions"].as_array().unwrap();
    let booked = positions.iter().find(|position| position["strategy"] == 1).unwrap();
    assert_eq!(
        (booked["net"].as_i64(), booked["fills"].as_i64()),
        (Some(said["net"]), Some(said["fills"])),
        "{booked:#}"
    );
}

#[test]
fn container_blocks_escapes_outside_namespaces() {
    if unsupported() {
        return;
    }
    let Some(program) = Program::compile("tests/c/escapee.c") else { return };
    let name = format!("bulkhead-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let _listener = UnixListener::bind_addr(&address).unwrap();
    let launcher = Launcher::new();
    let kind = program.exec(&format!("escape {name} {}", std::process::id()));
    let run = ["--strategy", &kind, "--strategies", "1", "--orders", "10"];
    let mut command = std::process::Command::new(program.path());
    command.args(["with-key", env!("CARGO_BIN_EXE_launcher"), "run", "--out"]).arg(launcher.out.path());
    let output = command.args(CONTAINER).args(run).output().unwrap();
    let error = text(&output.stderr);
    assert!(error.contains("exit 40") && !error.contains("allowed:"), "{error}");
}

/// Signals to its own group reach nobody who is to see its end.
#[test]
fn program_stopping_its_process_group_is_ended() {
    if unsupported() {
        return;
    }
    let Some(program) = Program::compile("tests/c/broken.c") else { return };
    let contained = ["--on-death", "restart", "--liveness", "1s"];
    let (_launcher, output) = with_broken(&program, "stop", &[CONTAINER, &contained].concat());
    let summary: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)));
    let incidents = summary["incidents"].as_array().unwrap();
    assert_eq!(incidents.len(), 1, "{incidents:#?}");
    assert!(incidents[0]["cause"].as_str().unwrap().contains("hangs"), "{incidents:#?}");
    assert!(incidents[0]["repair_to_restart_ns"].is_u64(), "{incidents:#?}");
    assert_eq!(summary["valid"], true, "{}", summary["reasons"]);
}
