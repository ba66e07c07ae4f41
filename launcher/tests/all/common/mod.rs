//! The real launcher with real processes, for all integration tests.
#![allow(dead_code, reason = "each test binary uses its part")]

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout of every wait: nothing here takes this long unless it hangs.
pub const LIMIT: Duration = Duration::from_secs(90);

/// A run that lasts until it is ended: low rate, 60 s.
pub const LONG: &[&str] = &[
    "--strategies",
    "2",
    "--venues",
    "2",
    "--orders",
    "60000",
    "--window",
    "60s",
    "--delay",
    "uniform:1ms..20ms",
    "--idle",
    "park",
];

/// A run of 2,000 orders in 200 ms.
pub const SHORT: &[&str] = &[
    "--strategies",
    "2",
    "--venues",
    "2",
    "--orders",
    "2000",
    "--window",
    "200ms",
    "--delay",
    "uniform:1ms..20ms",
];

/// The launcher, with its runs in a folder of its own.
pub struct Launcher {
    pub out: TempDir,
}

impl Launcher {
    pub fn new() -> Self {
        Self { out: tempfile::tempdir().unwrap() }
    }

    /// `launcher run` with these flags.
    pub fn run(&self, flags: &[&str]) -> Command {
        let mut command = command(&["run", "--out", self.out.path().to_str().unwrap()]);
        command.args(flags);
        command
    }

    /// Runs to the end and returns the summary, which must be valid.
    pub fn summary(&self, flags: &[&str]) -> Value {
        let output = self.run(flags).arg("--json").output().unwrap();
        assert!(output.status.success(), "{flags:?}: {}{}", text(&output.stdout), text(&output.stderr));
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["valid"], true, "{summary:#}");
        summary
    }

    /// Starts a run and waits until its orders flow; the child's stderr is piped.
    pub fn start(&self, flags: &[&str]) -> Running {
        let mut command = self.run(flags);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut running = Running { child };
        let has_begun = || self.folders().iter().any(|folder| folder.join("run.json").exists());
        let mut has_ended = false;
        wait_until("the run has begun or ended", || {
            has_ended = !matches!(running.child.try_wait(), Ok(None));
            has_ended || has_begun()
        });
        if has_ended && !has_begun() {
            panic!("{flags:?}: it has ended without a run: {:?}", running.end());
        }
        running
    }

    /// Ends a run that would last longer, and gives what came of it: a test that needs a run for as
    /// long as it takes does not depend on how fast this machine is.
    pub fn interrupted(&self, running: Running) -> Value {
        let pid = running.pid();
        signal(pid, "INT");
        let (code, _, stderr) = running.end();
        assert_eq!(code, Some(130), "{stderr}");
        assert_nothing_left(pid);
        self.newest_summary()
    }

    /// The summary of the newest run.
    pub fn newest_summary(&self) -> Value {
        document(&self.folders().pop().unwrap(), "summary.json")
    }

    /// The folders of the runs, in the order of their names.
    pub fn folders(&self) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> =
            std::fs::read_dir(self.out.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        folders.sort();
        folders
    }
}

/// A launcher in the middle of a run.
pub struct Running {
    pub child: Child,
}

impl Running {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended, and nobody has asked how yet.
    pub fn has_ended(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
    }

    /// The process of the run with that name.
    pub fn process(&self, name: &str) -> u32 {
        let found =
            family(self.pid()).into_iter().find(|(_, cmdline)| cmdline.contains(&format!("role {name} ")));
        found.unwrap_or_else(|| panic!("no process {name}")).0
    }

    /// Waits for the end; returns exit code, stdout and stderr.
    pub fn end(mut self) -> (Option<i32>, String, String) {
        let (mut stdout, mut stderr) = (self.child.stdout.take().unwrap(), self.child.stderr.take().unwrap());
        let out = std::thread::spawn(move || read_all(&mut stdout));
        let err = std::thread::spawn(move || read_all(&mut stderr));
        let started = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if started.elapsed() > LIMIT {
                self.child.kill().unwrap();
                panic!("the launcher does not end");
            }
            std::thread::sleep(Duration::from_millis(5));
        };
        (status.code(), out.join().unwrap(), err.join().unwrap())
    }
}

/// Of a test that fails in the middle: its run would continue during the other tests and leave its
/// logs behind.
impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The reaper saves the logs before the folder goes.
        let began = Instant::now();
        while !segments(self.pid()).is_empty() && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A JSON document in a folder.
