//! Histories of processes, some of which are killed in the middle of a call.

use crate::history::Call;
use crate::job::{Job, Role};
use crate::plan::{Plan, successor};
use crate::random::Random;
use crate::record::{FINISHED, REFUSED, Record, WORKERS};
use crate::worker::{DRAIN, wait_until, work};
use nix::sys::ptrace::Options;
use nix::unistd::Pid;
use std::io::Write as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use stepper::{Stop, Tracee};

/// The word that makes this program a worker.
pub const WORKER: &str = "worker";

/// Does the jobs that come on the standard input, one a line, until it ends.
pub fn serve(record: &str) {
    let record = Record::open(record);
    for line in std::io::stdin().lines().map_while(Result::ok) {
        work(&record, &Job::from_line(&line).expect("a line of `Job::to_line`"));
    }
}

struct Process {
    child: Child,
    input: ChildStdin,
}

impl Process {
    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    fn tracee(&self) -> Tracee {
        Tracee::new(self.pid())
    }
}

/// Processes that wait for jobs, and the record that they share.
pub struct Pool {
    pub record: Record,
    name: String,
    idle: Vec<Process>,
    /// For each role, the largest number of instructions from the trap to the end of its call.
    longest: [usize; 4],
    /// Number of workers that were killed in the middle of a call.
    pub killed_in_call: u64,
    pub killed: u64,
}

impl Drop for Pool {
    fn drop(&mut self) {
        for process in self.idle.drain(..) {
            let Process { mut child, input } = process;
            drop(input);
            let _ = child.wait();
        }
        let _ = shm::memory::unlink(&self.name);
    }
}

/// A victim that was stopped in its call, and killed.
struct Killed {
    worker: usize,
    at: u64,
}

impl Pool {
    pub fn new() -> Self {
        let name = format!("linearizability-{}", std::process::id());
        let record = Record::create(&name);
        Self { record, name, idle: Vec::new(), longest: [2_000; 4], killed_in_call: 0, killed: 0 }
    }

    fn process(&mut self) -> Process {
        self.idle.pop().unwrap_or_else(|| {
            let mut command = Command::new(std::env::current_exe().expect("a program has a path"));
            let mut child =
                command.args([WORKER, &self.name]).stdin(Stdio::piped()).spawn().expect("a process");
            let input = child.stdin.take().expect("piped");
            Process { child, input }
        })
    }

    fn start(&mut self, job: &Job) -> Process {
        let mut process = self.process();
        if job.trap.is_some() {
            Tracee::seize(process.pid(), Options::empty()).expect("a child may be traced");
        }
        writeln!(process.input, "{}", job.to_line()).expect("it reads");
        let state = || self.record.state(job.worker);
        assert!(wait_until(|| state() != 0), "{job:?} does not attach");
        assert_ne!(state(), REFUSED, "{job:?}");
        process
    }

    /// Waits until a victim stops in its call.
    fn wait_for_trap(&self, process: &Process, job: &Job) {
        assert_eq!(process.tracee().wait(), Ok(Stop::Trap), "{job:?}");
    }

    /// Lets the victim execute a random number of instructions of its call, and kills it.
    fn kill(&mut self, process: &Process, job: &Job, random: &mut Random) -> Killed {
        let longest = &mut self.longest[job.role as usize];
        // The first victim of a role shows how many there are.
        let limit = if *longest == 2_000 { 2_000 } else { random.below(*longest as u64 + 1) as usize };
        let mut steps = 0;
        while steps < limit && self.record.is_in_call(job.worker) {
            assert_eq!(process.tracee().step(), Ok(Stop::Trap), "{job:?}");
            steps += 1;
        }
        if limit == 2_000 {
            *longest = steps;
        }
        process.tracee().kill().expect("it is a child");
        self.killed += 1;
        self.killed_in_call += u64::from(self.record.is_in_call(job.worker));
        Killed { worker: job.worker, at: self.record.draw_ticket() }
    }

    /// Makes the history of a plan.
    ///
    /// # Panics
    /// If a worker cannot attach its end, or does not finish.
    pub fn run(&mut self, plan: &Plan, seed: u64) -> Vec<Call> {
        let mut random = Random(!seed);
        self.record.clear();
        let mut jobs = plan.jobs.clone();
        let mut processes: Vec<Option<Process>> = jobs.iter().map(|job| Some(self.start(job))).collect();
        let mut killed = Vec::new();
        self.record.set_phase(1);
        for (kill, victim) in plan.victims.iter().enumerate() {
            let phase = 2 * kill as u64 + 2;
            let process = processes[*victim].take().expect("killed once");
            self.wait_for_trap(&process, &jobs[*victim]);
            self.record.set_phase(phase);
            killed.push(self.kill(&process, &jobs[*victim], &mut random));
            // The others go on before the successor comes, or with it.
            let is_before = random.is_one_in(2);
            if is_before {
                self.record.set_phase(phase + 1);
            }
            let begun = self.record.begun(*victim);
            assert!(jobs.len() < WORKERS, "space for a worker");
            let next = successor(&jobs[*victim], jobs.len(), begun, phase + 1);
            processes.push(Some(self.start(&next)));
            jobs.push(next);
            self.record.set_phase(phase + 1);
        }
        let is_killed = |worker| killed.iter().find(|killed: &&Killed| killed.worker == worker);
        for role in [Role::Sender, Role::Writer, Role::Reader, Role::Receiver] {
            for job in jobs.iter().filter(|job| job.role == role && is_killed(job.worker).is_none()) {
                if role == Role::Receiver {
                    self.record.set_phase(DRAIN);
                }
                let is_finished = wait_until(|| self.record.state(job.worker) == FINISHED);
                assert!(is_finished, "{job:?} hangs");
            }
        }
        self.idle.extend(processes.into_iter().flatten());
        let calls = jobs.iter().map(|job| (job.worker, is_killed(job.worker).map(|killed| killed.at)));
        calls.flat_map(|(worker, at)| self.record.calls(worker, at)).collect()
    }
}
