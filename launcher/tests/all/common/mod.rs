//! The real launcher with real processes, for all integration tests.
#![allow(dead_code, reason = "each test binary uses its part")]

mod own_shm;
mod two_cores;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::Value;
use shm::random::SplitMix64;
use std::io::{Read, Write as _};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout of every wait: nothing here takes this long unless it hangs.
pub const LIMIT: Duration = Duration::from_secs(240);

/// A run that lasts until it is ended, also on a busy machine: low rate, 300 s.
pub const LONG: &str =
    "--strategies 2 --venues 2 --orders 60000 --window 300s --delay uniform:1ms..20ms --idle park";

/// A run of 2,000 orders in 200 ms.
pub const SHORT: &str =
    "--strategies 2 --venues 2 --orders 2000 --window 200ms --delay uniform:1ms..20ms --idle park";

/// Prints the complete report, not the first screen: what tests read is there.
pub const FULL_REPORT: &str = "--report full";

/// A run whose exchange and engine have processes of their own, which restart.
pub const RECOVERABLE: &str =
    "--venue book --venues 1 --exchange process --on-death restart --idle park --isolation process";

/// Splits a command line at blanks, as a shell does: a text in single quotes is one word.
pub fn split_arguments(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let arguments = parts.flat_map(|(index, part)| match index % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    });
    arguments.collect()
}

/// Prints that a test was skipped, past the harness, which hides the output of passing tests.
pub fn skip(why: &str) {
    let _ = writeln!(std::io::stderr(), "SKIPPED: {why}");
}

#[derive(Debug)]
pub struct CommandResult {
    /// Exit code; `None` if a signal ended the process.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl CommandResult {
    pub fn all_output(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.all_output()))
    }

    /// Checks that the command succeeded. Returns its stdout.
    #[track_caller]
    pub fn succeeds(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.all_output());
        self.stdout
    }

    /// Checks the exit code, that stderr has all of `expected`, and that nothing panicked.
    #[track_caller]
    pub fn fails(self, code: i32, expected: &[&str]) -> Self {
        assert_eq!(self.code, Some(code), "{}", self.all_output());
        for word in expected {
            assert!(self.stderr.contains(word), "{word:?} is not in: {}", self.all_output());
        }
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self
    }
}

/// The launcher, with a temporary folder for its runs.
pub struct Launcher {
    pub out: TempDir,
}

impl Launcher {
    pub fn new() -> Self {
        Self { out: tempfile::tempdir().unwrap() }
    }

    /// Returns a launcher if the sandbox is available; otherwise `None`, with a message.
    pub fn sandboxed() -> Option<Self> {
        let missing = system::sandbox::missing();
        if !missing.is_empty() {
            skip(&missing.join("; "));
        }
        missing.is_empty().then(Self::new)
    }

    /// Returns a launcher if containers are available; otherwise `None`, with a message.
    pub fn contained() -> Option<Self> {
        let check = container_check();
        let is_supported = check.starts_with("--isolation container");
        if !is_supported {
            skip(&check);
        }
        is_supported.then(Self::new)
    }

    /// Returns a launcher if the machine has protection keys; otherwise `None`, with a message.
    pub fn with_keys() -> Option<Self> {
        let missing = system::keys::missing();
        if let Some(why) = &missing {
            skip(why);
        }
        missing.is_none().then(Self::new)
    }

    pub fn run(&self, flags: &str) -> Command {
        command(&format!("run --out {} {FULL_REPORT} {flags}", self.out.path().display()))
    }

    /// Makes a run and waits until the launcher exits, with any result.
    pub fn result(&self, flags: &str) -> CommandResult {
        Running::spawn(&mut self.run(flags)).end()
    }

    /// Makes a run that must be valid. Returns its summary.
    pub fn summary(&self, flags: &str) -> Value {
        let result = self.result(&format!("{flags} --json"));
        assert_eq!(result.code, Some(0), "{flags}: {}", result.all_output());
        let summary = result.json();
        assert_eq!(summary["valid"], true, "{summary:#}");
        summary
    }

    /// Starts a run and waits until its record exists.
    pub fn start(&self, flags: &str) -> Running {
        let mut running = Running::spawn(&mut self.run(flags));
        let mut has_ended = false;
        wait_until("the run has begun or ended", || {
            has_ended = !matches!(running.child.try_wait(), Ok(None));
            has_ended || self.has_begun()
        });
        if has_ended && !self.has_begun() {
            panic!("{flags}: the launcher exited without a run: {:?}", running.end());
        }
        running
    }

    pub fn has_begun(&self) -> bool {
        self.folders().iter().any(|folder| folder.join("run.json").exists())
    }

    /// Interrupts a run and returns its summary. A test with a long run that it interrupts does not
    /// depend on the speed of the machine.
    pub fn interrupted(&self, running: Running) -> Value {
        running.interrupt().fails(130, &[]);
        self.newest_summary()
    }

    pub fn newest_summary(&self) -> Value {
        document(&self.folder(), "summary.json")
    }