pub fn document(folder: &Path, name: &str) -> Value {
    let text = std::fs::read(folder.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"));
    serde_json::from_slice(&text).unwrap()
}

fn read_all(from: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    text(&bytes)
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_launcher"));
    command.args(args).stdin(Stdio::null());
    command
}

pub fn output(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// What a command came to that must end by itself: exit code, stdout and stderr.
pub fn bounded(args: &[&str]) -> (Option<i32>, String, String) {
    let child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    Running { child }.end()
}

/// Reads until that text has come.
pub fn read_until(from: &mut (impl Read + AsFd), text: &str) {
    let (mut seen, mut bytes) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&seen).contains(text) {
        let ready = poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], PollTimeout::from(60_000u16));
        assert_ne!(ready, Ok(0), "{text:?} never comes: {:?}", String::from_utf8_lossy(&seen));
        let len = from.read(&mut bytes).unwrap();
        assert!(len > 0, "it ended without {text:?}: {:?}", String::from_utf8_lossy(&seen));
        seen.extend_from_slice(&bytes[..len]);
    }
}

/// Sends a signal through `kill`, as a user would.
pub fn signal(pid: u32, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap();
    assert!(sent.success(), "kill -{name} {pid}");
}

pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(what, || condition().then_some(()));
}

/// What is there at last. To wait until it is there and to look for it once more is to lose what
/// ends in between.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "never: {what}");
        // The longer it takes, the more rarely: looking keeps a core busy that the others need.
        std::thread::sleep(
            (started.elapsed() / 20).clamp(Duration::from_millis(5), Duration::from_millis(25)),
        );
    }
}

/// The processes of the run of that launcher: pid and command line. A run's id ends with the
/// launcher's pid.
pub fn family(launcher: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    // Sandboxed processes get a descriptor and not the run's id: children of the launcher, or of
    // nobody any more.
    let is_child = |entry: &std::fs::DirEntry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parent == Some(launcher)
    };
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let cmdline = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let cmdline = text(&cmdline).replace('\0', " ");
        let is_of_run = || cmdline.trim_end().ends_with(&format!("-{launcher}")) || is_child(&entry);
        // In this order: who waits for a process looks again and again, at every process of the
        // machine.
        if cmdline.contains(" role ") && is_of_run() {
            found.push((pid, cmdline));
        }
    }
    found
}

/// The newest process of that role in the run of that launcher, but for one.
pub fn newest(launcher: u32, role: &str, but: u32) -> Option<u32> {
    let of_role = |(pid, cmdline): &(u32, String)| cmdline.contains(&format!("role {role} ")) && *pid != but;
    family(launcher).into_iter().filter(of_role).map(|(pid, _)| pid).max()
}

/// Whether an engine's or exchange's process has threads of its roles: it has recovered what there
/// was.
pub fn is_back(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let others = tasks.filter(|task| task.file_name().to_string_lossy() != pid.to_string());
    let names = others.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default());
    let roles = ["engine", "orchestrator", "gateway", "exchange"];
    names.into_iter().any(|name| roles.iter().any(|role| name.starts_with(role)))
}

/// The process that has that role now, in its duty cycles: the one that was started so, or a spare
/// that has taken over. Who was killed may be seen for a while yet.
pub fn in_place(launcher: u32, role: &str, killed: &[u32]) -> Option<u32> {
    let names = [format!("role {role} "), format!("role spare:{role} ")];
    let is_of_role = |cmdline: &str| names.iter().any(|name| cmdline.contains(name));
    let all = family(launcher).into_iter();
    all.filter(|(_, cmdline)| is_of_role(cmdline))
        .map(|(pid, _)| pid)
        .find(|pid| !killed.contains(pid) && is_back(*pid))
}

/// The segments of the run of that launcher.
pub fn segments(launcher: u32) -> Vec<String> {
    let names =
        std::fs::read_dir("/dev/shm").unwrap().flatten().filter_map(|e| e.file_name().into_string().ok());
    names.filter(|name| name.starts_with("bulkhead.") && name.contains(&format!("-{launcher}."))).collect()
}

/// Nothing of that launcher's run is left, neither processes nor segments.
pub fn assert_nothing_left(launcher: u32) {
    wait_until("all processes are gone", || family(launcher).is_empty());
    // Of a launcher that was killed the reaper removes them, behind the end of everybody else.
    wait_until("all segments are gone", || segments(launcher).is_empty());
}

pub fn assert_exists(path: &Path) {
    assert!(path.exists(), "{} is not there", path.display());
}

/// Checks each case, up to `max` of them concurrently: for most of their time they wait.
pub fn concurrently<T: Sync>(max: usize, cases: &[T], check: impl Fn(&T) + Sync) {
    for some in cases.chunks(max) {
        std::thread::scope(|scope| {
            for case in some {
                scope.spawn(|| check(case));
            }
        });
    }
}

/// Whether the slow variants of the tests are wanted: `BULKHEAD_SLOW=1`.
pub fn slow() -> bool {
    std::env::var("BULKHEAD_SLOW").is_ok_and(|value| value == "1")
}
