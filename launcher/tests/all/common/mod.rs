//! The real launcher with real processes, for all integration tests.
#![allow(dead_code, reason = "each test binary uses its part")]

mod own_shm;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;
use std::io::{Read, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout of every wait: nothing here takes this long unless it hangs.
pub const LIMIT: Duration = Duration::from_secs(90);

/// A run that lasts until it is ended: low rate, 60 s.
pub const LONG: &str =
    "--strategies 2 --venues 2 --orders 60000 --window 60s --delay uniform:1ms..20ms --idle park";

/// A run of 2,000 orders in 200 ms.
pub const SHORT: &str = "--strategies 2 --venues 2 --orders 2000 --window 200ms --delay uniform:1ms..20ms";

/// Splits a command line at blanks, as a shell does: a text in single quotes is one word.
pub fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    words.collect()
}

/// Prints that a test was not made, past the harness, which hides what a passing test prints.
pub fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

#[derive(Debug)]
pub struct CommandResult {
    /// `None`: by a signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl CommandResult {
    pub fn said(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.said()))
    }

    /// Checks that it succeeded; what it printed on stdout.
    #[track_caller]
    pub fn succeeds(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.said());
        self.stdout
    }

    /// Checks the exit code, and that an error has all of these words and is not a panic.
    #[track_caller]
    pub fn fails(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.said());
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not in: {}", self.said());
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}

/// The launcher, with its runs in a folder of its own.
pub struct Launcher {
    pub out: TempDir,
}

impl Launcher {
    pub fn new() -> Self {
        Self { out: tempfile::tempdir().unwrap() }
    }

    /// A launcher where there is the sandbox; otherwise `None`, with a message.
    pub fn sandboxed() -> Option<Self> {
        let missing = system::sandbox::missing();
        if !missing.is_empty() {
            skip(&missing.join("; "));
        }
        missing.is_empty().then(Self::new)
    }

    /// A launcher where there are containers; otherwise `None`, with a message.
    pub fn contained() -> Option<Self> {
        let found = container_check();
        let can = found.starts_with("--isolation container");
        if !can {
            skip(&found);
        }
        can.then(Self::new)
    }

    pub fn run(&self, flags: &str) -> Command {
        command(&format!("run --out {} {flags}", self.out.path().display()))
    }

    /// Runs to the end, however that is.
    pub fn result(&self, flags: &str) -> CommandResult {
        Running::spawn(&mut self.run(flags)).end()
    }

    /// Runs to the end and returns the summary, which must be valid.
    pub fn summary(&self, flags: &str) -> Value {
        let result = self.result(&format!("{flags} --json"));
        assert_eq!(result.code, Some(0), "{flags}: {}", result.said());
        let summary = result.json();
        assert_eq!(summary["valid"], true, "{summary:#}");
        summary
    }

    /// Starts a run and waits until its orders flow.
    pub fn start(&self, flags: &str) -> Running {
        let mut running = Running::spawn(&mut self.run(flags));
        let mut has_ended = false;
        wait_until("the run has begun or ended", || {
            has_ended = !matches!(running.child.try_wait(), Ok(None));
            has_ended || self.has_begun()
        });
        if has_ended && !self.has_begun() {
            panic!("{flags}: it has ended without a run: {:?}", running.end());
        }
        running
    }

    pub fn has_begun(&self) -> bool {
        self.folders().iter().any(|folder| folder.join("run.json").exists())
    }

    /// Ends a run that would last longer, and gives what came of it: a test that needs a run for as
    /// long as it takes does not depend on how fast this machine is.
    pub fn interrupted(&self, running: Running) -> Value {
        running.interrupt().fails(130, &[]);
        self.newest_summary()
    }

    pub fn newest_summary(&self) -> Value {
        document(&self.folder(), "summary.json")
    }