    /// Returns the folder of the last run. Not the last by name: of two runs that start within a
    /// second the names tell nothing about the order. Nor by the folder's own time, which a report
    /// of an earlier run changes: a run writes its settings once, before its processes start.
    pub fn folder(&self) -> PathBuf {
        let started = |folder: &PathBuf| {
            let settings = folder.join("config.yaml").metadata();
            settings.or_else(|_| folder.metadata()).and_then(|facts| facts.modified()).unwrap()
        };
        self.folders().into_iter().max_by_key(started).unwrap()
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.folder().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns the folders of the runs, in the order of their names.
    pub fn folders(&self) -> Vec<PathBuf> {
        entries(self.out.path())
    }
}

/// Returns the finding of `doctor` on containers.
pub fn container_check() -> String {
    static FOUND: LazyLock<String> = LazyLock::new(|| {
        let doctor = output("doctor --json").json();
        let check = list(&doctor["checks"]).iter().find(|check| check["name"] == "container").unwrap();
        string(&check["found"]).to_owned()
    });
    FOUND.clone()
}

/// Returns the paths in a folder, in the order of their names.
pub fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// A running launcher process.
pub struct Running {
    pub child: Child,
    /// The processes that make its runs of a benchmark, as far as they were seen.
    makers: Vec<u32>,
}

impl Running {
    pub fn spawn(command: &mut Command) -> Self {
        two_cores::use_two();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut spawned = None;
        // A copied program is busy while the child of another test's fork still has it open.
        wait_until("the program may be executed", || {
            let result = command.spawn();
            let is_busy =
                result.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy);
            spawned = (!is_busy).then_some(result);
            spawned.is_some()
        });
        Self { child: spawned.unwrap().unwrap(), makers: Vec::new() }
    }

    /// Waits until a process makes runs of a benchmark for this launcher, or the launcher has
    /// ended. [`Running::end`] then checks the runs of that process.
    pub fn with_maker(mut self) -> Self {
        wait_until("the launcher has ended or started a process for its runs", || {
            self.makers = makers(self.pid());
            !self.makers.is_empty() || self.has_ended()
        });
        self
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the pid of the process that makes the runs of a benchmark.
    pub fn maker(&self) -> u32 {
        *self.makers.first().expect("the launcher makes runs of a benchmark")
    }

    /// Returns the pid of the benchmark's process with that name.
    pub fn maker_process(&self, name: &str) -> u32 {
        newest_process(self.maker(), name, 0).unwrap_or_else(|| panic!("no process {name}"))
    }

    /// Returns `true` if the process has exited and was not waited for.
    pub fn has_ended(&self) -> bool {
        proc(self.pid(), "stat").rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with('Z'))
    }

    /// Returns the pid of the run's process with that name.
    pub fn process(&self, name: &str) -> u32 {
        newest_process(self.pid(), name, 0).unwrap_or_else(|| panic!("no process {name}"))
    }

    /// Waits until the launcher exits. Checks that no process and no segment of its run remains.
    pub fn end(self) -> CommandResult {
        let pid = self.pid();
        let makers = self.makers.clone();
        let result = self.wait();
        makers.into_iter().chain([pid]).for_each(assert_nothing_left);
        result
    }

    /// Calls `act` again and again until the launcher has printed `text` on stderr, which is then
    /// missing in the result of the run.
    pub fn repeat_until_printed(&mut self, text: &str, mut act: impl FnMut()) {
        let stderr = self.child.stderr.as_mut().unwrap();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| read_until(stderr, text));
            while !reader.is_finished() {
                act();
            }
        });
    }

    /// Interrupts the run as Ctrl-C does and waits for its end.
    pub fn interrupt(self) -> CommandResult {
        signal(self.pid(), "INT");
        self.end()
    }

    /// Kills the launcher; its reaper cleans up.
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

