//! Two hosts on one machine: namespaces for network, processes, mounts and the monotonic clock.

use launcher::system::process;
use nix::sched::{CloneFlags, unshare};
use std::fs;
use std::net::Ipv4Addr;
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Timeout of every step.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// A host. All its processes end with it.
pub struct Host {
    init: Child,
    /// The process that is the first one there.
    pid: u32,
    /// Its address.
    pub address: Ipv4Addr,
    /// The address of the network in between, as it sees it.
    pub beside: Ipv4Addr,
}

/// Returns `true` if this process may make hosts; prints a note if it may not.
pub fn may_make_hosts() -> bool {
    let tried = std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS)).join();
    let has_tools = ["unshare", "nsenter", "ip", "mount"].iter().all(|tool| {
        Command::new(tool).arg("--help").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    });
    let may = tried.is_ok_and(|tried| tried.is_ok()) && has_tools && Path::new("/proc/self/ns/time").exists();
    if !may {
        eprintln!(
            "SKIPPED, NO TWO HOSTS ARE TESTED: that takes root, namespaces (also of time), unshare, nsenter, ip and mount"
        );
    }
    may
}

fn sh(words: &str) {
    let mut parts = words.split(' ');
    let status = Command::new(parts.next().unwrap()).args(parts).status().unwrap();
    assert!(status.success(), "{words}");
}

/// Puts the calling thread, and what it starts, into a network of its own: the one in between.
pub fn enter_the_network_between() {
    unshare(CloneFlags::CLONE_NEWNET).unwrap();
    sh("ip link set lo up");
}

impl Host {
    /// Creates host `number`, whose monotonic clock is `ahead_s` ahead, next to the thread's
    /// network.
    pub fn new(number: u8, ahead_s: u32) -> Self {
        let setup = "mount -t tmpfs tmpfs /dev/shm && ip link set lo up && exec sleep infinity";
        let init = Command::new("unshare")
            .args([
                "--net",
                "--mount",
                "--pid",
                "--ipc",
                "--time",
                "--monotonic",
                &ahead_s.to_string(),
                "--fork",
                "--kill-child",
            ])
            .args(["--mount-proc", "sh", "-c", setup])
            // Some of its versions complain of a signal mask, and go on.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let pid = child_of(init.id());
        let address = Ipv4Addr::new(10, 77, number, 2);
        let beside = Ipv4Addr::new(10, 77, number, 1);
        let host = Self { init, pid, address, beside };
        let since = Instant::now();
        while !host.output("cat /proc/1/comm").starts_with("sleep") {
            assert!(since.elapsed() < PATIENCE, "the host does not begin");
            std::thread::sleep(Duration::from_millis(10));
        }
        sh(&format!("ip link add left{number} type veth peer name right{number} netns {pid}"));
        sh(&format!("ip addr add {beside}/24 dev left{number}"));
        sh(&format!("ip link set left{number} up"));
        host.output(&format!("ip addr add {address}/24 dev right{number}"));
        host.output(&format!("ip link set right{number} up"));
        host
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        let pid = self.pid.to_string();
        command.args(["--target", &pid, "--net", "--mount", "--pid", "--ipc", "--time", "--"]);
        command
    }

    /// What these words print there.
    pub fn output(&self, words: &str) -> String {
        let output = self.enter().args(words.split(' ')).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// `bulkhead-bridge` there, with these words, and its results in that folder.
    pub fn start(&self, words: &[&str], out: &Path) -> Child {
        let mut command = self.enter();
        command.arg(env!("CARGO_BIN_EXE_bulkhead-bridge")).args(words).arg("--out").arg(out);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// What is in its `/dev/shm`.
    pub fn shm(&self) -> Vec<String> {
        self.output("ls -A /dev/shm").lines().map(str::to_owned).collect()
    }

    /// Kills the process there that is `bulkhead-bridge` with this command; `false`: there is none.
    pub fn kill(&self, command: &str) -> bool {
        let mine = fs::read_link(format!("/proc/{}/ns/pid", self.pid)).unwrap();
        let found = fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
            let pid = entry.file_name().to_string_lossy().parse::<u32>().ok()?;
            let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
            let is_there = fs::read_link(entry.path().join("ns/pid")).ok()? == mine;
            let mut words = line.split('\0');
            let is_it = words.next()?.ends_with("bulkhead-bridge") && words.next() == Some(command);
            (is_there && is_it).then_some(pid)
        });
        found.is_some_and(kill)
    }

    /// Everything there is killed at once.
    pub fn die(&mut self) {
        kill(self.pid);
        let _ = self.init.wait();
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.die();
    }
}

fn kill(pid: u32) -> bool {
    process::pidfd_open(pid).is_ok_and(|pidfd| process::kill(pidfd.as_fd()).is_ok())
}

/// Returns the only child of a process, once it exists.
fn child_of(pid: u32) -> u32 {
    let since = Instant::now();
    loop {
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        if let Some(child) = children.split_whitespace().next() {
            return child.parse().unwrap();
        }
        assert!(since.elapsed() < PATIENCE, "no namespaces");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// How a program ended, in time.
pub fn ended(what: &str, mut child: Child) -> Output {
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > PATIENCE {
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            panic!("{what} does not end: {}", text(&output));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

/// Returns everything that a process printed.
pub fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
