//! The transports in real runs: this crate's binary is the launcher, and each of its processes.

use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// What this was built with.
const TECHNIQUES: &[&str] = &[
    #[cfg(feature = "aeron")]
    "aeron",
    #[cfg(feature = "iceoryx2")]
    "iceoryx2",
];

const PATIENCE: Duration = Duration::from_secs(60);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// `transports` with these words.
fn start(words: &str, out: &Path) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_transports"));
    command.args(words.split_whitespace()).arg("--out").arg(out);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn ended(words: &str) -> (Output, u32) {
    let out = tempfile::tempdir().unwrap();
    let child = start(words, out.path());
    let pid = child.id();
    (child.wait_with_output().unwrap(), pid)
}

/// The names that the run of that launcher has in `/dev/shm`.
fn left(launcher: u32) -> Vec<String> {
    let names =
        std::fs::read_dir("/dev/shm").unwrap().flatten().filter_map(|e| e.file_name().into_string().ok());
    names.filter(|name| name.starts_with("bulkhead.") && name.contains(&format!("-{launcher}."))).collect()
}

/// The processes that a launcher has started: names and ids.
fn children(launcher: u32) -> Vec<(String, u32)> {
    let stat = |entry: std::fs::DirEntry| std::fs::read_to_string(entry.path().join("stat")).ok();
    let parse = |stat: String| {
        let ((pid, name), rest) =
            stat.rsplit_once(')').and_then(|(head, rest)| Some((head.split_once(" (")?, rest)))?;
        let parent: u32 = rest.split_whitespace().nth(1)?.parse().ok()?;
        (parent == launcher).then_some((name.to_owned(), pid.parse().ok()?))
    };
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(stat).filter_map(parse).collect()
}

/// The summary of a short run with these words added, which must be valid and leave nothing.
fn run(technique: &str, words: &str) -> Value {
    let short = "--strategies 2 --venues 2 --delay uniform:1ms..5ms --window 500ms";
    let (output, pid) = ended(&format!("run --json --technique {technique} {short} {words}"));
    assert!(output.status.success(), "{technique} {words}: {}{}", text(&output.stdout), text(&output.stderr));
    assert_eq!(left(pid), Vec::<String>::new(), "{technique} {words}");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["valid"], true, "{technique} {words}: {summary:#}");
    summary
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "never: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn they_carry_every_order_between_processes_and_between_threads() {
    for technique in TECHNIQUES {
        for words in [
            "--isolation process",
            "--isolation thread",
            "--isolation process --idle park",
            "--isolation process --process each-gateway",
        ] {
            let orders = &run(technique, &format!("--orders 2000 {words}"))["orders"];
            for count in ["sent", "returned"] {
                assert_eq!(orders[count], 2000, "{technique} {words}: {orders}");
            }
        }
    }
}

#[test]
fn killed_strategy_restarts_while_other_trades() {
    for technique in TECHNIQUES {
        for when in ["@150ms", "@push:half-written:200"] {
            let words = format!("--orders 2000 --on-death restart --fault kill:strategy-1{when}");
            let summary = run(technique, &words);
            let incidents = summary["incidents"].as_array().unwrap();
            assert_eq!(incidents.len(), 1, "{technique} {when}: {summary:#}");
            assert!(incidents[0]["repair_to_restart_ns"].as_u64().is_some(), "{incidents:#?}");
            assert_eq!(summary["containment"]["lost_of_survivors"], 0, "{technique} {when}");
        }
    }
}

#[test]
fn unsupported_settings_are_refused_with_advice() {
    for technique in TECHNIQUES {
        for (words, why) in [
            ("run --isolation sandbox --allow-weaker-sandbox", "a sandboxed process opens none"),
            ("run --isolation container", "a /dev/shm of its own"),
            ("contain --fault kill --isolation container", "a /dev/shm of its own"),
            ("lab --isolation sandbox", "a sandboxed process opens none"),
        ] {
            let (output, _) = ended(&format!("{words} --technique {technique}"));
            let stderr = text(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{technique} {words}: {stderr}");
            assert!(stderr.contains(why) && stderr.contains("Use --isolation process"), "{stderr}");
        }
        let mut simulate = Command::new(env!("CARGO_BIN_EXE_transports"));
        let output = simulate.args(["simulate", "--technique", technique]).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(text(&output.stderr).contains("Choose one in memory"), "{}", text(&output.stderr));
    }
}

/// A run that goes on until it is ended, once its hand-offs are there.
fn running(technique: &str, out: &Path) -> Child {
    let words = format!("run --technique {technique} --isolation process --window 30s --orders 1000");
    let launcher = start(&words, out);
    wait_until("the hand-off is there", || {
        let inside =
            |name: &String| Path::new("/dev/shm").join(name).read_dir().is_ok_and(|all| all.count() > 0);
        left(launcher.id()).iter().any(|name| name.ends_with(".submit") && inside(name))
    });
    launcher
}

/// The consumer's end is lost with the engine: the run ends and reports it.
#[test]
fn a_killed_engine_ends_the_run_and_leaves_nothing() {
    for technique in TECHNIQUES {
        let out = tempfile::tempdir().unwrap();
        let launcher = running(technique, out.path());
        let pid = launcher.id();
        // Another may have filled the folder before the engine had its name.
        wait_until("the engine is there", || children(pid).iter().any(|(name, _)| name == "engine"));
        let all = children(pid);
        let (_, engine) = all.iter().find(|(name, _)| name == "engine").unwrap();
        assert!(Command::new("kill").args(["-9", &engine.to_string()]).status().unwrap().success());
        let output = launcher.wait_with_output().unwrap();
        assert!(!output.status.success(), "{technique}: {}", text(&output.stdout));
        assert!(text(&output.stderr).contains("engine"), "{technique}: {}", text(&output.stderr));
        assert_eq!(left(pid), Vec::<String>::new(), "{technique}");
        wait_until("all processes have ended", || {
            all.iter().all(|(_, child)| !Path::new(&format!("/proc/{child}")).exists())
        });
    }
}

/// All resources are removed with the run or by the reaper, whichever process is killed.
#[test]
fn a_killed_launcher_leaves_nothing() {
    for technique in TECHNIQUES {
        let out = tempfile::tempdir().unwrap();
        let mut launcher = running(technique, out.path());
        let pid = launcher.id();
        launcher.kill().unwrap();
        launcher.wait().unwrap();
        wait_until("the reaper has cleared up", || left(pid).is_empty());
    }
}