/// Waits until a process exits, at most [`LIMIT`]. Returns its status.
pub fn ended(child: &mut Child) -> ExitStatus {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if started.elapsed() > LIMIT {
            child.kill().unwrap();
            panic!("the process does not exit: {:?}", child.wait());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ends the run of a failed test, which would otherwise disturb the other tests and leave logs.
impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        // The reaper saves the logs before the folder goes.
        let began = Instant::now();
        let launchers = || self.makers.iter().copied().chain([self.pid()]);
        while !launchers().all(|pid| segments(pid).is_empty()) && began.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

pub fn document(folder: &Path, name: &str) -> Value {
    let text = std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
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

/// Returns the path of a program that was built for the tests.
fn program(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    test.parent().and_then(Path::parent).unwrap().join(name)
}

pub fn command(line: &str) -> Command {
    two_cores::use_two();
    let mut command = Command::new(program("launcher"));
    command.args(split_arguments(line)).stdin(Stdio::null());
    command
}

/// Runs a command that exits by itself. Returns its result.
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

/// Checks that no thread of a run allocated memory after the start barrier.
#[track_caller]
pub fn assert_no_allocations(summary: &Value) {
    for thread in list(&summary["processes"]) {
        assert_eq!(thread["allocations"], 0, "{thread:#}");
    }
}

/// Reads until the text has appeared.
pub fn read_until(from: &mut (impl Read + AsFd), text: &str) {
    let (mut output, mut bytes) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&output).contains(text) {
        let ready =
            poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], PollTimeout::try_from(LIMIT).unwrap());
        assert_ne!(ready, Ok(0), "{text:?} never appeared: {:?}", String::from_utf8_lossy(&output));
        let len = from.read(&mut bytes).unwrap();
        assert!(len > 0, "the output ended without {text:?}: {:?}", String::from_utf8_lossy(&output));
        output.extend_from_slice(&bytes[..len]);
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

/// Polls `look` until it returns a value. To wait for a process and then look it up again would
/// miss one that exits in between.
pub fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        let looked = Instant::now();
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < LIMIT, "never: {what}");
        // Polls less often the longer it waits and the longer a look takes, since polling takes CPU
        // time from the run.
        let pause = (started.elapsed() / 20).clamp(Duration::from_millis(5), Duration::from_millis(25));
        std::thread::sleep(pause.max(looked.elapsed() * 2));
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

/// Returns the launchers that make runs for an experiment: `launcher run` and
/// `launcher benchmark`.
pub fn makers(experiment: u32) -> Vec<u32> {
    let is_maker = |pid: &u32| {
        let line = proc(*pid, "cmdline");
        (line.ends_with("\0benchmark\0") || line.contains("\0run\0--quiet\0"))
            && parent(*pid) == Some(experiment)
    };
    processes().filter(is_maker).collect()
}

/// Returns the launcher that makes a run for an experiment just now, once its roles run.
pub fn busy_maker(experiment: u32) -> Option<u32> {
    makers(experiment).into_iter().find(|maker| run_processes(*maker).len() > 1)
}

/// Returns pid and command line of each process in the launcher's run. A run's id ends with the
/// launcher's pid.
pub fn run_processes(launcher: u32) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for pid in processes() {
        let cmdline = proc(pid, "cmdline").replace('\0', " ");
        // Sandboxed processes get a descriptor instead of the run's id, so they are found as
        // children of the launcher. The cheap check of the command line comes first, since waiting
        // tests scan every process of the machine repeatedly.
        let is_of_run =
            || cmdline.trim_end().ends_with(&format!("-{launcher}")) || parent(pid) == Some(launcher);
        if cmdline.contains(" role ") && is_of_run() {
            found.push((pid, cmdline));
        }
    }
    found
}

/// Returns the newest process of a role in the launcher's run, except one pid.
pub fn newest_process(launcher: u32, role: &str, except: u32) -> Option<u32> {
    let of_role =
        |(pid, cmdline): &(u32, String)| cmdline.contains(&format!("role {role} ")) && *pid != except;
    run_processes(launcher).into_iter().filter(of_role).map(|(pid, _)| pid).max()
}

/// Returns `true` if an engine or exchange process has threads of its roles, which it starts after
/// its recovery.
pub fn has_role_threads(pid: u32) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let others = tasks.filter(|task| task.file_name().to_string_lossy() != pid.to_string());
    let mut names = others.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default());
    let roles = ["engine", "orchestrator", "gateway", "exchange"];
    names.any(|name| roles.iter().any(|role| name.starts_with(role)))
}

/// Returns the process that currently runs the role's duty cycles: the one started for the role or
/// a promoted standby. `killed` processes may still be visible and are excluded.
pub fn serving_process(launcher: u32, role: &str, killed: &[u32]) -> Option<u32> {
    let names = [format!("role {role} "), format!("role spare:{role} ")];
    let is_of_role = |cmdline: &str| names.iter().any(|name| cmdline.contains(name));
    let all = run_processes(launcher).into_iter();
    all.filter(|(_, cmdline)| is_of_role(cmdline))
        .map(|(pid, _)| pid)
        .find(|pid| !killed.contains(pid) && has_role_threads(*pid))
}

pub fn segments(launcher: u32) -> Vec<String> {
    let names =
        std::fs::read_dir("/dev/shm").unwrap().flatten().filter_map(|e| e.file_name().into_string().ok());
    names.filter(|name| name.starts_with("bulkhead.") && name.contains(&format!("-{launcher}."))).collect()
}

/// Waits until neither processes nor segments of the launcher's run remain.
pub fn assert_nothing_left(launcher: u32) {
    wait_until("all processes are gone", || run_processes(launcher).is_empty());
    // If the launcher was killed, its reaper removes them after all other processes have exited.
    wait_until("all segments are gone", || segments(launcher).is_empty());
}

pub fn assert_exists(path: &Path) {
    assert!(path.exists(), "{} does not exist", path.display());
}

/// Checks each case, up to `max` of them concurrently, since the cases mostly wait.
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

/// Random numbers: equal seeds give equal numbers on every machine.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        let mut random = SplitMix64(self.0);
        let drawn = random.draw();
        self.0 = random.0;
        drawn
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn choose<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}

/// Returns `true` if the slow variants of the tests are enabled: `BULKHEAD_SLOW=1`.
pub fn slow() -> bool {
    std::env::var("BULKHEAD_SLOW").is_ok_and(|value| value == "1")
}
