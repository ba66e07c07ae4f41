//! Strategies that run as another user than the launcher, which only root can start.

use super::contained::CONTAINER;
use super::programs::Program;
use crate::common::{LONG, Launcher, SHORT, list, proc, skip};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A user id that no account has.
const USER: u32 = 54_321;
const FLAGS: &str =
    "--technique spsc-mux --orders 400 --window 200ms --delay fixed:1ms --venues 1 --idle park";

/// Returns `false`, with a message, unless this process is root.
fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        skip("only root can start a process as another user");
    }
    is_root
}

/// Returns what a hostile strategy has reached in a run with these flags, which must be valid.
fn reached(program: &Program, flags: &str) -> Vec<String> {
    let launcher = Launcher::new();
    launcher.summary(&format!("{FLAGS} {} {flags}", program.with_player("")));
    let message = launcher.read("strategy-1.stderr");
    let user = if flags.contains("--user") { USER } else { 0 };
    assert!(message.contains(&format!("tried as {user}\n")), "{flags}: {message}");
    message.lines().filter(|line| line.starts_with("got: ")).map(str::to_owned).collect()
}

#[test]
fn strategy_of_another_user_reaches_no_process() {
    if !is_root() {
        return;
    }
    let Some(program) = Program::compile("tests/c/reach.c") else { return };
    // The user has no right to the folder of a test.
    let folder = Path::new(&program.path()).parent().unwrap().to_owned();
    std::fs::set_permissions(&folder, PermissionsExt::from_mode(0o755)).unwrap();
    let user = format!("--user strategy-1={USER}");
    assert_eq!(reached(&program, &format!("--isolation process {user}")), [""; 0]);
    if Launcher::contained().is_some() {
        assert_eq!(reached(&program, &format!("{CONTAINER} {user}")), [""; 0]);
    }
    // The attempts themselves work: as the launcher's user each of them succeeds.
    let got = reached(&program, "--isolation process");
    for what in ["signal", "trace", "memory", "a word of memory", "descriptor", "segment"] {
        assert!(got.iter().any(|line| line.starts_with(&format!("got: {what} "))), "{what}: {got:?}");
    }
}

/// Returns the real user id of a process.
fn user_of(pid: u32) -> u32 {
    let status = proc(pid, "status");
    let users = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    users.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn only_the_named_strategy_changes_its_user() {
    if !is_root() {
        return;
    }
    let levels = [("process", true), ("sandbox", Launcher::sandboxed().is_some())];
    let contained = ("container", Launcher::contained().is_some());
    for (level, _) in levels.into_iter().chain([contained]).filter(|(_, is_available)| *is_available) {
        let launcher = Launcher::new();
        let flags = format!("--isolation {level} --technique spsc-mux --user strategy-1={USER}");
        let running = launcher.start(&format!("{LONG} {flags}"));
        // In a container of another user only the outer process is found by its command line.
        let second = if level == "container" { "--contain strategy-1" } else { "strategy-1" };
        let users = ["strategy-0", second, "engine"].map(|name| user_of(running.process(name)));
        let summary = launcher.interrupted(running);
        assert_eq!(users, [0, USER, 0], "{level}");
        assert_eq!(summary["orders"]["lost"], 0, "{level}");
        assert!(list(&summary["incidents"]).is_empty(), "{level}: {:#}", summary["incidents"]);
    }
}

#[test]
fn strategy_of_another_user_is_restarted() {
    if !is_root() {
        return;
    }
    for level in ["process", "sandbox"] {
        if level == "sandbox" && Launcher::sandboxed().is_none() {
            continue;
        }
        let summary = Launcher::new().summary(&format!(
            "{SHORT} --isolation {level} --technique spsc-mux --idle park --on-death restart --user {USER} \
             --fault kill:strategy-1@50ms"
        ));
        let [incident] = list(&summary["incidents"]) else { panic!("{level}: {:#}", summary["incidents"]) };
        assert!(incident["repair_to_restart_ns"].is_u64(), "{level}: {incident:#}");
        assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{level}");
    }
}

#[test]
fn wrong_user_is_refused() {
    let launcher = Launcher::new();
    let refused = |user: &str| launcher.result(&format!("{SHORT} --isolation process --user {user}"));
    if nix::unistd::geteuid().is_root() {
        refused("no-such-user-x").fails(2, &["--user no-such-user-x", "Name one of /etc/passwd"]);
        refused("root").fails(2, &["--user root", "Name another user"]);
    } else {
        refused("nobody").fails(2, &["--user nobody", "Start as root"]);
    }
    refused("strategy-7=nobody").fails(2, &["--user strategy-7", "strategies 0 to 1"]);
}