    pub fn folder(&self) -> PathBuf {
        self.folders().pop().unwrap()
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.folder().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// The folders of the runs, in the order of their names.
    pub fn folders(&self) -> Vec<PathBuf> {
        entries(self.out.path())
    }
}

/// What `doctor` finds out about containers.
pub fn container_check() -> String {
    let doctor = output("doctor --json").json();
    let check = list(&doctor["checks"]).iter().find(|check| check["name"] == "container").unwrap();
    string(&check["found"]).to_owned()
}

/// What a folder holds, in the order of the names.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// A launcher in the middle of a run.
pub struct Running {
    pub child: Child,
}

impl Running {
    pub fn spawn(command: &mut Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        Self { child }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended, and nobody has asked how yet.
    pub fn has_ended(&self) -> bool {
        proc(self.pid(), "stat").rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
    }

    /// The process of the run with that name.
    pub fn process(&self, name: &str) -> u32 {
        newest(self.pid(), name, 0).unwrap_or_else(|| panic!("no process {name}"))
    }

    /// Waits for the end, after which nothing of its run may be left.
    pub fn end(self) -> CommandResult {
        let pid = self.pid();
        let result = self.wait();
        assert_nothing_left(pid);
        result
    }

    /// Ends it as Ctrl-C does.
    pub fn interrupt(self) -> CommandResult {
        signal(self.pid(), "INT");
        self.end()
    }

    /// Kills the launcher, and leaves the rest to its reaper.
    pub fn kill(&mut self) {
        signal(self.pid(), "KILL");
        self.child.wait().unwrap();
    }

    fn wait(mut self) -> CommandResult {
        let (mut stdout, mut stderr) = (self.child.stdout.take().unwrap(), self.child.stderr.take().unwrap());
        let out = std::thread::spawn(move || read_all(&mut stdout));
        let err = std::thread::spawn(move || read_all(&mut stderr));
        let code = ended(&mut self.child).code();
        CommandResult { code, stdout: out.join().unwrap(), stderr: err.join().unwrap() }
    }
}

/// Waits for the end of a process, which comes within a bounded time.
pub fn ended(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("it does not end: {:?}", child.wait());
        }
        std::thread::sleep(Duration::from_millis(5));
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

pub fn command(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_launcher"));
    command.args(words(line)).stdin(Stdio::null());
    command
}

/// What a command came to that must end by itself.
pub fn output(line: &str) -> CommandResult {
    Running::spawn(&mut command(line)).wait()
}

pub fn output_of(command: &mut Command) -> CommandResult {
    Running::spawn(command.stdin(Stdio::null())).wait()
}

#[track_caller]
pub fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap_or_else(|| panic!("{value:#} is not a list"))
}

#[track_caller]
pub fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value:#} is not a number"))
}

#[track_caller]
pub fn string(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value:#} is not a text"))
}

/// Checks that no thread of a run has allocated after the barrier.
#[track_caller]
pub fn assert_no_allocations(summary: &Value) {
    for thread in list(&summary["processes"]) {
        assert_eq!(thread["allocations"], 0, "{thread:#}");
    }
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

/// A file of a process in `/proc`; empty if the process is gone.
pub fn proc(pid: u32, file: &str) -> String {
    text(&std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default())
}

pub fn parent(pid: u32) -> Option<u32> {
    let stat = proc(pid, "stat");
    stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok())
}

pub fn processes() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The processes of the run of that launcher: pid and command line. A run's id ends with the
/// launcher's pid.
pub fn family(launcher: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for pid in processes() {
        let cmdline = proc(pid, "cmdline").replace('\0', " ");
        // Sandboxed processes get a descriptor and not the run's id: children of the launcher, or
        // of nobody any more. In this order: a test that waits for a process looks at every process
        // of the machine, again and again.
        let is_of_run =
            || cmdline.trim_end().ends_with(&format!("-{launcher}")) || parent(pid) == Some(launcher);
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
    let mut names = others.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default());
    let roles = ["engine", "orchestrator", "gateway", "exchange"];
    names.any(|name| roles.iter().any(|role| name.starts_with(role)))
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
pub fn concurrently<'a, T: Sync>(max: usize, cases: &'a [T], check: impl Fn(&'a T) + Sync) {
    let rest = Mutex::new(cases.iter());
    let take = || rest.lock().unwrap().next();
    std::thread::scope(|scope| {
        for _ in 0..max {
            scope.spawn(|| {
                while let Some(case) = take() {
                    check(case);
                }
            });
        }
    });
}

/// Random numbers (SplitMix64; Steele, Lea, Flood 2014): equal seeds give equal numbers on every
/// machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn choose<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Whether the slow variants of the tests are wanted: `BULKHEAD_SLOW=1`.
pub fn slow() -> bool {
    std::env::var("BULKHEAD_SLOW").is_ok_and(|value| value == "1")
}
